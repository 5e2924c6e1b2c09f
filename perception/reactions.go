package perception

import (
	"time"

	"perch/event"
)

// soundTurner turns the head towards sounds while no face is present and nobody talks with
// the robot.
type soundTurner struct {
	*SoundTuning
	noTimer
	turned time.Time // when the head was last turned towards a sound
}

func (*soundTurner) name() string { return "sound" }

func (t *soundTurner) step(m moment) []Act {
	heard := m.state.Sound
	if m.perceived() != soundEvent || !heard.At.Equal(m.now) || m.quiet || m.state.isAsleep() || m.state.Dancing || m.state.Face.Present ||
		!m.idleFor(t.AfterTalk) || !m.hasPassed(m.playedAt, t.AfterPlay) || !m.hasPassed(t.turned, t.Every) {
		return nil
	}
	t.turned = m.now
	pitch := t.Pitch
	return []Act{TurnHead{Yaw: yawTo(heard.Direction, t.Yaw), Pitch: &pitch, Speed: t.Speed, Priority: PrioritySound, Hold: t.Every}}
}

// yawTo returns yaw with the sign of a direction, or 0 for the centre.
func yawTo(direction string, yaw int) int {
	switch direction {
	case left:
		return -yaw
	case right:
		return yaw
	}
	return 0
}

// wakeWordTurner turns the head towards the speaker of the wake word.
type wakeWordTurner struct {
	*WakeWordTuning
	noTimer
}

func (*wakeWordTurner) name() string { return "wake_word" }

func (t *wakeWordTurner) step(m moment) []Act {
	heard := m.state.Sound
	if m.perceived() != wakeDetected || !heard.At.Equal(m.now) || heard.Direction == centre ||
		m.state.isAsleep() || m.state.Dancing || m.state.Face.Present || m.state.conversation.person {
		return nil
	}
	return []Act{TurnHead{Yaw: yawTo(heard.Direction, t.Yaw), Speed: t.Speed, Priority: PriorityWakeWord, Hold: t.Hold}}
}

// idleGazer makes an idle robot look around, unless the firmware has made the robot look around less
// than AfterOwn ago.
type idleGazer struct {
	*GazeTuning
	next time.Time // when to turn the head, or to check again; zero means never
	idle bool      // whether the robot was idle at the last step
	n    int       // number of turns of the head so far
}

func (*idleGazer) name() string          { return "gaze" }
func (g *idleGazer) nextStep() time.Time { return g.next }

func (g *idleGazer) step(m moment) []Act {
	s := m.state
	before := g.idle
	g.idle = s.Online && !s.Stale && !s.Face.Present && !s.Touch.Petting && !s.Listening && !s.Dancing && !s.isAsleep() && !m.quiet &&
		(s.Mode == "" || s.Mode == modeIdle) && m.idleFor(g.AfterTalk) && m.hasPassed(s.OwnGaze, g.AfterOwn) && m.hasPassed(s.Sound.At, g.Every)
	switch {
	case !s.Online:
		g.next = time.Time{}
		return nil
	case !g.idle || !before:
		g.next = m.now.Add(g.Every)
		return nil
	case m.now.Before(g.next):
		return nil
	}
	g.next = m.now.Add(g.Every)
	yaw := gazePattern()[g.n%len(gazePattern())] * g.Yaw / 100
	g.n++
	return []Act{TurnHead{Yaw: yaw, Speed: g.Speed, Priority: PriorityIdle}}
}

// gazePattern returns the sequence of yaws, in percent of the maximum. The head often
// returns to the middle, since people are usually in front of the robot.
func gazePattern() []int { return []int{-60, 0, 40, 100, 0, -100, -20, 0, 70, 0} }

// faceGazer makes the agent's gaze follow a face: the agent looks at a person who has come, and
// ahead when the person has left.
type faceGazer struct {
	noTimer
	looking bool // whether the agent looks at a person
}

func (*faceGazer) name() string { return "face_gaze" }

func (g *faceGazer) step(m moment) []Act {
	if m.state.Face.Present == g.looking {
		return nil
	}
	g.looking = m.state.Face.Present
	if g.looking {
		return []Act{Look{"user"}}
	}
	return []Act{Look{"center"}}
}

// faceLostAborter stops a greeting if the greeted face disappears and does not come back.
// It does not interrupt a conversation.
type faceLostAborter struct {
	*FaceLostTuning
	abortAt time.Time // when to stop the greeting; zero means never
}

func (*faceLostAborter) name() string          { return "face_lost" }
func (a *faceLostAborter) nextStep() time.Time { return a.abortAt }

func (a *faceLostAborter) step(m moment) []Act {
	switch m.event.(type) {
	case event.Heard, event.Asked, event.TurnEnded, event.RobotOnline, event.RobotOffline:
		a.abortAt = time.Time{}
	}
	switch m.perceived() {
	case faceLost:
		if !m.greetedAt.IsZero() && m.now.Sub(m.greetedAt) <= a.Within && !m.state.conversation.person {
			a.abortAt = m.now.Add(a.Grace)
		}
	case faceDetected, faceRecognized:
		if m.state.Face.Present {
			a.abortAt = time.Time{}
		}
	}
	if a.abortAt.IsZero() || m.now.Before(a.abortAt) {
		return nil
	}
	a.abortAt = time.Time{}
	if !m.state.conversation.turn || m.state.conversation.person {
		return nil // the greeting has ended, or a person takes part in the turn
	}
	return []Act{Abort{}}
}

// identifiedRefresher keeps the firmware's mark for a recognized face lit.
type identifiedRefresher struct {
	*IdentifiedTuning
	next time.Time // when to refresh the mark; zero means never
}

func (*identifiedRefresher) name() string          { return "identified" }
func (r *identifiedRefresher) nextStep() time.Time { return r.next }

func (r *identifiedRefresher) step(m moment) []Act {
	face := m.state.Face
	present := face.Present || m.now.Sub(face.Lost) <= r.Gone
	if face.Identity == "" || !present || m.now.Sub(face.Identified) > r.For || m.state.isAsleep() || m.state.Dancing {
		r.next = time.Time{}
		return nil
	}
	if r.next.IsZero() {
		r.next = m.now.Add(r.Every)
		return nil
	}
	if m.now.Before(r.next) {
		return nil
	}
	r.next = m.now.Add(r.Every)
	return []Act{RefreshFace{}}
}

// purrPlayer makes the robot purr when its head is stroked.
type purrPlayer struct {
	*PurrTuning
	noTimer
	purred time.Time // when the robot last purred
}

func (*purrPlayer) name() string { return "purr" }

func (p *purrPlayer) step(m moment) []Act {
	if m.perceived() != petStarted || m.quiet || m.state.isAsleep() || m.state.Dancing || m.state.conversation.turn || !m.hasPassed(p.purred, p.Every) {
		return nil
	}
	p.purred = m.now
	return []Act{Play{p.Sound}}
}

// danceReflector makes the robot say something after a dance. The firmware reports a dance
// by dance events, by its state, or by both.
type danceReflector struct {
	*DanceTuning
	noTimer
	started  time.Time // start of the dance under way; zero without a dance
	remarked time.Time // when the robot last spoke after a dance
}

func (*danceReflector) name() string { return "dance" }

func (d *danceReflector) step(m moment) []Act {
	if m.state.Dancing {
		if d.started.IsZero() {
			d.started = m.now
		}
		return nil
	}
	started := d.started
	d.started = time.Time{}
	ended := m.perceived() == danceEnded || m.perceived() == stateChanged
	if started.IsZero() || !ended || m.now.Sub(started) < d.After || d.Text == "" || m.quiet || m.state.isAsleep() || !m.idleFor(0) ||
		!m.hasPassed(d.remarked, d.Every) {
		return nil
	}
	d.remarked = m.now
	return []Act{Say{Text: d.Text, Translated: true}}
}
