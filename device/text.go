package device

import (
	"strings"
	"unicode"
)

// Plain is a text of a robot's as it may be kept and shown: valid UTF-8, in one
// line, without what would be an order to the terminal that shows it.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// IsHost reports whether a robot can be given this as the host to connect to: what
// names and IPv4 addresses are made of. The firmware takes no IPv6 literal, and
// aborts on a string too long for its flash.
func IsHost(s string) bool {
	return s != "" && len(s) <= 253 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}

// Clip returns a text of at most so many bytes, as valid UTF-8: no letter (rune)
// is cut in half. A combining mark may be cut off its letter, and the end of an
// emoji that is a sequence. Nothing of the rest stays in memory.
func Clip(s string, most int) string {
	if len(s) <= most {
		return strings.ToValidUTF8(s, "")
	}
	return strings.Clone(strings.ToValidUTF8(s[:max(most, 0)], ""))
}
