package playback

import (
	"strconv"
	"strings"
)

// Lengths of the firmware's decode queue, in packets of 60 ms.
const (
	longQueue  = 40 // before xiaozhi 2.5.0 (seen in 1.6.6 to 2.4.2)
	shortQueue = 20 // since 2.5.0
)

// queueDepth returns the length of a robot's decode queue, in packets. The maker of the Stack-chan
// numbers its firmware differently: its 1.2 is xiaozhi 2.2.4. It is unknown on which versions of xiaozhi its
// 1.3 and later 1.x are based. For these, and for a version without numbers, queueDepth returns shortQueue.
func queueDepth(board, firmware string) int {
	major, minor, ok := ParseVersion(firmware)
	switch {
	case !ok:
		return shortQueue
	case major == 1 && strings.Contains(board, "stack-chan"):
		if minor <= 2 {
			return longQueue
		}
	case major < 2, major == 2 && minor < 5:
		return longQueue
	}
	return shortQueue
}

// ParseVersion returns the first two numbers of a firmware version such as "2.4.2". ok is false if either is
// not a number. A missing second number counts as 0.
func ParseVersion(firmware string) (major, minor int, ok bool) {
	first, rest, dotted := strings.Cut(firmware, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	if err != nil || !dotted {
		return major, 0, err == nil
	}
	second, _, _ = strings.Cut(second, "-")
	minor, err = strconv.Atoi(second)
	return major, minor, err == nil
}
