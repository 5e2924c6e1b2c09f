package perception

import "time"

// purrPlayer has the robot purr when its head is stroked.
type purrPlayer struct {
	PurrTuning
	never
	purred time.Time
}

func (*purrPlayer) name() string { return "purr" }

func (p *purrPlayer) step(m moment) []Act {
	if m.perceived() != petStarted || m.quiet || m.state.asleep() || m.state.Dancing || m.state.talk.turn || !m.passed(p.purred, p.Every) {
		return nil
	}
	p.purred = m.now
	return []Act{Play{p.Sound}}
}
