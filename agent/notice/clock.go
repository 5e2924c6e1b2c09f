package notice

import "time"

// clock tells the time twice, for the wall clock may jump: a Raspberry Pi has
// no battery for its own and learns the time minutes after it has started.
type clock interface {
	// Now is what the wall clock says.
	Now() time.Time
	// Running is the time since some moment in this run. It never jumps.
	Running() time.Duration
}

// machine is the computer's own clock.
type machine struct{ began time.Time }

func newMachine() machine { return machine{time.Now()} }

// Now is without Go's monotonic reading, which would hide a jump from
// whoever compares.
func (machine) Now() time.Time { return time.Now().Round(0) }

func (m machine) Running() time.Duration { return time.Since(m.began) }
