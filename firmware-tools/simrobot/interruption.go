package simrobot

import "time"

// recordInterruption records that the person interrupts the robot's speech. If this speech is the
// answer that the person is waiting for, the turn counts as interrupted.
func (s *session) recordInterruption(now time.Time) {
	s.bargedIn = true
	p := &s.r.person
	if p.doing != waiting || p.overlap {
		return
	}
	p.turn.Interrupted = true
	p.interruptedAt, p.interruptedTurn = now, len(s.r.stats.Turns)
}

// recordStop records that the server has sent tts stop. After an interruption it sets QuietAfter of
// the interrupted turn.
func (s *session) recordStop(now time.Time) {
	p := &s.r.person
	s.stoppedEarly = false
	if p.interruptedAt.IsZero() {
		return
	}
	d := now.Sub(p.interruptedAt)
	p.interruptedAt = time.Time{}
	switch turns := s.r.stats.Turns; {
	case p.interruptedTurn < len(turns):
		turns[p.interruptedTurn].QuietAfter = d
	case p.doing == waiting:
		p.turn.QuietAfter = d
	}
}

// interruption returns the time at which the person will interrupt the current answer, and the
// action. The action is doTap, doWake, or doPress if the person says the next sentence during the
// answer. The time is zero if no interruption is planned.
func (p *person) interruption() (at time.Time, do action) {
	if p.doing != waiting || p.turn.Packets == 0 || p.interruptionTried {
		return at, do
	}
	sentence, over := p.sentences[p.next], time.Duration(0)
	if p.next+1 < len(p.sentences) {
		over = p.sentences[p.next+1].Over
	}
	for kind, after := range map[action]time.Duration{doTap: sentence.TapAfter, doWake: sentence.WakeAfter, doPress: over} {
		if t := p.firstPacket.Add(after); after > 0 && (at.IsZero() || t.Before(at)) {
			at, do = t, kind
		}
	}
	return at, do
}

// maybeInterrupt interrupts the answer if an interruption is due. It tries only once for each answer.
func (s *session) maybeInterrupt(now time.Time) error {
	p := &s.r.person
	at, do := p.interruption()
	if at.IsZero() || now.Before(at) {
		return nil
	}
	p.interruptionTried = true
	if s.state != Speaking {
		return nil // the answer is already over
	}
	switch do {
	case doTap:
		return s.tap(now)
	case doWake:
		return s.handleWakeWord(now, s.r.o.Wake)
	}
	s.recordInterruption(now)
	s.endTurn(now)
	p.overlap = true
	return s.startSentence(now)
}
