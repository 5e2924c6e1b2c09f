package skill

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// version is a version number: major, minor and patch.
type version [3]int

// parseVersion parses a version such as "1.2.3". Missing parts are 0.
func parseVersion(text string) (v version, err error) {
	if text == "" {
		return v, nil
	}
	parts := strings.Split(text, ".")
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil || len(parts) > len(v) {
			return v, fmt.Errorf("%.40q is not a version; write it as 1.2.3", text)
		}
		v[i] = int(n)
	}
	return v, nil
}

// compare returns a negative number if v is before o, and a positive number if v is after o.
func (v version) compare(o version) int { return slices.Compare(v[:], o[:]) }

// parseRange parses a version range: "*", "1.2.3", "^1.2.3" (compatible versions),
// "~1.2.3" (newer patches) or ">=1.2.3". It returns a function that reports whether a
// version is in the range.
func parseRange(text string) (func(version) bool, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "*" {
		return func(version) bool { return true }, nil
	}
	number := strings.TrimLeft(text, "^~>=")
	lowest, err := parseVersion(number)
	if err != nil || number == "" {
		return nil, fmt.Errorf("%.40q is not a version range; write 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3 or *", text)
	}
	switch strings.TrimSuffix(text, number) {
	case "":
		return func(v version) bool { return v == lowest }, nil
	case ">=":
		return func(v version) bool { return v.compare(lowest) >= 0 }, nil
	case "~":
		return func(v version) bool { return v.compare(lowest) >= 0 && v[0] == lowest[0] && v[1] == lowest[1] }, nil
	case "^":
		// Before 1.0 a new minor version is incompatible.
		return func(v version) bool {
			return v.compare(lowest) >= 0 && v[0] == lowest[0] && (v[0] > 0 || v[1] == lowest[1])
		}, nil
	}
	return nil, fmt.Errorf("%.40q is not a version range; write 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3 or *", text)
}

// hasVersion reports whether the skill's version is in a range.
func (s Skill) hasVersion(text string) bool {
	inRange, err := parseRange(text)
	if err != nil {
		return false
	}
	v, err := parseVersion(s.Version)
	return err == nil && inRange(v)
}
