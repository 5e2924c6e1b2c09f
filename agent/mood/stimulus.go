package mood

import (
	"encoding/json"
	"math"

	"perch/event"
)

// Stimulus is the effect of one event on an agent. Step applies it.
type Stimulus struct {
	raises       [feelings]float64 // amount that is added to each feeling
	endsPatience bool              // resets patience before feelings are raised
	isFailure    bool              // prolongs the streak of failures, and raises empathy more for a longer streak
	isFault      bool              // prolongs the streak without raising empathy
	endsStreak   bool              // ends the streak of failures

	startles bool    // shows a startled face for a moment
	hasFace  bool    // a person's face is present
	endsTalk bool    // the agent has stopped talking
	talk     float64 // shortest time that the agent talks, in seconds
	busy     float64 // seconds that a requested gesture takes
	gesture  Gesture // starts, unless another gesture is under way

	hasPreset bool // requests the expression preset
	preset    Preset
	intensity float64 // of preset, from 0 to 1

	looks bool    // turns the head to yaw
	yaw   float64 // degrees
}

// raise returns a stimulus that raises a feeling by an amount.
func raise(f Feeling, amount float64) (s Stimulus) {
	s.raises[f] = amount
	return s
}

// and returns a stimulus like s that also raises another feeling.
func (s Stimulus) and(f Feeling, amount float64) Stimulus {
	s.raises[f] += amount
	return s
}

// Spoken returns the stimulus of a sentence with this sentiment. seconds is how long the
// agent speaks the sentence.
func Spoken(m Sentiment, seconds float64) (s Stimulus) {
	switch {
	case m.Valence > .3:
		s = raise(Celebration, .7*m.Valence)
	case m.Valence < -.2:
		s = raise(Concern, -.8*m.Valence)
	}
	if m.Arousal > .5 {
		s = s.and(Curiosity, .5*m.Arousal)
	}
	if m.Uncertain > 0 {
		s = s.and(Uncertain, min(.4*m.Uncertain, .8))
	}
	s.talk, s.looks = seconds, true
	return s
}

// TalkFor returns the number of seconds that the mouth moves for a sentence with this
// number of words.
func TalkFor(words int) float64 { return max(1.5, .3*float64(words)) }

// Started returns the stimulus of the start of a tool or skill.
func Started() Stimulus { return raise(Patience, .4) }

// Done returns the stimulus of the success of a tool or skill. The sentiment of the result
// is from -1 to 1; nil means unknown.
func Done(sentiment *float64) (s Stimulus) {
	switch {
	case sentiment == nil:
		s = raise(Celebration, .4)
	case *sentiment > .3:
		s = raise(Celebration, .8*min(1, *sentiment))
	case *sentiment < -.2:
		s = raise(Concern, .7*min(1, -*sentiment))
	}
	s.endsStreak = true
	return s
}

// Failed returns the stimulus of the failure of a tool or skill. A longer streak of failures
// raises more empathy.
func Failed() Stimulus {
	s := raise(Concern, .7)
	s.isFailure = true
	return s
}

// withGesture returns a stimulus that also starts a gesture.
func (s Stimulus) withGesture(name string, seconds float64) Stimulus {
	s.gesture = Gesture{name, seconds}
	return s
}

// loadStarted returns the stimulus of a viewer that starts to load a model.
func loadStarted() Stimulus { return raise(Patience, .6).and(Curiosity, .3).withGesture("think", 2) }

// loadEnded returns the stimulus of a viewer that has loaded a model or failed to load it.
func loadEnded(failed bool) Stimulus {
	if failed {
		return raise(Concern, .8)
	}
	return raise(Celebration, .7).and(Curiosity, .5).withGesture("nod", 1)
}

// validated returns the stimulus of a viewer that has validated a model.
func validated(errors, warnings int) Stimulus {
	switch {
	case errors > 0:
		s := raise(Concern, min(.4+.1*float64(errors), .95))
		s.isFault = true
		return s
	case warnings > 0:
		return raise(Concern, .3)
	}
	return raise(Celebration, .85).withGesture("celebrate", 1.5)
}

// emoted returns the stimulus of a feeling that a viewer requests. ok is false for an invalid request.
func emoted(trigger string, weight float64) (s Stimulus, ok bool) {
	f, ok := Named(trigger)
	if !ok || math.IsNaN(weight) {
		return Stimulus{}, false
	}
	return raise(f, clamp(max(0, weight), 1)), true
}

// Interrupted returns the stimulus of a person who interrupts the agent.
func Interrupted() Stimulus {
	s := raise(Curiosity, .5)
	s.endsPatience, s.startles, s.endsTalk, s.looks = true, true, true, true
	return s
}

// FaceSeen returns the stimulus of a person's face. The gaze follows the face, which is in front of
// the agent unless data has a yaw in degrees. Only the first face that an agent sees raises feelings.
func FaceSeen(data json.RawMessage) Stimulus {
	var at struct{ Yaw float64 }
	_ = json.Unmarshal(data, &at) // a firmware may send no data
	return Stimulus{hasFace: true, looks: true, yaw: at.Yaw}
}

// Addressed returns the stimulus of a person who speaks or writes to the agent.
func Addressed() Stimulus {
	s := raise(Curiosity, .07)
	s.looks = true
	return s
}

// Express returns the stimulus of a requested expression.
func Express(p Preset, intensity float64) Stimulus {
	return Stimulus{hasPreset: true, preset: p, intensity: min(1, max(0, intensity))}
}

// Of returns the stimulus of an event. ok is false if the event has no effect. It does not
// handle the agent's speech and tool calls, which depend on more than the event: see Spoken,
// Started, Done and Failed.
func Of(e event.Event) (s Stimulus, ok bool) {
	switch e := e.(type) {
	case event.SkillStarted:
		return Started(), true
	case event.SkillDone:
		return Done(e.Sentiment), true
	case event.SkillFailed:
		return Failed(), true
	case event.LoadStarted:
		return loadStarted(), true
	case event.LoadEnded:
		return loadEnded(e.Error != ""), true
	case event.Validated:
		return validated(e.Errors, e.Warnings), true
	case event.Emote:
		return emoted(e.Trigger, e.Weight)
	case event.LookAt:
		if e.By != event.ByRobot { // a robot looks at a face, which event.Perceived reports as well
			s = raise(Curiosity, .3)
		}
		s.looks = true
		return s, true
	case event.Expression:
		p, ok := PresetNamed(e.Preset)
		return Express(p, e.Intensity), ok
	case event.Gesture:
		return Stimulus{busy: gestureSeconds(e)}, e.By != event.ByMood
	case event.ThinkingStarted:
		return Stimulus{looks: true, yaw: thinkingYaw}, true
	case event.Heard:
		return Addressed(), true
	case event.ListeningStarted, event.TurnEnded:
		return Stimulus{looks: true}, true
	case event.Perceived:
		return FaceSeen(e.Data), e.Name == "face_detected" || e.Name == "face_recognized"
	}
	return Stimulus{}, false
}

// gestureSeconds returns the duration of a requested gesture.
func gestureSeconds(e event.Gesture) float64 {
	if e.Duration <= 0 {
		return 1.5
	}
	return min(float64(e.Duration)/1000, 10)
}

func (s *State) apply(e *Stimulus) {
	if e.endsPatience {
		s.feelings[Patience] = 0
	}
	if e.isFailure || e.isFault {
		s.streak++
	}
	if e.isFailure {
		s.raise(Empathy, min(.25*float64(s.streak), .9))
	}
	if e.endsStreak {
		s.streak = 0
	}
	for f, amount := range e.raises {
		s.raise(Feeling(f), amount)
	}
	if e.startles {
		s.startleLeft = startleDuration
	}
	if e.endsTalk {
		s.talkLeft = 0
	}
	s.talkLeft, s.busyLeft = max(s.talkLeft, e.talk), max(s.busyLeft, e.busy)
	if e.hasFace && !s.met {
		s.met, s.meetingLeft = true, meetingDelay
	}
	if e.looks {
		s.gaze = clamp(e.yaw, maxYaw)
	}
	if e.hasPreset {
		s.setExpression(e.preset, e.intensity)
	}
	if s.busyLeft == 0 {
		s.gesture = e.gesture
	}
}

// setExpression shows an expression instead of the feelings. Plain ends an expression, which
// then fades.
func (s *State) setExpression(p Preset, intensity float64) {
	if p == Plain {
		s.expressionLeft = 0
		return
	}
	if s.cover == 0 {
		s.presetMorphs = p.expression().morphs
	}
	s.preset, s.maxCover, s.expressionLeft = p, intensity, expressionDuration
}
