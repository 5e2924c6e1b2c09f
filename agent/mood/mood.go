// Package mood models the mood of an agent: six feelings that events raise and that decay
// over time, the face and the pose of the head that show them, and the gestures that they
// cause. Step is a pure function; Moods calls it for every robot, and for every session
// without a robot. docs/character.md describes the visible behaviour.
package mood

import (
	"math"

	"perch/event"
)

// Feeling is one of the six feelings, or Neutral.
type Feeling int

// The feelings. If two are equally strong, the first is dominant.
const (
	Neutral Feeling = iota - 1
	Concern
	Celebration
	Patience
	Curiosity
	Empathy
	Uncertain
	feelings = iota - 1 // number of feelings without Neutral
)

// String returns the feeling's name in events.
func (f Feeling) String() string {
	if f < 0 || f >= feelings {
		return "neutral"
	}
	return [feelings]string{"concern", "celebration", "patience", "curiosity", "empathy", "uncertain"}[f]
}

// Named returns the feeling with this name. ok is false for an unknown name, and for
// "neutral", which cannot be raised.
func Named(name string) (f Feeling, ok bool) {
	for f = range feelings {
		if f.String() == name {
			return f, true
		}
	}
	return Neutral, false
}

// decay returns how much each feeling decreases per second.
func decay() [feelings]float64 { return [feelings]float64{.08, .18, .035, .12, .055, .10} }

// face returns the firmware's name of the face for a feeling.
func (f Feeling) face() string {
	if f < 0 || f >= feelings {
		return "neutral"
	}
	return [feelings]string{"sad", "happy", "relaxed", "thinking", "loving", "confused"}[f]
}

// Constants of the face, the head and the gestures. A rate, multiplied by the seconds of a
// step, is the share of the remaining distance to the target that the step covers.
const (
	morphRate = 4
	tiltRate  = 3
	leanRate  = 2
	yawRate   = .08 * 60 // 8 % of the distance in each of 60 frames a second

	maxYaw, maxTilt, maxLean = 45, 25, 25 // degrees

	talkingMouthOpen   = .4                   // weight of mouthOpen
	startleDuration    = .6                   // seconds
	startledBrow       = .9                   // weight of browInnerUp
	startledJaw        = .3                   // weight of mouthOpen
	meetingDelay       = .6                   // seconds from the first sight of a person's face until it raises feelings
	expressionDuration = 6                    // seconds until an expression fades
	thinkingYaw        = -.15 * 180 / math.Pi // -0.15 radians, in degrees

	hysteresis = .15 // a feeling that is stronger by more than this replaces the dominant feeling
	minShown   = 1   // shortest time that a dominant feeling or a face is shown, in seconds

	gestureThreshold = .6 // celebration, concern or curiosity above this causes a gesture
)

// State is the mood of one agent and its visible form. The zero value is neutral. State is a
// value: Step never modifies its argument.
type State struct {
	feelings [feelings]float64 // each from 0 to 1
	streak   int               // consecutive failures
	met      bool              // whether the agent has seen a person's face

	// Visible values, which approach their targets over time.
	morphs morphs  // weights of the feelings
	mouth  float64 // weight of mouthOpen due to talking
	tilt   float64 // degrees
	lean   float64 // degrees
	yaw    float64 // degrees
	gaze   float64 // target of yaw in degrees

	preset         Preset  // the expression that is shown instead of the feelings
	presetMorphs   morphs  // weights of the expression, which approach those of preset
	cover          float64 // opacity of the expression, from 0 to 1
	maxCover       float64 // target of cover while expressionLeft is not 0
	expressionLeft float64 // seconds until the expression fades

	talkLeft    float64 // seconds until the agent stops talking
	startleLeft float64 // seconds until the startled face ends
	meetingLeft float64 // seconds until the first person's face raises feelings
	busyLeft    float64 // seconds until the gesture under way ends

	dominant     Feeling // the dominant feeling plus 1, so that the zero value means Neutral
	face         string  // the firmware's name of the face; "" means neutral
	dominantHold float64 // seconds until dominant may change
	faceHold     float64 // seconds until face may change

	gesture Gesture // gesture that starts with the latest step
}

// Gesture is a gesture that has one of two causes: a feeling, or a viewer that loads or
// validates a model.
type Gesture struct {
	Name    string // celebrate, concern, think or nod; "" means no gesture
	Seconds float64
}

// Gesture returns the gesture that starts with the latest step.
func (s State) Gesture() Gesture { return s.gesture }

// Dominant returns the dominant feeling, which determines the face.
func (s State) Dominant() Feeling { return s.dominant - 1 }

// Face returns the firmware's name of the face for the expression, or else for the dominant
// feeling.
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

// Head returns the angles of the head, limited to a human neck's range.
func (s State) Head() event.HeadPose {
	return event.HeadPose{Tilt: clamp(s.tilt, maxTilt), Lean: clamp(s.lean, maxLean), Yaw: clamp(s.yaw, maxYaw)}
}

// Feelings returns the six feelings and neutral, each from 0 to 1.
func (s State) Feelings() event.Feelings {
	f := s.feelings
	return event.Feelings{Neutral: s.Neutral(), Concern: f[Concern], Celebration: f[Celebration], Patience: f[Patience], Curiosity: f[Curiosity],
		Empathy: f[Empathy], Uncertain: f[Uncertain]}
}

// Mood returns the published form of the state.
func (s State) Mood() event.Mood {
	return event.Mood{Dominant: s.Dominant().String(), Face: s.Face(), Feelings: s.Feelings(), Morphs: s.shownMorphs().event(), Head: s.Head()}
}

// Step returns the state after dt seconds have passed and the stimulus has then been
// applied. The zero Stimulus has no effect. Step does not allocate memory.
func Step(s State, stimulus Stimulus, dt float64) State {
	if !(dt > 0) { // also excludes NaN
		dt = 0
	}
	s.gesture = Gesture{}
	s.fade(dt)
	s.move(dt)
	s.apply(&stimulus)
	s.chooseShown()
	s.startGesture()
	return s
}

// fade advances the feelings and the timers by dt seconds.
func (s *State) fade(dt float64) {
	for i, rate := range decay() {
		s.feelings[i] = max(0, s.feelings[i]-rate*dt)
	}
	if s.meetingLeft > 0 && s.meetingLeft <= dt {
		s.raise(Curiosity, .9)
		s.raise(Celebration, .4)
	}
	for _, left := range []*float64{&s.talkLeft, &s.startleLeft, &s.meetingLeft, &s.busyLeft, &s.expressionLeft, &s.dominantHold, &s.faceHold} {
		*left = max(0, *left-dt)
	}
}

// raise raises a feeling by an amount, at most to 1.
func (s *State) raise(f Feeling, amount float64) { s.feelings[f] = min(1, s.feelings[f]+amount) }

// move moves the face and the head towards their targets for dt seconds.
func (s *State) move(dt float64) {
	target := s.targetMorphs()
	for i := range target {
		s.morphs[i] = approach(s.morphs[i], target[i], morphRate*dt, .001)
	}
	s.mouth = approach(s.mouth, s.targetMouth(), morphRate*dt, .001)
	s.tilt = approach(s.tilt, s.targetTilt(), tiltRate*dt, .05)
	s.lean = approach(s.lean, s.targetLean(), leanRate*dt, .05)
	s.yaw = approach(s.yaw, s.gaze, yawRate*dt, .05)
	s.cover = approach(s.cover, s.targetCover(), morphRate*dt, .001)
	for i, w := range s.preset.expression().morphs {
		s.presetMorphs[i] = approach(s.presetMorphs[i], w, morphRate*dt, .001)
	}
}

// approach moves the value from towards the value to, by a share of their distance, and
// returns the result. If less than near would remain, the result is the value to.
func approach(from, to, share, near float64) float64 {
	if x := from + (to-from)*min(1, share); math.Abs(to-x) >= near {
		return x
	}
	return to
}

// clamp limits x to the range from -limit to limit.
func clamp(x, limit float64) float64 { return max(-limit, min(limit, x)) }

func (s State) targetMouth() float64 {
	if s.talkLeft > 0 {
		return talkingMouthOpen
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
	if s.expressionLeft > 0 {
		return s.maxCover
	}
	return 0
}

// chooseShown chooses the dominant feeling and the face. Both remain for at least minShown
// seconds.
func (s *State) chooseShown() {
	margin := hysteresis
	if s.Dominant() == Neutral {
		margin = 0 // any feeling stronger than Neutral becomes dominant
	}
	if strongest := s.strongest(); s.dominantHold == 0 && s.strength(strongest) > s.strength(s.Dominant())+margin {
		s.dominant, s.dominantHold = strongest+1, minShown
	}
	if face := s.targetFace(); s.faceHold == 0 && face != s.Face() {
		s.face, s.faceHold = face, minShown
	}
}

// strongest returns the strongest feeling, or Neutral.
func (s State) strongest() Feeling {
	strongest := Neutral
	for f := range feelings {
		if s.strength(Feeling(f)) > s.strength(strongest) {
			strongest = Feeling(f)
		}
	}
	return strongest
}

// strength returns the strength of a feeling, from 0 to 1.
func (s State) strength(f Feeling) float64 {
	if f == Neutral {
		return s.Neutral()
	}
	return s.feelings[f]
}

// targetFace returns the face to show.
func (s State) targetFace() string {
	if s.expressionLeft > 0 && s.maxCover >= .5 {
		return s.preset.expression().face
	}
	return s.Dominant().face()
}

// startGesture starts the gesture of the stimulus, or else of a strong feeling, unless a
// gesture is under way.
func (s *State) startGesture() {
	if s.busyLeft > 0 {
		return
	}
	switch {
	case s.gesture.Name != "":
	case s.feelings[Celebration] > gestureThreshold:
		s.gesture = Gesture{"celebrate", 2}
	case s.feelings[Concern] > gestureThreshold:
		s.gesture = Gesture{"concern", 2}
	case s.feelings[Curiosity] > gestureThreshold:
		s.gesture = Gesture{"think", 1.5}
	}
	s.busyLeft = s.gesture.Seconds
}

// Still reports whether the visible state remains the same until the next stimulus.
func (s State) Still() bool {
	if s.feelings != [feelings]float64{} || s.talkLeft > 0 || s.startleLeft > 0 || s.meetingLeft > 0 || s.expressionLeft > 0 {
		return false
	}
	return s.morphs == s.targetMorphs() && s.mouth == 0 && s.tilt == 0 && s.lean == 0 && s.yaw == s.gaze && s.cover == 0 &&
		s.Dominant() == Neutral && s.Face() == Neutral.face()
}
