package simrobot

import "time"

// recordInterruption records that the person interrupts the robot's speech.
func (s *session) recordInterruption(now time.Time) {
	s.bargedIn = true
	p := &s.r.person
	if p.doing != waiting || p.overlap {
		return
	}
	p.turn.Interrupted = true
	p.cutIn, p.cutTurn = now, len(s.r.stats.Turns)
}

// recordStop records the tts stop of an interrupted answer.
func (s *session) recordStop(now time.Time) {
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

// interruption returns when the person interrupts the answer being played, or the
// zero time, and how: doPress stands for the next sentence.
func (p *person) interruption() (first time.Time, by action) {
	if p.doing != waiting || p.turn.Packets == 0 || p.tried {
		return first, by
	}
	sentence, over := p.sentences[p.next], time.Duration(0)
	if p.next+1 < len(p.sentences) {
		over = p.sentences[p.next+1].Over
	}
	for do, after := range map[action]time.Duration{doTap: sentence.TapAfter, doWake: sentence.WakeAfter, doPress: over} {
		if at := p.first.Add(after); after > 0 && (first.IsZero() || at.Before(first)) {
			first, by = at, do
		}
	}
	return first, by
}

// maybeInterrupt interrupts the answer if that is due, at most once.
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
	s.recordInterruption(now)
	s.endTurn(now)
	p.overlap = true
	return s.startSentence(now)
}
