package perception

import (
	"time"

	"perch/event"
)

// behaviour is one way of reacting, for one robot. It reads no clock and does
// nothing itself: it is told of everything that happens, in order, and says
// what is to be done.
type behaviour interface {
	// name is its key in the configuration.
	name() string
	// step is told what has happened, or that its time has come.
	step(m moment) []Act
	// due is when it wants to be told that its time has come; the zero time is
	// never.
	due() time.Time
}

// moment is something that happens to a robot, and what is known then.
type moment struct {
	now   time.Time
	local time.Time   // the same, by the house's clock
	event event.Event // nil where only time has passed
	state State       // as it is at now, with the event in it

	greeted time.Time // a face was last greeted
	played  time.Time // a sound was last played
	quiet   bool      // the quiet hours are on
}

// perceived is the name of what was sensed, and nothing for any other moment.
func (m moment) perceived() string {
	p, _ := m.event.(event.Perceived)
	return p.Name
}

// free tells whether nobody has been talked with for so long, and the robot
// says nothing by itself either.
func (m moment) free(after time.Duration) bool {
	return !m.state.talk.turn && !m.state.talking(m.now, after)
}

// passed tells whether so long has gone by since something, which may never
// have been.
func (m moment) passed(since time.Time, d time.Duration) bool {
	return since.IsZero() || m.now.Sub(since) >= d
}

// behaviours are those that are switched on. What is first is asked first.
func behaviours(t Tuning) []behaviour {
	var on []behaviour
	add := func(b behaviour, wanted bool) {
		if wanted {
			on = append(on, b)
		}
	}
	add(&sleeper{QuietTuning: t.Quiet}, t.Quiet.Sleep)
	add(&greeter{GreeterTuning: t.Greeter}, t.Greeter.On)
	add(&faceLostAborter{FaceLostTuning: t.FaceLost}, t.FaceLost.On)
	add(&wakeWordTurner{WakeWordTuning: t.WakeWord}, t.WakeWord.On)
	add(&soundTurner{SoundTuning: t.Sound}, t.Sound.On)
	add(&identifiedRefresher{IdentifiedTuning: t.Identified}, t.Identified.On)
	add(&purrPlayer{PurrTuning: t.Purr}, t.Purr.On)
	add(&danceReflector{DanceTuning: t.Dance}, t.Dance.On)
	add(&idleGazer{GazeTuning: t.Gaze}, t.Gaze.On)
	return on
}

// never is the due of a behaviour that only reacts.
type never struct{}

func (never) due() time.Time { return time.Time{} }
