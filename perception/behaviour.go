package perception

import (
	"time"

	"perch/event"
)

// behaviour reacts for one robot. It reads no clock: it receives every event in
// order, and returns the acts to carry out.
type behaviour interface {
	// name is its key in the configuration.
	name() string
	// step receives an event, or the time that due asked for.
	step(m moment) []Act
	// due is when step is to be called without an event; the zero time is never.
	due() time.Time
}

// moment is something that happens to a robot, and what is known then.
type moment struct {
	now   time.Time
	local time.Time   // the same, in the owner's time zone
	event event.Event // nil if only time has passed
	state State       // as it is at now, with the event in it

	greeted time.Time // a face was last greeted
	played  time.Time // a sound was last played
	quiet   bool      // the quiet hours are on
	poses   time.Time // a gesture is under way until then
	told    bool      // an agent or a client has last turned the head
	lit     time.Time // somebody has lit the lights: a rule, an agent or a client
}

// perceived is the name of what was sensed, and nothing for any other moment.
func (m moment) perceived() string {
	p, _ := m.event.(event.Perceived)
	return p.Name
}

// free reports whether no person talked for that long, and the robot is silent.
func (m moment) free(after time.Duration) bool {
	return !m.state.talk.turn && !m.state.talking(m.now, after)
}

// passed reports whether d has passed since a time. It is true for the zero time.
func (m moment) passed(since time.Time, d time.Duration) bool {
	return since.IsZero() || m.now.Sub(since) >= d
}

// behaviours are those that are enabled, in the order in which they are asked. They
// follow what is written into the tuning.
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
	on = append(on, &looker{}, &gesturer{known: known}, &wearer{})
	return on
}

// never is the due of a behaviour that only reacts.
type never struct{}

func (never) due() time.Time { return time.Time{} }
