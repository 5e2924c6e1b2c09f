package notice

import "time"

// clock reads the wall clock and a running clock. The wall clock may jump: a Raspberry Pi
// has no battery-backed clock and gets the time from the network minutes after its start.
type clock interface {
	// Now returns the time of the wall clock.
	Now() time.Time
	// Running returns the time since a fixed moment in this run of the appliance. It never
	// jumps.
	Running() time.Duration
}

// systemClock is the clock of the machine.
type systemClock struct{ started time.Time }

// Now returns the time without its monotonic reading, which would hide jumps.
func (systemClock) Now() time.Time { return time.Now().Round(0) }

// Running returns the time since s.started.
func (s systemClock) Running() time.Duration { return time.Since(s.started) }
