// Package device describes robots: their identity, tokens, tools and settings. Its Registry holds all
// robots that have checked in or were added by hand, and decides which of them may connect; its Lanes run
// jobs for robots. The package opens no sockets or files and does not read the clock.
package device

import (
	"errors"
	"fmt"
	"strings"
)

// ID is a robot's Wi-Fi MAC address as 12 hexadecimal digits in lower case, such as "a0b1c2d3e4f5".
type ID string

// ErrID is wrapped by the errors of ParseID.
var ErrID error = errors.New("not a MAC address")

// ParseID parses a MAC address in any common spelling. It refuses the addresses of all zeros and all ones.
// It accepts other multicast addresses, because web clients choose their address at random. Errors wrap
// ErrID.
func ParseID(s string) (ID, error) {
	if len(s) > 32 {
		return "", fmt.Errorf("%w: %d bytes", ErrID, len(s))
	}
	digits := strings.NewReplacer(":", "", "-", "", ".", "").Replace(strings.ToLower(s))
	switch {
	case strings.Trim(digits, "0123456789abcdef") != "":
		return "", fmt.Errorf("%w: %q", ErrID, s)
	case len(digits) != 12:
		return "", fmt.Errorf("%w: %q has %d hex digits, not 12", ErrID, s, len(digits))
	case digits == "000000000000" || digits == "ffffffffffff":
		return "", fmt.Errorf("%w: %q is nobody's address, or everybody's", ErrID, s)
	}
	return ID(digits), nil
}

// MAC returns the ID in the firmware's spelling, with colons. An ID that has not 12 characters is returned
// unchanged.
func (id ID) MAC() string {
	if len(id) != 12 {
		return string(id)
	}
	parts := make([]string, 0, 6)
	for i := 0; i < 12; i += 2 {
		parts = append(parts, string(id[i:i+2]))
	}
	return strings.Join(parts, ":")
}
