package limit

import "time"

// Pace limits the rate of messages or bytes. After an idle second it lets the messages or bytes
// of a whole second through at once. The zero Pace has no limit. A Pace is not safe for concurrent use.
type Pace struct {
	every time.Duration // time per message or byte; 0 for no limit
	due   time.Time     // when everything counted so far is within the limit
}

// PerSecond returns a Pace of n messages or bytes per second. n must be positive.
func PerSecond(n int) Pace { return Pace{every: time.Second / time.Duration(n)} }

// Took counts n messages or bytes. It does not wait.
func (p *Pace) Took(n int) {
	if credit := time.Now().Add(-time.Second); p.due.Before(credit) {
		p.due = credit
	}
	p.due = p.due.Add(time.Duration(n) * p.every)
}

// Wait waits until everything counted is within the limit, or cancel is closed.
func (p *Pace) Wait(cancel <-chan struct{}) {
	wait := time.Until(p.due)
	if p.every == 0 || wait <= 0 {
		return
	}
	select {
	case <-time.After(wait):
	case <-cancel:
	}
}
