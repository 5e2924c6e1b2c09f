package device

import "strings"

// IsHost reports whether a robot can be given this as the host to connect to: what
// names and IPv4 addresses are made of. The firmware takes no IPv6 literal, and
// aborts on a string too long for its flash.
func IsHost(s string) bool {
	return s != "" && len(s) <= 253 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}
