package mood

import (
	"math"

	"perch/event"
)

// Stimulus is the effect of one event on an agent.
type Stimulus struct {
	raises [feelings]float64 // by how much each feeling rises
	calms  bool              // ends patience, before anything is raised
	fails  bool              // a failure, which is felt the more the longer the streak of them is
	faulty bool              // a failure of the streak that is felt as something else
	ends   bool              // ends the streak

	startles bool
	meets    bool    // a face is present
	hushes   bool    // the agent has stopped talking
	talk     float64 // minimum seconds of talking
	busy     float64 // seconds that a gesture takes
	gesture  Gesture // that accompanies it, unless another is under way

	expresses bool
	preset    Preset
	intensity float64 // from 0 to 1

	looks bool
	yaw   float64 // degrees
}

func raised(f Feeling, by float64) (s Stimulus) {
	s.raises[f] = by
	return s
}

// and returns a stimulus that also raises another feeling.
func (s Stimulus) and(f Feeling, by float64) Stimulus {
	s.raises[f] += by
	return s
}

// Spoken returns the stimulus of a sentence that the agent takes that long to say.
func Spoken(m Sentiment, seconds float64) (s Stimulus) {
	switch {
	case m.Valence > .3:
		s = raised(Celebration, .7*m.Valence)
	case m.Valence < -.2:
		s = raised(Concern, -.8*m.Valence)
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

// TalkFor returns for how many seconds the mouth moves for a sentence of so many words.
func TalkFor(words int) float64 { return max(1.5, .3*float64(words)) }

// Started returns the stimulus of a tool or skill that starts.
func Started() Stimulus { return raised(Patience, .4) }

// Done returns the stimulus of a tool or skill that succeeded. Sentiment is from -1 to
// 1, or nil if unknown.
func Done(sentiment *float64) (s Stimulus) {
	switch {
	case sentiment == nil:
		s = raised(Celebration, .4)
	case *sentiment > .3:
		s = raised(Celebration, .8*min(1, *sentiment))
	case *sentiment < -.2:
		s = raised(Concern, .7*min(1, -*sentiment))
	}
	s.ends = true
	return s
}

// Failed returns the stimulus of a tool or skill that failed. A longer streak raises more empathy.
func Failed() Stimulus {
	s := raised(Concern, .7)
	s.fails = true
	return s
}

// with returns a stimulus that causes a gesture, regardless of the feeling's strength.
func (s Stimulus) with(gesture string, seconds float64) Stimulus {
	s.gesture = Gesture{gesture, seconds}
	return s
}

// loadStarted, loadEnded and validated are a viewer's events about a model.
func loadStarted() Stimulus { return raised(Patience, .6).and(Curiosity, .3).with("think", 2) }

func loadEnded(failed bool) Stimulus {
	if failed {
		return raised(Concern, .8)
	}
	return raised(Celebration, .7).and(Curiosity, .5).with("nod", 1)
}

func validated(errors, warnings int) Stimulus {
	switch {
	case errors > 0:
		s := raised(Concern, min(.4+.1*float64(errors), .95))
		s.faulty = true // regardless of how many
		return s
	case warnings > 0:
		return raised(Concern, .3)
	}
	return raised(Celebration, .85).with("celebrate", 1.5)
}

// emoted returns the stimulus that a viewer requests.
func emoted(trigger string, weight float64) (Stimulus, bool) {
	f, ok := Named(trigger)
	if !ok || math.IsNaN(weight) {
		return Stimulus{}, false
	}
	return raised(f, within(max(0, weight), 1)), true
}

// Interrupted returns the stimulus of a person who interrupts the agent.
func Interrupted() Stimulus {
	s := raised(Curiosity, .5)
	s.calms, s.startles, s.hushes, s.looks = true, true, true, true
	return s
}

// FaceSeen returns the stimulus of a face. Only the first one has an effect.
func FaceSeen() Stimulus { return Stimulus{meets: true} }

// Addressed returns the stimulus of a person who addresses the agent, by a word or a key.
func Addressed() Stimulus {
	s := raised(Curiosity, .07)
	s.looks = true
	return s
}

// Express returns the stimulus of a requested expression.
func Express(p Preset, intensity float64) Stimulus {
	return Stimulus{expresses: true, preset: p, intensity: min(1, max(0, intensity))}
}

// Of returns the stimulus of an event. ok is false for events without effect. Speech
// and tool calls need more context: see Spoken, Started, Done and Failed.
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
		s = raised(Curiosity, .3)
		s.looks = true
		return s, true
	case event.Expression:
		p, known := PresetNamed(e.Preset)
		return Express(p, e.Intensity), known
	case event.Gesture:
		return Stimulus{busy: gestureSeconds(e)}, e.By != event.ByMood
	case event.ThinkingStarted:
		return Stimulus{looks: true, yaw: thinkingYaw}, true
	case event.Heard:
		return Addressed(), true
	case event.ListeningStarted, event.TurnEnded:
		return Stimulus{looks: true}, true
	case event.Perceived:
		return FaceSeen(), e.Name == "face_detected" || e.Name == "face_recognized"
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

// feel applies a stimulus.
func (s *State) feel(e *Stimulus) {
	if e.calms {
		s.feelings[Patience] = 0
	}
	if e.fails || e.faulty {
		s.streak++
	}
	if e.fails {
		s.raise(Empathy, min(.25*float64(s.streak), .9))
	}
	if e.ends {
		s.streak = 0
	}
	for f, by := range e.raises {
		s.raise(Feeling(f), by)
	}
	if e.startles {
		s.startle = startleFor
	}
	if e.hushes {
		s.talk = 0
	}
	s.talk, s.busy = max(s.talk, e.talk), max(s.busy, e.busy)
	if e.meets && !s.met {
		s.met, s.meeting = true, meetingAfter
	}
	if e.looks {
		s.gaze = within(e.yaw, mostYaw)
	}
	if e.expresses {
		s.setExpression(e.preset, e.intensity)
	}
	if s.busy == 0 {
		s.gesture = e.gesture
	}
}

// setExpression puts an expression over the feelings. The face moves from a previous
// expression, or starts at once from the feelings.
func (s *State) setExpression(p Preset, intensity float64) {
	if p == Plain {
		s.express = 0 // the previous face fades
		return
	}
	if s.cover == 0 {
		s.layer = p.expression().morphs
	}
	s.preset, s.covers, s.express = p, intensity, expressFor
}
