package perception

import (
	"time"

	"perch/event"
)

// behaviour reacts for one robot. It reads no clock: it receives every event in
// order, and returns the acts to execute.
type behaviour interface {
	// name returns its key in the configuration.
	name() string
	// step receives an event, or the time that nextStep requested.
	step(m moment) []Act
	// nextStep returns when to call step without an event; the zero time means never.
	nextStep() time.Time
}

// moment is an event of a robot, with the state at that time.
type moment struct {
	now   time.Time
	local time.Time   // the same, in the owner's time zone
	event event.Event // nil if only time has passed
	state State       // at now, including the event

	greeted time.Time // a face was last greeted
	played  time.Time // a sound was last played
	quiet   bool      // the quiet hours are on
	poses   time.Time // when the gesture under way ends
	moved   bool      // an agent or a client was the last to turn the head
	lit     time.Time // when a rule, an agent or a client last set the lights
}

// perceived returns the name of what was sensed, or "" for other events.
func (m moment) perceived() string {
	p, _ := m.event.(event.Perceived)
	return p.Name
}

// idleFor reports whether nobody has talked for that long, and the robot is silent.
func (m moment) idleFor(after time.Duration) bool {
	return !m.state.talk.turn && !m.state.talking(m.now, after)
}

// passed reports whether d has passed since a time. It is true for the zero time.
func (m moment) passed(since time.Time, d time.Duration) bool {
	return since.IsZero() || m.now.Sub(since) >= d
}

// behaviours returns the enabled behaviours, in the order of their priority. They
// observe later changes of the tuning.
func behaviours(t *Tuning, known Gestures) []behaviour {
	var on []behaviour
	add := func(b behaviour, wanted bool) {
		if wanted {
			on = append(on, b)
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
	on = append(on, &looker{}, &gesturer{known: known}, &moodDisplay{})
	return on
}

// noTimer is embedded by behaviours that only react to events.
type noTimer struct{}

func (noTimer) nextStep() time.Time { return time.Time{} }
