package mdns

import (
	"fmt"
	"strings"
)

// maxLabel is the longest DNS label in bytes (RFC 1035 section 2.3.4).
const maxLabel = 63

// maxSuffix is the last name tried: "perch-15". RFC 6762 section 8.1 asks to slow down after fifteen conflicts.
const maxSuffix = 15

// hostName is the n-th choice of a host name, without the trailing dot: perch.local, perch-2.local, and so on.
func hostName(name string, n int) string {
	if n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return strings.ToLower(name) + ".local"
}

// Instance is the instance name of every service, "<Name>-<ID>". It is built from the configured name, never the suffixed
// one: Home Assistant takes it for an identity.
func (o Options) Instance() string { return o.Name + "-" + o.ID }

// validate refuses what could not be packed into DNS messages later, where zeroconf would fail halfway through its
// shutdown and keep its sockets.
func (o Options) validate() error {
	room := maxLabel - len("-15")
	switch {
	case !isLabel(o.Name) || len(o.Name) > room:
		return fmt.Errorf("mdns name %q: use 1 to %d letters, digits and hyphens, not starting or ending in a hyphen", o.Name, room)
	case !isLabel(o.ID) || len(o.Instance()) > maxLabel:
		return fmt.Errorf("mdns id %q: use letters, digits and hyphens, at most %d together with the name", o.ID, maxLabel-1)
	case o.Port < 1 || o.Port > 65535:
		return fmt.Errorf("mdns port %d: use 1 to 65535", o.Port)
	case !isPrintable(o.Version) || len(o.Version) > 200:
		return fmt.Errorf("mdns version %q: use at most 200 printable ASCII characters", o.Version)
	}
	return o.validateOffers()
}

// isLabel reports whether s is a host label (RFC 1123 section 2.1).
func isLabel(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// isPrintable also refuses the backslash, which DNS libraries read as an escape.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '\\' })
}
