package perception

import (
	"testing"
	"time"
)

const (
	hour   = time.Hour
	minute = time.Minute
)

func TestSoundTurner(t *testing.T) {
	act(t, []string{"sound", "purr"}, []scene{
		{"on the left", "", nil, "0s sound left", "0s turn -45"},
		{"on the right", "", nil, "0s sound right", "0s turn 45"},
		{"before it", "", nil, "0s sound centre", "0s turn 0"},
		{"spelled otherwise", "", nil, "0s sound center", "0s turn 0"},
		{"nowhere", "", nil, `0s sound up; 1s sound_event {}; 2s sound_event {"direction":3}`, ""},
		{"too soon again", "", nil, "0s sound left; 2.9s sound right", "0s turn -45"},
		{"again", "", nil, "0s sound left; 3s sound right", "0s turn -45; 3s turn 45"},
		{"somebody is there", "", nil, "0s face; 1s sound left", ""},
		{"nobody is there any more", "", nil, "0s face; 1s lost; 2s sound left", "2s turn -45"},
		{"somebody talks with it", "", nil, "0s heard x; 50s sound left", ""},
		{"a talk is just over", "", nil, "0s heard x; 1s ends; 30.9s sound left", ""},
		{"a talk is over", "", nil, "0s heard x; 1s ends; 31s sound left", "31s turn -45"},
		{"a closed channel ends a talk", "", nil, "0s heard x; 1s offline; 2s online; 20s sound left; 31s sound left", "31s turn -45"},
		{"the talk of a channel that another has replaced", "", nil, "0s heard x; 1s online; 40s sound left", "40s turn -45"},
		{"it hears itself", "", nil, "0s speaks; 1s sound left", ""},
		{"it hears itself no more", "", nil, "0s speaks; 1s ends; 2s sound left", "2s turn -45"},
		{"it has purred", "", nil, "0s pet; 31.9s sound left", "0s play purr"},
		{"it has purred a while ago", "", nil, "0s pet; 32s sound left", "0s play purr; 32s turn -45"},
		{"it dances", "", nil, "0s mode dance; 1s sound left", ""},
		{"it sleeps", "", nil, "0s mode sleep; 1s sound left", ""},
		{"at night", "22:00", nightly, "0s sound left", ""},
		{"in the morning", "07:00", nightly, "0s sound left", "0s turn -45"},
		{"a night does not count", "06:59", nightly, "59s sound left; 60s sound left", "1m0s turn -45"},
		{"a face that was there long ago", "", nil, "0s face; 299s .; 300s sound left", "5m0s turn -45"},
		{"other numbers", "", func(t *Tuning) { t.Sound.Yaw, t.Sound.Every = 30, time.Second }, "0s sound left; 1s sound right",
			"0s turn -30; 1s turn 30"},
	})
}

func TestSoundTurnerTurnsAsTheFirmwareWants(t *testing.T) {
	c := newCreature(Options{Tuning: DefaultTuning(), Zone: time.UTC})
	play(t, c, "", "0s .")
	deeds := c.take(envelope(noon.Add(time.Second), happening(t, "sound left")))
	turn := deeds[0].act.(TurnHead)
	if turn.Speed != 250 || turn.Pitch == nil || *turn.Pitch != 0 {
		t.Errorf("it turns with %+v", turn)
	}
}
