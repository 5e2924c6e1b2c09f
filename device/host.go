package device

import "strings"

// IsHost reports whether s can be given to a robot as the host to connect to: a name or
// an IPv4 address. The firmware accepts no IPv6 literal, and aborts on a string too
// long for its flash.
func IsHost(s string) bool {
	return s != "" && len(s) <= 253 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}
