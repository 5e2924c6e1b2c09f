package notice

import "time"

// clock reads two clocks. The wall clock may jump: a Raspberry Pi has no battery
// for its own and learns the time minutes after it has started.
type clock interface {
	// Now is the time of the wall clock.
	Now() time.Time
	// Running is the time since a fixed moment in this run. It never jumps.
	Running() time.Duration
}

// systemClock is the clock of the computer.
type systemClock struct{ began time.Time }

// Now has no monotonic reading, which would hide a jump from a comparison.
func (systemClock) Now() time.Time { return time.Now().Round(0) }

func (m systemClock) Running() time.Duration { return time.Since(m.began) }
