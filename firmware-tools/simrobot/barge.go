package simrobot

import "time"

// interrupts records that a person interrupts the robot's speech.
func (s *session) interrupts(now time.Time) {
	s.bargedIn = true
	p := &s.r.person
	if p.doing != waiting || p.overlap {
		return
	}
	p.turn.Interrupted = true
	p.cutIn, p.cutTurn = now, len(s.r.stats.Turns)
}

// silenced records the tts stop of an interrupted answer.
func (s *session) silenced(now time.Time) {
	p := &s.r.person
	s.late = false
	if p.cutIn.IsZero() {
		return
	}
	d := now.Sub(p.cutIn)
	p.cutIn = time.Time{}
	switch turns := s.r.stats.Turns; {
	case p.cutTurn < len(turns):
		turns[p.cutTurn].QuietAfter = d
	case p.doing == waiting:
		p.turn.QuietAfter = d
	}
}

// interruption is how the person will interrupt the answer being played.
type interruption struct {
	at time.Time // zero: it is not interrupted
	do doable    // doPress: by the next sentence
}

// interruption returns the earliest interruption in the sentences.
func (p *person) interruption() (first interruption) {
	if p.doing != waiting || p.turn.Packets == 0 || p.tried {
		return interruption{}
	}
	earlier := func(after time.Duration, do doable) {
		if at := p.first.Add(after); after > 0 && (first.at.IsZero() || at.Before(first.at)) {
			first = interruption{at, do}
		}
	}
	sentence := p.sentences[p.next]
	earlier(sentence.TapAfter, doTap)
	earlier(sentence.WakeAfter, doWake)
	if p.next+1 < len(p.sentences) {
		earlier(p.sentences[p.next+1].Over, doPress)
	}
	return first
}

// maybeInterrupt interrupts the answer when it is due, once in an answer.
func (s *session) maybeInterrupt(now time.Time) error {
	p := &s.r.person
	i := p.interruption()
	if i.at.IsZero() || now.Before(i.at) {
		return nil
	}
	p.tried = true
	if s.state != Speaking {
		return nil // the answer was shorter
	}
	switch i.do {
	case doTap:
		return s.tap(now)
	case doWake:
		return s.wake(now, s.r.o.Wake)
	}
	s.interrupts(now)
	s.turnOver(now)
	p.overlap = true
	return s.begin(now)
}
