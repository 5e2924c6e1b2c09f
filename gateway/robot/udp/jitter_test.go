package udp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/must"
)

// TestJitter checks the order and the times at which packets are returned. "x" is a packet that is given up.
func TestJitter(t *testing.T) {
	for name, c := range map[string]struct {
		arrives string // "3@60" is packet 3 after 60 ms
		want    string
	}{
		"in order":            {"1@0 2@60 3@120", "1@0 2@60 3@120"},
		"begins later":        {"7@0 8@60", "7@0 8@60"},
		"one is overtaken":    {"1@0 3@60 2@70 4@120", "1@0 2@70 3@70 4@120"},
		"one is lost":         {"1@0 3@120 4@180 5@240", "1@0 x@220 3@220 4@220 5@240"},
		"late after all":      {"1@0 3@120 2@230 4@240", "1@0 x@220 3@220 4@240"},
		"twice":               {"1@0 3@60 3@61 2@62 2@63", "1@0 2@62 3@62"},
		"many overtake one":   {"1@0 3@10 4@11 5@12 6@13", "1@0 x@13 3@13 4@13 5@13 6@13"},
		"two are lost":        {"1@0 4@120 5@180", "1@0 x@220 x@220 4@220 5@220"},
		"the network is away": {"1@0 100@5000 101@5060", "1@0 100@5100 101@5100"},
		"a burst":             {"1@0 2@0 3@0 4@0 5@0", "1@0 2@0 3@0 4@0 5@0"},
	} {
		var j Jitter
		var got []string
		now := time.Time{}.Add(time.Hour)
		began := now
		take := func() {
			for {
				a, lost, ok := j.Next(now)
				if !ok {
					return
				}
				text := "x"
				if !lost {
					text = string(a.Opus)
				}
				got = append(got, fmt.Sprintf("%s@%d", text, now.Sub(began).Milliseconds()))
			}
		}
		for _, word := range strings.Fields(c.arrives + " 0@99999") {
			var sequence uint32
			var at int
			must.Value(fmt.Sscanf(word, "%d@%d", &sequence, &at))(t)
			arrival := began.Add(time.Duration(at) * time.Millisecond)
			for due := j.Deadline(); !due.IsZero() && !due.After(arrival); due = j.Deadline() {
				now = due
				take()
			}
			now = arrival
			if sequence > 0 {
				j.Add(xiaozhi.Datagram{Sequence: sequence, Audio: xiaozhi.Audio{Opus: fmt.Append(nil, sequence)}}, now)
				take()
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s\ngives %s\nwant  %s", name, c.arrives, text, c.want)
		}
	}
}
