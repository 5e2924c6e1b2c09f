package perception

import (
	"cmp"
	"math"
	"time"

	"perch/device"
	"perch/event"
)

// Parameters of showing a mood.
const (
	moodEvery      = time.Second      // the shortest interval between changes
	moodAfterTurn  = time.Second      // after a turn: the firmware removes the face when it listens again
	moodHeadSpeed  = 120              // of the head
	moodLeastTurn  = 3                // degrees: smaller turns are not worth a servo's noise
	moodYaw        = 30               // degrees to either side
	facesAreOthers = time.Minute      // how long others' faces have precedence
	lightsAreOther = 10 * time.Minute // how long others' lights have precedence
	ownFaceWithin  = 2 * time.Second  // the event of a face requested here arrives within this time
	expressionFor  = 8 * time.Second  // how long an expression covers the mood
)

// moodDisplay shows the agent's mood on a robot while nobody talks with it: by its face,
// by its head's position, and by a glow. Requests of others for these have precedence.
type moodDisplay struct {
	mood      event.Mood
	felt      bool // there is a mood
	over      string
	overUntil time.Time

	next   time.Time // zero means not at all
	last   time.Time // when something was last changed
	rests  time.Time // until when nothing is shown
	yields time.Time // until when the face is somebody else's
	asked  time.Time // when a face was requested whose event has not arrived

	base  Head // the head's position, as set by others
	face  string
	light [3]int
	dark  bool // a gesture may have turned off the light
	pose  Head // relative to base
}

func (*moodDisplay) name() string          { return "mood" }
func (w *moodDisplay) nextStep() time.Time { return w.next }

func (w *moodDisplay) step(m moment) []Act {
	changed := w.handleEvent(m)
	if !changed && (w.next.IsZero() || m.now.Before(w.next)) {
		return nil
	}
	w.next = time.Time{}
	switch {
	case !w.felt && w.overUntil.IsZero():
		return nil
	case !w.may(m):
		return w.off(m)
	}
	for _, from := range []time.Time{w.rests, m.poses, w.last.Add(moodEvery)} {
		if m.now.Before(from) && w.next.Before(from) {
			w.next = from
		}
	}
	if !w.next.IsZero() {
		return nil
	}
	if m.now.Before(w.overUntil) {
		w.next = w.overUntil
	} else {
		w.overUntil = time.Time{}
	}
	acts := w.update(m)
	if len(acts) > 0 {
		w.last = m.now
	}
	return acts
}

// may reports whether a mood may be shown: not during speech, sleep and the quiet hours.
func (w *moodDisplay) may(m moment) bool {
	s := m.state
	return s.Online && !m.quiet && !s.asleep() && !s.Dancing && m.idleFor(0)
}

// off turns off the glow if the robot must be dark.
func (w *moodDisplay) off(m moment) []Act {
	if w.light == ([3]int{}) || !m.quiet && !m.state.asleep() {
		return nil
	}
	w.light = [3]int{}
	return []Act{Lights{}}
}

// handleEvent applies an event, and reports whether to update the display.
func (w *moodDisplay) handleEvent(m moment) (changed bool) {
	switch e := m.event.(type) {
	case event.Mood:
		w.mood, w.felt = e, true
		return w.next.IsZero()
	case event.Expression:
		w.over, w.overUntil = expressionFace(e), m.now.Add(expressionFor)
		return true
	case event.TurnEnded, event.ListeningStarted, event.RobotOnline:
		w.face, w.rests = "", m.now.Add(moodAfterTurn)
		return true
	case event.RobotSeen: // it has booted
		w.light, w.pose, w.base = [3]int{}, Head{}, Head{}
	case event.Emotion:
		w.shown(m)
	case event.Gesture:
		w.face, w.dark = "", true
		return true
	case event.Perceived:
		if f := field(e.Data); e.Name == headTurn && f.By != w.name() && f.By != (&gesturer{}).name() {
			w.base, w.pose = m.state.Head, Head{}
		}
	}
	return false
}

// shown records that the robot was given a face: by the mood, a gesture, or others.
func (w *moodDisplay) shown(m moment) {
	switch {
	case !w.asked.IsZero() && m.now.Sub(w.asked) < ownFaceWithin:
		w.asked = time.Time{}
	case !m.now.Before(m.poses) && m.idleFor(0):
		w.face, w.yields = "", m.now.Add(facesAreOthers)
	}
}

// expressionFace returns the firmware's emotion for an expression, or "" if it is too
// weak.
func expressionFace(e event.Expression) string {
	const least = 0.2
	switch {
	case e.Intensity < least:
		return neutralFace
	case e.Preset == "focused":
		return "thinking"
	}
	return e.Preset
}

// update returns the acts for what has changed.
func (w *moodDisplay) update(m moment) (acts []Act) {
	face := cmp.Or(w.mood.Face, neutralFace)
	if m.now.Before(w.overUntil) {
		face = cmp.Or(w.over, neutralFace)
	}
	bare := w.face == "" && face == neutralFace
	if face != w.face && !bare && !m.now.Before(w.yields) {
		w.face, w.asked = face, m.now
		acts = append(acts, Feel{face})
	}
	light := glow(w.mood)
	if relit := w.dark && light != [3]int{}; (light != w.light || relit) && m.passed(m.lit, lightsAreOther) {
		w.light, w.dark = light, false
		acts = append(acts, Lights{light[0], light[1], light[2]})
	}
	return append(acts, w.turn(m)...)
}

// turn returns a turn of the head, relative to where others have turned it. After a turn
// by an agent or a client that position is unknown.
func (w *moodDisplay) turn(m moment) []Act {
	h := w.mood.Head
	// The robot cannot tilt its head sideways: half of the tilt becomes a turn.
	pose := Head{Yaw: int(math.Round(min(max(h.Yaw+h.Tilt/2, -moodYaw), moodYaw))), Pitch: int(math.Round(-h.Lean))}
	far := max(pose.Yaw-w.pose.Yaw, w.pose.Yaw-pose.Yaw, pose.Pitch-w.pose.Pitch, w.pose.Pitch-pose.Pitch)
	if m.moved || far < moodLeastTurn && (pose != Head{} || w.pose == Head{}) {
		return nil
	}
	w.pose = pose
	base := w.base.Pitch
	if base < device.MinHeadPitch {
		base = restPitch
	}
	pitch := min(max(base+pose.Pitch, device.MinHeadPitch), device.MaxHeadPitch)
	yaw := min(max(w.base.Yaw+pose.Yaw, -mostYaw), mostYaw)
	return []Act{TurnHead{Yaw: yaw, Pitch: &pitch, Speed: moodHeadSpeed, Priority: PriorityMood}}
}

// glow returns the lights' colour for a mood, in steps, so that a fading feeling changes
// it only a few times.
func glow(m event.Mood) [3]int {
	const steps = 4
	f := m.Feelings
	lit := map[string]struct {
		colour [3]int // at its brightest: a glow, not a lamp
		felt   float64
	}{
		"concern": {[3]int{64, 20, 0}, f.Concern}, "celebration": {[3]int{56, 48, 0}, f.Celebration}, "patience": {[3]int{0, 12, 56}, f.Patience},
		"curiosity": {[3]int{0, 52, 52}, f.Curiosity}, "empathy": {[3]int{60, 8, 36}, f.Empathy}, "uncertain": {[3]int{36, 0, 56}, f.Uncertain},
	}[m.Dominant]
	step := math.Ceil(min(max(lit.felt, 0), 1) * steps)
	for i := range lit.colour {
		lit.colour[i] = int(float64(lit.colour[i]) * step / steps)
	}
	return lit.colour
}
