package robot

import (
	"cmp"
	"slices"
	"strings"
)

// sorted is a finished transcript.
func sorted(entries []entry) []string {
	slices.SortStableFunc(entries, byTime)
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = e.String()
	}
	return lines
}

// byTime sorts a transcript. What happened at one instant is in the order of
// cause and effect: the robot, engines and the appliance, events, the state, our answer.
func byTime(a, b entry) int {
	const order = "<!*=>"
	return cmp.Or(cmp.Compare(a.at, b.at),
		cmp.Compare(strings.IndexByte(order, a.mark), strings.IndexByte(order, b.mark)))
}
