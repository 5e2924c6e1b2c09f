package perception

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"perch/event"
	"perch/must"
)

func TestHoursInTheOwnersZone(t *testing.T) {
	tuning := DefaultTuning()
	c := newReactor(Options{Tuning: tuning, Zone: time.FixedZone("far", 9*3600)})
	c.handleEvent(envelope(noon, event.RobotOnline{}))
	if requests := c.handleEvent(envelope(noon, scriptEvent(t, "face"))); len(requests) != 1 || requests[0].act != (Look{"user"}) { // no greeting, because it is 21:00 in this zone
		t.Errorf("it does %v", requests)
	}
}

func TestTuningCheck(t *testing.T) {
	must.Succeed(t, DefaultTuning().Check())
	for want, spoil := range map[string]func(*Tuning){
		"greeter.hello: ":         func(t *Tuning) { t.Greeter.Hello = strings.Repeat("x", 501) },
		"greeter.named: ":         func(t *Tuning) { t.Greeter.Named = "Hello, you!" },
		"greeter.every: ":         func(t *Tuning) { t.Greeter.Every = 0 },
		"greeter.every_name: ":    func(t *Tuning) { t.Greeter.EveryName = 25 * hour },
		"greeter.after_talk: ":    func(t *Tuning) { t.Greeter.AfterTalk = -1 },
		"face_lost.grace: ":       func(t *Tuning) { t.FaceLost.Grace = math.MinInt64 },
		"face_lost.within: ":      func(t *Tuning) { t.FaceLost.Within = math.MaxInt64 },
		"sound.yaw: ":             func(t *Tuning) { t.Sound.Yaw = 129 },
		"sound.pitch: ":           func(t *Tuning) { t.Sound.Pitch = -1 },
		"sound.speed: ":           func(t *Tuning) { t.Sound.Speed = 99 },
		"sound.every: ":           func(t *Tuning) { t.Sound.Every = time.Millisecond },
		"wake_word.speed: ":       func(t *Tuning) { t.WakeWord.Speed = 1001 },
		"identified.every: ":      func(t *Tuning) { t.Identified.Every = 0 },
		"purr.sound: ":            func(t *Tuning) { t.Purr.Sound = "../../etc/passwd" },
		"dance.text: ":            func(t *Tuning) { t.Dance.Text = strings.Repeat("x", 501) },
		"gaze.every: ":            func(t *Tuning) { t.Gaze.Every = 0 },
		"quiet.sleep: there are ": func(t *Tuning) { t.Quiet.Sleep = true },
	} {
		tuning := DefaultTuning()
		spoil(&tuning)
		if err := tuning.Check(); !errors.Is(err, ErrTuning) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v", want, err)
		}
	}
	var nothing Tuning
	if err := nothing.Check(); strings.Count(err.Error(), "\n") < 8 {
		t.Errorf("not all faults are reported at once: %v", err)
	}
}

func TestHeadReservation(t *testing.T) {
	var h head
	for i, c := range []struct {
		at   time.Duration
		by   Priority
		hold time.Duration
		want bool
	}{
		{0, PriorityIdle, 0, true},
		{0, PriorityIdle, 0, true}, // a hold of 0 reserves nothing
		{1, PrioritySound, 5, true},
		{2, PriorityIdle, 0, false},
		{3, PrioritySound, 5, false},
		{3, PriorityWakeWord, 3, true},
		{5, PrioritySound, 5, false},
		{6, PrioritySound, 5, true},
		{7, PriorityRule, 5, true},
		{11, PriorityWakeWord, 3, false},
		{12, PriorityIdle, 0, true},
	} {
		if got := h.reserve(noon.Add(c.at), c.by, c.hold); got != c.want {
			t.Errorf("%d: at %d it is %t", i, c.at, got)
		}
	}
}
