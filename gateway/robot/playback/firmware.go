package playback

import (
	"strconv"
	"strings"
)

// What a robot's decode queue holds, in packets.
const (
	longQueue  = 40 // from xiaozhi 1.6.6 to 2.4.2
	shortQueue = 20 // since 2.5.0
)

// queueDepth returns how many packets fit into a robot's queue. The maker's versions for the
// Stack-chan are below 2: 1.2 is xiaozhi's 2.2.4, a later one may be any. An unknown one gets the
// short queue.
func queueDepth(board, firmware string) int {
	major, minor, ok := Version(firmware)
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

// Version returns the first two parts of a firmware's version, such as "2.4.2".
func Version(firmware string) (major, minor int, ok bool) {
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
