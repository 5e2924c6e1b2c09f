package limit

import "time"

// Pace limits a rate: after a second without any, one second's worth is allowed at once. The
// zero Pace has no limit. It is not safe for concurrent use.
type Pace struct {
	every time.Duration
	due   time.Time // when the next one is within the limit
}

// PerSecond returns a pace of n per second.
func PerSecond(n int) Pace { return Pace{every: time.Second / time.Duration(n)} }

// Took counts n more.
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
