// Package mood is what an agent feels: six feelings that happenings raise and that fade
// by themselves, the face and the head that show them, and the gestures they bring
// about. Step is pure; Moods runs it for every robot and for every session without one.
// docs/character.md says what an owner sees of it.
package mood

import (
	"math"

	"perch/event"
)

// Feeling is one of the six. Neutral is none of them: it is what they leave.
type Feeling int

// The feelings, in the order in which the first of two equal ones shows.
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

// Named is the feeling of that name. ok is false for any other name, and for neutral,
// which nothing can raise.
func Named(name string) (f Feeling, ok bool) {
	for f = range feelings {
		if f.String() == name {
			return f, true
		}
	}
	return Neutral, false
}

// decay is what each feeling loses a second.
func decay() [feelings]float64 { return [feelings]float64{.08, .18, .035, .12, .055, .10} }

// face is the firmware's emotion for a feeling.
func (f Feeling) face() string {
	if f < 0 || f >= feelings {
		return "neutral"
	}
	return [feelings]string{"sad", "happy", "relaxed", "thinking", "loving", "confused"}[f]
}

// Figures of what shows. Rates are the share of the way that is left to go, a second.
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
	meetingAfter = .6 // seconds from the first face to the joy of it
	expressFor   = 6  // seconds that an expression stays before it fades
	thinkingYaw  = -.15 * 180 / math.Pi

	hysteresis = .15 // by this much a feeling has to be stronger than the one that shows
	showFor    = 1   // seconds, at least, that a dominant feeling or a face shows

	gestureAbove = .6
)

// State is what one agent feels and shows. The zero value feels nothing. It is a value:
// Step never changes one it was given.
type State struct {
	feelings [feelings]float64 // each from 0 to 1
	streak   int               // failures since something was done
	met      bool              // a face has been seen

	morphs morphs  // of the feelings, on their way
	mouth  float64 // what talking adds to the open mouth, on its way
	tilt   float64 // degrees, on their way
	lean   float64
	yaw    float64
	gaze   float64 // degrees that the yaw goes to

	preset  Preset  // the expression that lies over the feelings
	layer   morphs  // its morphs, on their way from those of the one before
	cover   float64 // from 0 to 1: how much of the face it covers
	covers  float64 // what cover goes to, while express lasts
	express float64 // seconds left, as all that follow

	talk    float64
	startle float64
	meeting float64 // until the joy of the first face
	busy    float64 // of the gesture that is being made

	dominant Feeling // plus 1, so that the zero value is neutral
	face     string  // empty is neutral
	hold     float64 // seconds that dominant goes on showing, at least
	faceHold float64

	gesture Gesture // that begins with this step
}

// Gesture is one that a feeling brings about, or what a viewer does with a model.
type Gesture struct {
	Name    string // celebrate, concern, think or nod; empty is none
	Seconds float64
}

// Gesture is the one that begins with the step that made the state.
func (s State) Gesture() Gesture { return s.gesture }

// Dominant is the feeling that shows.
func (s State) Dominant() Feeling { return s.dominant - 1 }

// Face is the firmware's emotion that shows: the expression's, or the feeling's.
func (s State) Face() string {
	if s.face == "" {
		return Neutral.face()
	}
	return s.face
}

// Neutral is what the feelings leave of 1, and 0 at least.
func (s State) Neutral() float64 {
	sum := 0.
	for _, f := range s.feelings {
		sum += f
	}
	return max(0, 1-sum)
}

// Head are the angles of the head, within the bounds of a neck.
func (s State) Head() event.HeadPose {
	return event.HeadPose{Tilt: within(s.tilt, mostTilt), Lean: within(s.lean, mostLean), Yaw: within(s.yaw, mostYaw)}
}

// Feelings are the six and what they leave, each from 0 to 1.
func (s State) Feelings() event.Feelings {
	f := s.feelings
	return event.Feelings{Neutral: s.Neutral(), Concern: f[Concern], Celebration: f[Celebration], Patience: f[Patience], Curiosity: f[Curiosity],
		Empathy: f[Empathy], Uncertain: f[Uncertain]}
}

// Mood is all of it that is told to others.
func (s State) Mood() event.Mood {
	return event.Mood{Dominant: s.Dominant().String(), Face: s.Face(), Feelings: s.Feelings(), Morphs: s.shown().event(), Head: s.Head()}
}

// Step is the state after dt seconds at whose end all of that happened. The order of
// what happened does not matter. It allocates nothing.
func Step(s State, happened []Stimulus, dt float64) State {
	if !(dt > 0) { // NaN, too
		dt = 0
	}
	s.gesture = Gesture{}
	s.fade(dt)
	s.move(dt)
	s.feel(happened)
	s.decide()
	s.gesticulate()
	return s
}

// fade lets time pass over feelings and what lasts for a while.
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

// move brings face and head on their way to where the feelings want them.
func (s *State) move(dt float64) {
	to := s.wanted()
	for i := range to {
		s.morphs[i] = toward(s.morphs[i], to[i], morphRate*dt, .001)
	}
	s.mouth = toward(s.mouth, s.talking(), morphRate*dt, .001)
	s.tilt = toward(s.tilt, s.wantedTilt(), tiltRate*dt, .05)
	s.lean = toward(s.lean, s.wantedLean(), leanRate*dt, .05)
	s.yaw = toward(s.yaw, s.gaze, yawRate*dt, .05)
	s.cover = toward(s.cover, s.wantedCover(), morphRate*dt, .001)
	for i, w := range s.preset.morphs() {
		s.layer[i] = toward(s.layer[i], w, morphRate*dt, .001)
	}
}

// toward goes that share of the way, and all of it where less than near is left.
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

func (s State) wantedTilt() float64 {
	return s.feelings[Curiosity]*12 + s.feelings[Empathy]*9 + s.feelings[Concern]*4
}

func (s State) wantedLean() float64 {
	return (s.feelings[Curiosity]*.03 - s.feelings[Patience]*.02) * 180 / math.Pi
}

func (s State) wantedCover() float64 {
	if s.express > 0 {
		return s.covers
	}
	return 0
}

// decide chooses the feeling and the face that show. Each stays a second at least.
func (s *State) decide() {
	by := hysteresis
	if s.Dominant() == Neutral {
		by = 0 // no feeling has to give way
	}
	if strongest := s.strongest(); s.hold == 0 && s.strength(strongest) > s.strength(s.Dominant())+by {
		s.dominant, s.hold = strongest+1, showFor
	}
	if face := s.wantedFace(); s.faceHold == 0 && face != s.Face() {
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

func (s State) wantedFace() string {
	if s.express > 0 && s.covers >= .5 {
		return s.preset.face()
	}
	return s.Dominant().face()
}

// gesticulate begins a gesture where none is being made: that of what has happened, or
// that of a feeling that is strong.
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

// Still reports whether time alone changes nothing that shows any more: nothing needs
// to be computed until something happens.
func (s State) Still() bool {
	if s.feelings != [feelings]float64{} || s.talk > 0 || s.startle > 0 || s.meeting > 0 || s.express > 0 {
		return false
	}
	return s.morphs == s.wanted() && s.mouth == 0 && s.tilt == 0 && s.lean == 0 && s.yaw == s.gaze && s.cover == 0 &&
		s.Dominant() == Neutral && s.Face() == Neutral.face()
}
