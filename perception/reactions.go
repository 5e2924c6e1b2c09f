package perception

import (
	"time"

	"perch/event"
)

// soundTurner turns the head towards sounds while there is no face to look at and
// nobody to listen to.
type soundTurner struct {
	*SoundTuning
	noTimer
	turned time.Time
}

func (*soundTurner) name() string { return "sound" }

func (t *soundTurner) step(m moment) []Act {
	heard := m.state.Sound
	if m.perceived() != soundEvent || !heard.At.Equal(m.now) || m.quiet || m.state.asleep() || m.state.Dancing || m.state.Face.Present ||
		!m.idleFor(t.AfterTalk) || !m.passed(m.played, t.AfterPlay) || !m.passed(t.turned, t.Every) {
		return nil
	}
	t.turned = m.now
	pitch := t.Pitch
	return []Act{TurnHead{Yaw: toSide(heard.Direction, t.Yaw), Pitch: &pitch, Speed: t.Speed, Priority: PrioritySound, Hold: t.Every}}
}

// toSide returns the yaw of a direction.
func toSide(direction string, yaw int) int {
	switch direction {
	case left:
		return -yaw
	case right:
		return yaw
	}
	return 0
}

// wakeWordTurner turns the head towards the wake word.
type wakeWordTurner struct {
	*WakeWordTuning
	noTimer
}

func (*wakeWordTurner) name() string { return "wake_word" }

func (t *wakeWordTurner) step(m moment) []Act {
	heard := m.state.Sound
	if m.perceived() != wakeDetected || !heard.At.Equal(m.now) || heard.Direction == centre ||
		m.state.asleep() || m.state.Dancing || m.state.Face.Present || m.state.talk.person {
		return nil
	}
	return []Act{TurnHead{Yaw: toSide(heard.Direction, t.Yaw), Speed: t.Speed, Priority: PriorityWakeWord, Hold: t.Hold}}
}

// idleGazer makes an idle robot with working senses look around, unless it does so by
// itself.
type idleGazer struct {
	*GazeTuning
	next time.Time
	idle bool
	n    int
}

func (*idleGazer) name() string          { return "gaze" }
func (g *idleGazer) nextStep() time.Time { return g.next }

func (g *idleGazer) step(m moment) []Act {
	s := m.state
	before := g.idle
	g.idle = s.Online && !s.Stale && !s.Face.Present && !s.Touch.Petting && !s.Listening && !s.Dancing && !s.asleep() && !m.quiet &&
		(s.Mode == "" || s.Mode == modeIdle) && m.idleFor(g.AfterTalk) && m.passed(s.OwnGaze, g.AfterOwn) && m.passed(s.Sound.At, g.Every)
	switch {
	case !s.Online:
		g.next = time.Time{}
		return nil
	case !g.idle || !before:
		g.next = m.now.Add(g.Every) // checks again then
		return nil
	case m.now.Before(g.next):
		return nil
	}
	g.next = m.now.Add(g.Every)
	yaw := gaze()[g.n%len(gaze())] * g.Yaw / 100
	g.n++
	return []Act{TurnHead{Yaw: yaw, Speed: g.Speed, Priority: PriorityIdle}}
}

// gaze returns the sequence of directions in percent of the maximum. It returns to the
// middle, where people are.
func gaze() []int { return []int{-60, 0, 40, 100, 0, -100, -20, 0, 70, 0} }

// faceLostAborter stops a greeting if its face has left and does not come back. It does
// not interrupt a conversation.
type faceLostAborter struct {
	*FaceLostTuning
	at time.Time // when to stop; zero means not at all
}

func (*faceLostAborter) name() string          { return "face_lost" }
func (a *faceLostAborter) nextStep() time.Time { return a.at }

func (a *faceLostAborter) step(m moment) []Act {
	switch m.event.(type) {
	case event.Heard, event.Asked, event.TurnEnded, event.RobotOnline, event.RobotOffline:
		a.at = time.Time{}
	}
	switch m.perceived() {
	case faceLost:
		if !m.greeted.IsZero() && m.now.Sub(m.greeted) <= a.Within && !m.state.talk.person {
			a.at = m.now.Add(a.Grace)
		}
	case faceDetected, faceRecognized:
		if m.state.Face.Present {
			a.at = time.Time{}
		}
	}
	if a.at.IsZero() || m.now.Before(a.at) {
		return nil
	}
	a.at = time.Time{}
	if !m.state.talk.turn || m.state.talk.person {
		return nil // it has already ended
	}
	return []Act{Abort{}}
}

// identifiedRefresher keeps a known face's mark lit.
type identifiedRefresher struct {
	*IdentifiedTuning
	next time.Time
}

func (*identifiedRefresher) name() string          { return "identified" }
func (r *identifiedRefresher) nextStep() time.Time { return r.next }

func (r *identifiedRefresher) step(m moment) []Act {
	face := m.state.Face
	here := face.Present || m.now.Sub(face.Lost) <= r.Gone
	if face.Identity == "" || !here || m.now.Sub(face.Identified) > r.For || m.state.asleep() || m.state.Dancing {
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

// danceReflector makes the robot say something after a dance. The firmware
// reports a dance by its events, by its state, or by both.
type danceReflector struct {
	*DanceTuning
	noTimer
	since time.Time // start of the dance under way; zero means none
	said  time.Time
}

func (*danceReflector) name() string { return "dance" }

func (d *danceReflector) step(m moment) []Act {
	if m.state.Dancing {
		if d.since.IsZero() {
			d.since = m.now
		}
		return nil
	}
	since := d.since
	d.since = time.Time{}
	ended := m.perceived() == danceEnded || m.perceived() == stateChanged
	if since.IsZero() || !ended || m.now.Sub(since) < d.After || d.Text == "" || m.quiet || m.state.asleep() || !m.idleFor(0) ||
		!m.passed(d.said, d.Every) {
		return nil
	}
	d.said = m.now
	return []Act{Say{Text: d.Text, Usual: true}}
}
