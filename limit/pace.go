package limit

import "time"

// Pace spreads what comes over time: one every so often, and as many as come in a second
// at once after a second of none. The zero Pace has no limit. It is for one goroutine.
type Pace struct {
	every time.Duration
	due   time.Time // when one that comes now is within the limit
}

// PerSecond returns a pace of so many in a second.
func PerSecond(n int) Pace { return Pace{every: time.Second / time.Duration(n)} }

// Took counts what has come.
func (p *Pace) Took(n int) {
	if credit := time.Now().Add(-time.Second); p.due.Before(credit) {
		p.due = credit
	}
	p.due = p.due.Add(time.Duration(n) * p.every)
}

// Wait waits until what was counted is within the limit, or over is closed.
func (p *Pace) Wait(over <-chan struct{}) {
	early := time.Until(p.due)
	if p.every == 0 || early <= 0 {
		return
	}
	select {
	case <-time.After(early):
	case <-over:
	}
}
