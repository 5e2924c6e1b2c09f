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

// interruption returns the earliest interruption in the sentences of the answer
// being played: when, or the zero time, and by what. The next sentence is a press.
func (p *person) interruption() (first time.Time, by doable) {
	if p.doing != waiting || p.turn.Packets == 0 || p.tried {
		return first, by
	}
	earlier := func(after time.Duration, do doable) {
		if at := p.first.Add(after); after > 0 && (first.IsZero() || at.Before(first)) {
			first, by = at, do
		}
	}
	sentence := p.sentences[p.next]
	earlier(sentence.TapAfter, doTap)
	earlier(sentence.WakeAfter, doWake)
	if p.next+1 < len(p.sentences) {
		earlier(p.sentences[p.next+1].Over, doPress)
	}
	return first, by
}

// maybeInterrupt interrupts the answer when it is due, once in an answer.
func (s *session) maybeInterrupt(now time.Time) error {
	p := &s.r.person
	at, by := p.interruption()
	if at.IsZero() || now.Before(at) {
		return nil
	}
	p.tried = true
	if s.state != Speaking {
		return nil // the answer was shorter
	}
	switch by {
	case doTap:
		return s.tap(now)
	case doWake:
		return s.wake(now, s.r.o.Wake)
	}
	s.interrupts(now)
	s.turnOver(now)
	p.overlap = true
	return s.startSentence(now)
}
