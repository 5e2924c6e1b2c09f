package robot

import (
	"strconv"
	"strings"

	"perch/device"
)

// What a robot's decode queue holds, in packets.
const (
	longQueue  = 40 // from xiaozhi 1.6.6 to 2.4.2
	shortQueue = 20 // since 2.5.0
)

// decodeQueueOf is how many packets a robot can be sent ahead of time before it drops
// what comes. The maker of the Stack-chan has versions of its own, below 2: 1.2
// is xiaozhi's 2.2.4, and a later one may be any. What is not known to hold
// more holds little.
func decodeQueueOf(r device.Robot) int {
	major, minor, ok := versionOf(r.Firmware)
	switch {
	case !ok:
		return shortQueue
	case major == 1 && strings.Contains(r.Board, "stack-chan"):
		if minor <= 2 {
			return longQueue
		}
	case major < 2, major == 2 && minor < 5:
		return longQueue
	}
	return shortQueue
}

// versionOf reads the first two parts of a version, "2.4.2".
func versionOf(version string) (major, minor int, ok bool) {
	first, rest, dotted := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	if err != nil || !dotted {
		return major, 0, err == nil
	}
	second, _, _ = strings.Cut(second, "-")
	minor, err = strconv.Atoi(second)
	return major, minor, err == nil
}
