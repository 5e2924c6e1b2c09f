package mdns

import (
	"fmt"
	"log/slog"
	"strings"
)

// Options are what to announce.
type Options struct {
	Name    string  // the host's label, <Name>.local: letters, digits and hyphens
	ID      string  // tells this appliance from others, and is stable; of the same letters as Name
	Version string  // the program's, published in TXT
	Port    int     // the TCP port of the robots' doors
	Also    []Offer // further services, announced and withdrawn together with the first
	// Interfaces names the interfaces to use. Empty means all that are up and carry multicast, without those of
	// containers and virtual machines.
	Interfaces []string
	Log        *slog.Logger // receives what a user should know; nil discards it
}

// Offer is a further service on this machine that is announced beside [Service], under the same instance name.
type Offer struct {
	Type string   // the DNS-SD type: [Wyoming], say
	Port int      // TCP or UDP. It must answer before it is announced: Home Assistant asks at once
	TXT  []string // "key=value" each; may be nil
}

const (
	maxLabel  = 63  // bytes of a DNS label (RFC 1035 section 2.3.4)
	maxSuffix = 15  // "perch-15" is the last name tried: RFC 6762 section 8.1 asks to slow down after fifteen conflicts
	maxTXT    = 400 // bytes, so that an answer with all its records fits one packet (RFC 6763 section 6.2)
)

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

// offers are all the services to announce; the appliance's own is the first.
func (o Options) offers() []Offer {
	own := Offer{Service, o.Port, []string{"ota=/xiaozhi/ota/", "ws=/xiaozhi/v1/", "version=" + o.Version, "id=" + o.ID}}
	return append([]Offer{own}, o.Also...)
}

// txt lists the TXT strings. An empty record holds one empty string (RFC 6763 section 6.1).
func (o Offer) txt() []string {
	if len(o.TXT) == 0 {
		return []string{""}
	}
	return o.TXT
}

// validate refuses what could not be packed into DNS messages later: zeroconf would fail halfway through its shutdown and
// keep its sockets. A type may be offered once, because an instance name is unique in its type.
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
	types := map[string]bool{Service: true}
	for _, also := range o.Also {
		switch {
		case !isType(also.Type):
			return fmt.Errorf(`mdns service %q: use "_name._tcp" or "_name._udp", the name of at most 15 letters, digits and hyphens`, also.Type)
		case types[also.Type]:
			return fmt.Errorf("mdns service %s is given twice", also.Type)
		case also.Port < 1 || also.Port > 65535:
			return fmt.Errorf("mdns service %s: port %d: use 1 to 65535", also.Type, also.Port)
		}
		types[also.Type] = true
		length := 0
		for _, text := range also.TXT {
			if key, _, _ := strings.Cut(text, "="); key == "" || !isPrintable(text) || len(text) > 255 {
				return fmt.Errorf("mdns service %s: TXT %q: use key=value of at most 255 printable ASCII characters", also.Type, text)
			}
			length += 1 + len(text)
		}
		if length > maxTXT {
			return fmt.Errorf("mdns service %s: TXT of %d bytes: use at most %d", also.Type, length, maxTXT)
		}
	}
	return nil
}

// isLabel reports whether s is a host label (RFC 1123 section 2.1).
func isLabel(s string) bool {
	odd := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-')
	}
	return s != "" && len(s) <= maxLabel && !strings.ContainsFunc(s, odd) && strings.Trim(s, "-") == s
}

// isType reports whether s is a service type (RFC 6335 section 5.1) in lower case, of a protocol that DNS-SD knows (RFC
// 6763 section 7).
func isType(s string) bool {
	name, protocol, _ := strings.Cut(s, ".")
	name, underlined := strings.CutPrefix(name, "_")
	return underlined && isLabel(name) && len(name) <= 15 && name == strings.ToLower(name) && (protocol == "_tcp" || protocol == "_udp")
}

// isPrintable reports whether s is printable ASCII without the backslash, which DNS libraries read as an escape.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '\\' })
}
