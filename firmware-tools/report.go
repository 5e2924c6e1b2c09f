package main

import (
	"fmt"
	"io"
	"time"

	"perch/firmware-tools/simrobot"
)

func answered(s simrobot.Stats) int {
	n := 0
	for _, t := range s.Turns {
		if t.Answered {
			n++
		}
	}
	return n
}

// report prints a line for each turn, and one for the sound as a whole.
func report(w io.Writer, s simrobot.Stats) {
	for i, t := range s.Turns {
		if t.Interrupted {
			fmt.Fprintf(w, "turn %d: interrupted, and quiet after %v\n", i+1, ms(t.Hushed))
			continue
		}
		if !t.Answered {
			fmt.Fprintf(w, "turn %d: %q was not answered\n", i+1, t.Text)
			continue
		}
		fmt.Fprintf(w, "turn %d: first sound after %v, %v long, %d packets, %d underruns, %d dropped\n",
			i+1, ms(t.FirstAudio), ms(t.Length), t.Packets, t.Underruns, t.Dropped)
	}
	if s.HelloLatency == 0 {
		return
	}
	fmt.Fprintf(w, "sound: %d sent, %d received, %d played, %d dropped, %d ignored, %d cut, %d bad, %d underruns, at most %d queued, gaps p50 %v p99 %v\n",
		s.Sent, s.Received, s.Played, s.Dropped, s.Ignored, s.Cut, s.Bad, s.Underruns, s.MaxQueue,
		ms(simrobot.Quantile(s.Gaps, 0.5)), ms(simrobot.Quantile(s.Gaps, 0.99)))
	if s.CutByBargeIn+s.Late > 0 {
		fmt.Fprintf(w, "interruptions: %d packets were cut off by them, %d came after them\n", s.CutByBargeIn, s.Late)
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
