package notice

import "time"

// clock reads two clocks. The wall clock may jump: a Raspberry Pi has no battery-backed
// clock and learns the time minutes after it has started.
type clock interface {
	// Now returns the time of the wall clock.
	Now() time.Time
	// Running returns the time since a fixed moment in this run. It never jumps.
	Running() time.Duration
}

type systemClock struct{ began time.Time }

// Now has no monotonic reading, which would hide jumps from comparisons.
func (systemClock) Now() time.Time { return time.Now().Round(0) }

func (m systemClock) Running() time.Duration { return time.Since(m.began) }
