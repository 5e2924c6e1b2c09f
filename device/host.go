package device

import "strings"

// IsHost reports whether s has the form of a host that a robot can connect to: a name or an IPv4 address
// of at most 253 bytes. The firmware does not support IPv6 literals, and crashes if an address is too long
// for its flash storage.
func IsHost(s string) bool {
	return s != "" && len(s) <= 253 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}
