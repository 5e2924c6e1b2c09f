package device

import "strings"

// IsHost reports whether s is a host that a robot can connect to: a name or an IPv4 address. The
// firmware does not support IPv6 literals, and crashes if the string is too long for its flash.
func IsHost(s string) bool {
	return s != "" && len(s) <= 253 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}
