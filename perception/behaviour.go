package perception

import (
	"time"

	"perch/event"
)

// behaviour decides how one robot reacts. It reads no clock: it receives every event in
// order and returns the acts to execute.
type behaviour interface {
	// name returns the behaviour's configuration key, or a name for the log.
	name() string
	// step is called with every event of the robot, and without an event at the time that nextStep returns.
	step(m moment) []Act
	// nextStep returns when to call step without an event; the zero time means never.
	nextStep() time.Time
}

// moment is the argument of a behaviour's step: an event or a point in time, and the
// robot's state. A client, in the fields below, is a program that calls the robot's tools.
type moment struct {
	now   time.Time
	local time.Time   // now in the owner's time zone
	event event.Event // nil if only time has passed
	state State       // the state at the time now, after the event

	greetedAt     time.Time // when a face was last greeted
	playedAt      time.Time // when a behaviour last played a sound
	quiet         bool      // whether now is within the quiet hours
	gestureEnds   time.Time // when the gesture under way ends; zero without a gesture
	movedByClient bool      // whether the latest turn of the head was by an agent or a client, not by a behaviour
	litAt         time.Time // when a rule, an agent or a client last set the lights
}

// perceived returns the name of the perception if m.event is a perception, and otherwise "".
func (m moment) perceived() string {
	p, _ := m.event.(event.Perceived)
	return p.Name
}

// idleFor reports whether no turn of a conversation is under way and no person has taken part
// in a conversation for the duration after.
func (m moment) idleFor(after time.Duration) bool {
	return !m.state.conversation.turn && !m.state.inConversation(m.now, after)
}

// hasPassed reports whether at least d has passed since a time. For the zero time it returns
// true.
func (m moment) hasPassed(since time.Time, d time.Duration) bool {
	return since.IsZero() || m.now.Sub(since) >= d
}

// enabledBehaviours returns the behaviours that t enables, highest priority first. They
// keep pointers into t, so later changes of t apply to them.
func enabledBehaviours(t *Tuning, gestures Gestures) []behaviour {
	var enabled []behaviour
	add := func(b behaviour, on bool) {
		if on {
			enabled = append(enabled, b)
		}
	}
	add(&sleeper{QuietTuning: &t.Quiet}, t.Quiet.Sleep)
	add(&greeter{GreeterTuning: &t.Greeter}, t.Greeter.On)
	add(&faceLostAborter{FaceLostTuning: &t.FaceLost}, t.FaceLost.On)
	add(&wakeWordTurner{WakeWordTuning: &t.WakeWord}, t.WakeWord.On)
	add(&soundTurner{SoundTuning: &t.Sound}, t.Sound.On)
	add(&identifiedRefresher{IdentifiedTuning: &t.Identified}, t.Identified.On)
	add(&purrPlayer{PurrTuning: &t.Purr}, t.Purr.On)
	add(&danceReflector{DanceTuning: &t.Dance}, t.Dance.On)
	add(&idleGazer{GazeTuning: &t.Gaze}, t.Gaze.On)
	add(&faceGazer{}, t.Gaze.On)
	return append(enabled, &lookAtTurner{}, &gesturer{gestures: gestures}, &moodDisplay{})
}

// noTimer is embedded in behaviours that react only to events.
type noTimer struct{}

func (noTimer) nextStep() time.Time { return time.Time{} }
