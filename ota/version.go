package ota

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseVersion parses a version as the firmware does, with std::getline and std::stoi: it
// consists of parts between dots, each beginning with a number. An empty version has no parts.
// The error means that std::stoi would throw an exception, which aborts the firmware.
func parseVersion(version string) ([]int32, error) {
	var parts []int32
	// std::getline returns no part for an empty text, and none after a final dot. In the firmware a
	// text ends at the first NUL.
	rest, _, _ := strings.Cut(version, "\x00")
	for rest != "" {
		part, after, _ := strings.Cut(rest, ".")
		digits := strings.TrimLeft(part, " \t\n\v\f\r")
		end := digits
		if end != "" && (end[0] == '+' || end[0] == '-') {
			end = end[1:]
		}
		end = strings.TrimLeft(end, "0123456789")
		n, err := strconv.ParseInt(strings.TrimSuffix(digits, end), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the version %q cannot be compared by a robot: its part %q does not begin with a number, and the robot would "+
				"abort at every boot; versions are numbers and dots, as in 1.2.4", clip(version), clip(part))
		}
		parts = append(parts, int32(n))
		rest = after
	}
	return parts, nil
}

// isNewerVersion reports whether a robot would replace the running version by the offered one.
// The first differing part decides; if no part differs, the version with more parts is newer. It
// returns an error if the firmware cannot compare one of the versions.
func isNewerVersion(offered, running string) (bool, error) {
	o, err := parseVersion(offered)
	if err != nil {
		return false, err
	}
	r, err := parseVersion(running)
	if err != nil {
		return false, err
	}
	return slices.Compare(o, r) > 0, nil
}

// isComparable reports whether the firmware can compare a version without aborting.
func isComparable(version string) bool {
	_, err := parseVersion(version)
	return err == nil
}
