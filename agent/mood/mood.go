// Package mood models what an agent feels: six feelings that events raise and that decay
// over time, the face and head pose that show them, and the gestures they cause. Step is
// pure; Moods runs it for every robot and for every session without one.
// docs/character.md describes the visible behaviour.
package mood

import (
	"math"

	"perch/event"
)

// Feeling is one of the six feelings, or Neutral, which is the absence of them.
type Feeling int

// The feelings. Of two equal ones the first is dominant.
const (
	Neutral Feeling = iota - 1
	Concern
	Celebration
	Patience
	Curiosity
	Empathy
	Uncertain
	feelings = iota - 1 // their number
)

// String is the feeling's name in events.
func (f Feeling) String() string {
	if f < 0 || f >= feelings {
		return "neutral"
	}
	return [feelings]string{"concern", "celebration", "patience", "curiosity", "empathy", "uncertain"}[f]
}

// Named returns the feeling of that name. ok is false for any other name, and for
// neutral, which cannot be raised.
func Named(name string) (f Feeling, ok bool) {
	for f = range feelings {
		if f.String() == name {
			return f, true
		}
	}
	return Neutral, false
}

// decay returns what each feeling loses per second.
func decay() [feelings]float64 { return [feelings]float64{.08, .18, .035, .12, .055, .10} }

// face returns the firmware's emotion for a feeling.
func (f Feeling) face() string {
	if f < 0 || f >= feelings {
		return "neutral"
	}
	return [feelings]string{"sad", "happy", "relaxed", "thinking", "loving", "confused"}[f]
}

// Constants of the rendering. Rates are the share of the remaining way per second.
const (
	morphRate = 4
	tiltRate  = 3
	leanRate  = 2
	yawRate   = .08 * 60 // 8 % of the way in each of 60 frames a second

	mostYaw, mostTilt, mostLean = 45, 25, 25 // degrees

	talkingMouth = .4
	startleFor   = .6 // seconds
	startledBrow = .9
	startledJaw  = .3
	meetingAfter = .6 // seconds from the first face until joy
	expressFor   = 6  // seconds until an expression fades
	thinkingYaw  = -.15 * 180 / math.Pi

	hysteresis = .15 // a feeling must exceed the dominant one by so much to replace it
	showFor    = 1   // minimum seconds that a dominant feeling or a face shows

	gestureAbove = .6
)

// State is what one agent feels and shows. The zero value feels nothing. It is a value:
// Step never modifies its argument.
type State struct {
	feelings [feelings]float64 // each from 0 to 1
	streak   int               // consecutive failures
	met      bool              // a face has been seen

	morphs morphs  // of the feelings, interpolated
	mouth  float64 // how far talking opens the mouth, interpolated
	tilt   float64 // degrees, interpolated
	lean   float64
	yaw    float64
	gaze   float64 // the target of yaw, in degrees

	preset  Preset  // the expression over the feelings
	layer   morphs  // its morphs, interpolated from those of the previous one
	cover   float64 // opacity of the expression, from 0 to 1
	covers  float64 // target of cover while express lasts
	express float64 // seconds left; so are talk, startle, meeting and busy

	talk    float64
	startle float64
	meeting float64 // until joy about the first face
	busy    float64 // of the gesture under way

	dominant Feeling // plus 1, so that the zero value is neutral
	face     string  // empty is neutral
	hold     float64 // minimum seconds left for dominant
	faceHold float64

	gesture Gesture // that begins with this step
}

// Gesture is a gesture caused by a feeling or by a viewer that handles a model.
type Gesture struct {
	Name    string // celebrate, concern, think or nod; empty for no gesture
	Seconds float64
}

// Gesture returns the gesture that begins with the step that made the state.
func (s State) Gesture() Gesture { return s.gesture }

// Dominant returns the feeling that shows.
func (s State) Dominant() Feeling { return s.dominant - 1 }

// Face returns the firmware's emotion to show: the expression's, or the feeling's.
func (s State) Face() string {
	if s.face == "" {
		return Neutral.face()
	}
	return s.face
}

// Neutral returns 1 minus the sum of the feelings, and at least 0.
func (s State) Neutral() float64 {
	sum := 0.
	for _, f := range s.feelings {
		sum += f
	}
	return max(0, 1-sum)
}

// Head returns the angles of the head, within a neck's bounds.
func (s State) Head() event.HeadPose {
	return event.HeadPose{Tilt: within(s.tilt, mostTilt), Lean: within(s.lean, mostLean), Yaw: within(s.yaw, mostYaw)}
}

// Feelings returns the six feelings and neutral, each from 0 to 1.
func (s State) Feelings() event.Feelings {
	f := s.feelings
	return event.Feelings{Neutral: s.Neutral(), Concern: f[Concern], Celebration: f[Celebration], Patience: f[Patience], Curiosity: f[Curiosity],
		Empathy: f[Empathy], Uncertain: f[Uncertain]}
}

// Mood returns the published form of the state.
func (s State) Mood() event.Mood {
	return event.Mood{Dominant: s.Dominant().String(), Face: s.Face(), Feelings: s.Feelings(), Morphs: s.shown().event(), Head: s.Head()}
}

// Step returns the state after dt seconds, at whose end the stimulus happened; the zero
// Stimulus has no effect. It allocates nothing.
func Step(s State, happened Stimulus, dt float64) State {
	if !(dt > 0) { // also excludes NaN
		dt = 0
	}
	s.gesture = Gesture{}
	s.fade(dt)
	s.move(dt)
	s.feel(&happened)
	s.decide()
	s.gesticulate()
	return s
}

// fade lets feelings decay and timers run.
func (s *State) fade(dt float64) {
	for i, rate := range decay() {
		s.feelings[i] = max(0, s.feelings[i]-rate*dt)
	}
	if s.meeting > 0 && s.meeting <= dt {
		s.raise(Curiosity, .9)
		s.raise(Celebration, .4)
	}
	for _, left := range []*float64{&s.talk, &s.startle, &s.meeting, &s.busy, &s.express, &s.hold, &s.faceHold} {
		*left = max(0, *left-dt)
	}
}

func (s *State) raise(f Feeling, by float64) { s.feelings[f] = min(1, s.feelings[f]+by) }

// move interpolates face and head towards their targets.
func (s *State) move(dt float64) {
	to := s.targetMorphs()
	for i := range to {
		s.morphs[i] = toward(s.morphs[i], to[i], morphRate*dt, .001)
	}
	s.mouth = toward(s.mouth, s.talking(), morphRate*dt, .001)
	s.tilt = toward(s.tilt, s.targetTilt(), tiltRate*dt, .05)
	s.lean = toward(s.lean, s.targetLean(), leanRate*dt, .05)
	s.yaw = toward(s.yaw, s.gaze, yawRate*dt, .05)
	s.cover = toward(s.cover, s.targetCover(), morphRate*dt, .001)
	for i, w := range s.preset.expression().morphs {
		s.layer[i] = toward(s.layer[i], w, morphRate*dt, .001)
	}
}

// toward moves by that share of the way, or to the target if less than near is left.
func toward(from, to, share, near float64) float64 {
	if at := from + (to-from)*min(1, share); math.Abs(to-at) >= near {
		return at
	}
	return to
}

func within(x, most float64) float64 { return max(-most, min(most, x)) }

func (s State) talking() float64 {
	if s.talk > 0 {
		return talkingMouth
	}
	return 0
}

func (s State) targetTilt() float64 {
	return s.feelings[Curiosity]*12 + s.feelings[Empathy]*9 + s.feelings[Concern]*4
}

func (s State) targetLean() float64 {
	return (s.feelings[Curiosity]*.03 - s.feelings[Patience]*.02) * 180 / math.Pi
}

func (s State) targetCover() float64 {
	if s.express > 0 {
		return s.covers
	}
	return 0
}

// decide chooses the feeling and the face to show, each for at least a second.
func (s *State) decide() {
	by := hysteresis
	if s.Dominant() == Neutral {
		by = 0 // no feeling is being replaced
	}
	if strongest := s.strongest(); s.hold == 0 && s.strength(strongest) > s.strength(s.Dominant())+by {
		s.dominant, s.hold = strongest+1, showFor
	}
	if face := s.targetFace(); s.faceHold == 0 && face != s.Face() {
		s.face, s.faceHold = face, showFor
	}
}

func (s State) strongest() Feeling {
	best := Neutral
	for f := range feelings {
		if s.strength(Feeling(f)) > s.strength(best) {
			best = Feeling(f)
		}
	}
	return best
}

func (s State) strength(f Feeling) float64 {
	if f == Neutral {
		return s.Neutral()
	}
	return s.feelings[f]
}

func (s State) targetFace() string {
	if s.express > 0 && s.covers >= .5 {
		return s.preset.expression().face
	}
	return s.Dominant().face()
}

// gesticulate starts a gesture unless one is under way: the gesture of the stimulus, or
// else of a strong feeling.
func (s *State) gesticulate() {
	if s.busy > 0 {
		return
	}
	switch {
	case s.gesture.Name != "":
	case s.feelings[Celebration] > gestureAbove:
		s.gesture = Gesture{"celebrate", 2}
	case s.feelings[Concern] > gestureAbove:
		s.gesture = Gesture{"concern", 2}
	case s.feelings[Curiosity] > gestureAbove:
		s.gesture = Gesture{"think", 1.5}
	}
	s.busy = s.gesture.Seconds
}

// Still reports whether time alone changes nothing visible any more, so that nothing
// needs to be computed until the next stimulus.
func (s State) Still() bool {
	if s.feelings != [feelings]float64{} || s.talk > 0 || s.startle > 0 || s.meeting > 0 || s.express > 0 {
		return false
	}
	return s.morphs == s.targetMorphs() && s.mouth == 0 && s.tilt == 0 && s.lean == 0 && s.yaw == s.gaze && s.cover == 0 &&
		s.Dominant() == Neutral && s.Face() == Neutral.face()
}
