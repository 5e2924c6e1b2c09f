package perception

import (
	"fmt"
	"testing"
	"time"

	"perch/event"
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

func TestWakeWordTurner(t *testing.T) {
	act(t, []string{"wake_word", "sound"}, []scene{
		{"from the left", "", nil, "0s called left", "0s turn -45"},
		{"from the right", "", nil, "0s called right", "0s turn 45"},
		{"from the front", "", nil, "0s called centre", ""},
		{"from nowhere", "", nil, "0s wake_word_detected {}; 1s wake_word {}", ""},
		{"from nowhere, after a sound", "", func(t *Tuning) { t.Sound.On = false }, "0s sound left; 1s wake_word_detected {}", ""},
		{"again at once, from the other side: it has no rest", "", func(t *Tuning) { t.WakeWord.Hold = 0 }, "0s called left; 1s called right",
			"0s turn -45; 1s turn 45"},
		{"a sound does not turn it away", "", nil, "0s called left; 2.9s sound right", "0s turn -45"},
		{"a later sound does", "", nil, "0s called left; 3s sound right", "0s turn -45; 3s turn 45"},
		{"it goes before a sound", "", nil, "0s sound left; 1s called right", "0s turn -45; 1s turn 45"},
		{"a sound rests after a turn of its own", "", func(t *Tuning) { t.WakeWord.Hold = 0 },
			"0s sound left; 1s called right; 2s sound left; 3s sound left", "0s turn -45; 1s turn 45; 3s turn -45"},
		{"somebody is there", "", nil, "0s face; 1s called left", ""},
		{"somebody talks with it", "", nil, "0s heard x; 1s called left", ""},
		{"its brain moves the head", "", nil, "0s moves; 9.9s called left; 10s called left", "10s find; 10s turn -45"},
		{"at night", "23:00", nightly, "0s called left", ""},
		{"it dances", "", nil, "0s dance_started {}; 1s called left", ""},
	})
}

func TestIdleGazer(t *testing.T) {
	act(t, []string{"gaze", "sound"}, []scene{
		{"nothing to do", "", nil, "0s mode idle; 80s .", "25s turn -15; 50s turn 0; 1m15s turn 10"},
		{"it senses nothing, as stock firmware does", "", nil, "0s .; 200s .", ""},
		{"it has sensed nothing for long", "", nil, "0s mode idle; 40s lost; 400s .",
			"25s turn -15; 50s turn 0; 1m15s turn 10; 1m40s turn 25; 2m5s turn 0; 2m30s turn -25; 2m55s turn -5; 3m20s turn 0; 3m45s turn 17; 4m10s turn 0; 4m35s turn -15; 5m0s turn 0; 5m25s turn 10"},
		{"somebody is there", "", nil, "0s face; 80s .", ""},
		{"somebody has left", "", nil, "0s face; 60s lost; 90s .", "1m25s turn -15"},
		{"a hand is on its head", "", nil, "0s pet; 80s .", ""},
		{"it listens", "", nil, "0s mode idle; 1s listens; 80s .", ""},
		{"a talk was not long ago", "", nil, "0s mode idle; 1s heard x; 10s ends; 90s .", "1m25s turn -15"},
		{"it looks around by itself", "", nil, `0s idle_motion {"action":"look"}; 100s .; 200s mode idle; 330s .`, "5m25s turn -15"},
		{"it guards", "", nil, "0s mode security; 80s .", ""},
		{"a sound holds its look", "", nil, "0s mode idle; 20s sound left; 75s .", "20s turn -45; 1m10s turn -15"},
		{"at night", "23:00", nightly, "0s mode idle; 80s .", ""},
		{"told good night", "", nil, "0s mode idle; 1s goodnight; 80s .", ""},
		{"the channel is closed", "", nil, "0s mode idle; 1s offline; 80s .", ""},
		{"the channel opens", "", nil, "0s offline; 50s online; 51s mode idle; 80s .", "1m16s turn -15"},
		{"farther", "", func(t *Tuning) { t.Gaze.Yaw = 100 }, "0s mode idle; 26s .", "25s turn -60"},
	})
}

func TestFaceGazer(t *testing.T) {
	act(t, []string{"face_gaze"}, []scene{
		{"somebody comes, and goes", "", nil, "1s face; 2s known Ann; 3s lost; 4s face", "1s look user; 3s look center; 4s look user"},
		{"nobody has come", "", nil, "1s lost; 2s sound left", ""},
		{"at night", "23:00", nightly, "1s face", ""},
	})
}

func TestFaceLostAborter(t *testing.T) {
	act(t, []string{"greeter", "face_lost"}, []scene{
		{"the face leaves while it is greeted", "", nil, "0s face; 0.2s speaks; 2s lost; 20s .", "0s say Hi!; 6s abort"},
		{"the face comes back", "", nil, "0s face; 0.2s speaks; 2s lost; 5.9s face; 20s .", "0s say Hi!"},
		{"it comes back too late", "", nil, "0s face; 0.2s speaks; 2s lost; 6.1s face; 20s .", "0s say Hi!; 6s abort"},
		{"the greeting is over by then", "", nil, "0s face; 0.2s speaks; 2s lost; 3s ends; 20s .", "0s say Hi!"},
		{"nothing was said yet", "", nil, "0s face; 2s lost; 20s .", "0s say Hi!"},
		{"it says something else by then", "", nil, "0s face; 0.2s speaks; 2s lost; 3s ends; 5s speaks; 20s .", "0s say Hi!"},
		{"nobody was greeted", "", func(t *Tuning) { t.Greeter.Hello = "" }, "0s face; 0.2s speaks; 2s lost; 20s .", ""},
		{"long after the greeting", "", nil, "0s face; 0.2s speaks; 12.1s lost; 20s .", "0s say Hi!"},
		{"just in time", "", nil, "0s face; 0.2s speaks; 12s lost; 20s .", "0s say Hi!; 16s abort"},
		{"somebody has answered", "", nil, "0s face; 0.2s speaks; 1s ends; 1.5s heard hello; 2s speaks; 3s lost; 20s .", "0s say Hi!"},
		{"somebody answers while it waits", "", nil, "0s face; 0.2s speaks; 2s lost; 3s ends; 4s heard hello; 5s speaks; 20s .", "0s say Hi!"},
		{"the channel closes", "", nil, "0s face; 0.2s speaks; 2s lost; 3s offline; 20s .", "0s say Hi!"},
		{"at night it is made quiet too", "20:59", func(t *Tuning) { nightly(t); t.Quiet.Hours.From = 20*hour + 59*minute + minute/60*3 },
			"0s face; 0.2s speaks; 2s lost; 20s .", "0s say Hi!; 6s abort"},
		{"a named one leaves", "", nil, "0s known Ann; 0.2s speaks; 2s lost; 20s .", "0s say Oh, it's Ann!; 0s mark; 6s abort"},
	})
}

func TestIdentifiedRefresher(t *testing.T) {
	act(t, []string{"identified"}, []scene{
		{"a face without a name", "", nil, "0s face; 60s .", ""},
		{"a name", "", nil, "0s known Ann; 10s .", "3s mark; 6s mark; 9s mark"},
		{"not for ever", "", nil, "0s known Ann; 100s .",
			"3s mark; 6s mark; 9s mark; 12s mark; 15s mark; 18s mark; 21s mark; 24s mark; 27s mark; 30s mark"},
		{"reported again", "", nil, "0s known Ann; 2s known Ann; 4s .", "3s mark"},
		{"the face has left", "", nil, "0s known Ann; 4s lost; 60s .", "3s mark; 6s mark"},
		{"the face has left for a moment", "", nil, "0s known Ann; 4s lost; 5.5s face; 10s .", "3s mark; 6s mark; 9s mark"},
		{"another face", "", nil, "0s known Ann; 4s lost; 7s face; 20s .", "3s mark; 6s mark"},
		{"at night", "23:00", nightly, "0s known Ann; 10s .", ""},
		{"it dances", "", nil, "0s known Ann; 1s dance_started {}; 10s .", ""},
		{"the channel is closed", "", nil, "0s known Ann; 1s offline; 10s .", ""},
		{"in a talk", "", nil, "0s heard x; 1s known Ann; 5s .", "4s mark"},
	})
}

func TestPurrPlayer(t *testing.T) {
	act(t, []string{"purr"}, []scene{
		{"stroked", "", nil, "0s pet", "0s play purr"},
		{"stroked again at once", "", nil, "0s pet; 1s head_pet_ended {}; 4.9s pet", "0s play purr"},
		{"stroked again", "", nil, "0s pet; 5s pet", "0s play purr; 5s play purr"},
		{"while it speaks", "", nil, "0s speaks; 1s pet", ""},
		{"after it has spoken", "", nil, "0s speaks; 1s ends; 2s pet", "2s play purr"},
		{"in a talk", "", nil, "0s heard x; 1s pet", ""},
		{"at night", "23:00", nightly, "0s pet", ""},
		{"a night does not count", "06:59", nightly, "59s pet; 60s pet", "1m0s play purr"},
		{"asleep by a good night, a hand wakes it", "", nil, "0s goodnight; 1s pet", "1s play purr"},
		{"in its own sleep", "", nil, "0s mode sleep; 1s pet", ""},
		{"while it dances", "", nil, "0s dance_started {}; 1s pet", ""},
		{"the channel is closed", "", nil, "0s offline; 1s pet", ""},
		{"with another sound", "", func(t *Tuning) { t.Purr.Sound = "meow" }, "0s pet", "0s play meow"},
	})
}

func TestDanceReflector(t *testing.T) {
	act(t, []string{"dance"}, []scene{
		{"a dance by its events", "", nil, `0s dance_started {"from":"idle"}; 10s dance_ended {"to":"idle"}`, "10s say That was fun!"},
		{"a dance by its state", "", nil, "0s mode dance; 10s mode idle", "10s say That was fun!"},
		{"by both it is one", "", nil, "0s mode dance; 0s dance_started {}; 10s dance_ended {}; 10s mode idle", "10s say That was fun!"},
		{"an end without a dance", "", nil, "0s dance_ended {}; 1s mode idle", ""},
		{"too short", "", nil, "0s dance_started {}; 2.9s dance_ended {}", ""},
		{"danced again soon", "", nil, "0s dance_started {}; 10s dance_ended {}; 20s dance_started {}; 30s dance_ended {}", "10s say That was fun!"},
		{"danced again", "", nil, "0s dance_started {}; 10s dance_ended {}; 20s dance_started {}; 70s dance_ended {}",
			"10s say That was fun!; 1m10s say That was fun!"},
		{"somebody talks with it", "", nil, "0s dance_started {}; 5s heard x; 10s dance_ended {}", ""},
		{"at night", "23:00", nightly, "0s dance_started {}; 10s dance_ended {}", ""},
		{"it was silent for too long", "", nil, "0s dance_started {}; 400s sound left", ""},
		{"it falls asleep", "", nil, "0s mode dance; 10s mode sleep", ""},
		{"with nothing to say", "", func(t *Tuning) { t.Dance.Text = "" }, "0s dance_started {}; 10s dance_ended {}", ""},
	})
}

func TestSleeper(t *testing.T) {
	sleeps := func(t *Tuning) { nightly(t); t.Quiet.Sleep = true }
	act(t, []string{"quiet"}, []scene{
		{"evening and morning", "21:59", sleeps, "0s mode idle; 10h .", "1m0s state sleep; 9h1m0s state idle"},
		{"begun at night", "23:00", sleeps, "0s mode idle; 10m .", "0s state sleep"},
		{"a talk is not disturbed", "21:59", sleeps, "30s heard x; 90s ends; 3m .", "2m0s state sleep"},
		{"it slept before, and sleeps on", "21:59", sleeps, "0s mode sleep; 5h mode sleep; 10h .", ""},
		{"somebody has woken it at night", "23:00", sleeps, "1s mode sleep; 7h59m50s mode idle; 8h5m .", "0s state sleep"},
		{"the channel opens at night", "21:00", sleeps, "0s offline; 2h online; 3h .", "2h0m0s state sleep"},
		{"not asked for", "21:59", nightly, "0s mode idle; 10h .", ""},
	})
}

func TestGreeter(t *testing.T) {
	always := func(t *Tuning) { t.Greeter.Hours = Hours{From: 0, To: 24 * time.Hour}; nightly(t) }
	waits := func(t *Tuning) { t.Greeter.Wait = 200 * time.Millisecond }
	act(t, []string{"greeter"}, []scene{
		{"a face", "", nil, "1s face", "1s say Hi!"},
		{"a face that comes back too soon", "", nil, "0s face; 10s lost; 29s face", "0s say Hi!"},
		{"a face that comes back", "", nil, "0s face; 10s lost; 30s face", "0s say Hi!; 30s say Hi!"},
		{"a face that is reported again while it is there", "", nil, "0s face; 40s face", "0s say Hi!"},
		{"too early in the day", "05:59", nil, "0s face", ""},
		{"early in the day", "06:00", nil, "0s face", "0s say Hi!"},
		{"too late in the day", "21:00", nil, "0s face", ""},
		{"without hours of its own", "03:00", func(t *Tuning) { t.Greeter.Hours = Hours{} }, "0s face", "0s say Hi!"},
		{"in the quiet hours", "23:00", always, "0s face; 1s known Ann", ""},
		{"after the quiet hours", "07:00", always, "0s face", "0s say Hi!"},
		{"a night does not count", "06:59", always, "50s face; 55s lost; 60s face", "1m0s say Hi!"},
		{"somebody talks with it", "", nil, "0s heard x; 60s face", ""},
		{"somebody has just talked with it", "", nil, "0s heard x; 5s ends; 14s face", ""},
		{"somebody has talked with it", "", nil, "0s heard x; 5s ends; 15s face", "15s say Hi!"},
		{"it says something by itself", "", nil, "0s speaks; 2s face", ""},
		{"somebody has come to talk", "", nil, "0s wake_word {}; 2s face", ""},
		{"somebody has touched it to talk", "", nil, "0s listens; 2s face", ""},
		{"its talk was opened by the face", "", nil, "0s face; 1s listens", "0s say Hi!"},
		{"it dances", "", nil, "0s dance_started {}; 1s face; 2s known Ann", ""},
		{"it has danced", "", nil, "0s dance_started {}; 1s dance_ended {}; 2s face", "2s say Hi!"},
		{"it was told good night", "", nil, "0s goodnight; 60s face", ""},
		{"it was woken by a hand", "", nil, "0s goodnight; 60s pet; 61s face", "1m1s say Hi!"},
		{"its own sleep", "", nil, "0s mode sleep; 1s face", ""},
		{"the channel is closed", "", nil, "0s offline; 1s face", ""},
		{"the channel has opened again", "", nil, "0s offline; 1s online; 2s face", "2s say Hi!"},
		{"a name", "", nil, "0s known Ann", "0s say Oh, it's Ann!; 0s mark"},
		{"a name after the face", "", nil, "0s face; 2s known Ann", "0s say Hi!; 2s say Oh, it's Ann!; 2s mark"},
		{"a name that is reported again and again", "", nil, "0s known Ann; 20s known Ann; 40s known Ann; 100s known Ann",
			"0s say Oh, it's Ann!; 0s mark"},
		{"a name that comes back too soon", "", nil, "0s known Ann; 10s lost; 29s known Ann", "0s say Oh, it's Ann!; 0s mark"},
		{"one who came back too soon has been seen since", "", nil, "0s known Ann; 10s lost; 29s known Ann; 45s known Ann",
			"0s say Oh, it's Ann!; 0s mark"},
		{"a name that comes back", "", nil, "0s known Ann; 10s lost; 40s known Ann",
			"0s say Oh, it's Ann!; 0s mark; 40s say Oh, it's Ann!; 40s mark"},
		{"another name", "", nil, "0s known Ann; 1s known Bob", "0s say Oh, it's Ann!; 0s mark; 1s say Oh, it's Bob!; 1s mark"},
		{"a name in a talk", "", nil, "0s heard x; 5s ends; 14s known Ann", ""},
		{"a name after a talk", "", nil, "0s heard x; 5s ends; 15s known Ann", "15s say Oh, it's Ann!; 15s mark"},
		{"no name", "", nil, `0s known; 1s known unknown; 2s face_recognized {"identity":7}`, ""},
		{"the name of one who was there a moment ago", "", nil, "0s known Ann; 40s lost; 41s face", "0s say Oh, it's Ann!; 0s mark"},
		{"it waits for the talk that the face opens", "", waits, "0s face; 0.05s listens; 5s .", "50ms say Hi!"},
		{"it does not wait for long", "", waits, "0s face; 0.5s listens; 5s .", "200ms say Hi!"},
		{"it does not wait while it listens", "", waits, "0s listens; 20s face; 25s .", "20s say Hi!"},
		{"the face has left before", "", waits, "0s face; 0.1s lost; 0.15s listens; 5s .", ""},
		{"somebody speaks before", "", waits, "0s face; 0.1s heard hello; 5s .", ""},
		{"the name comes before", "", waits, "0s face; 0.1s known Ann; 5s .", "100ms say Oh, it's Ann!; 100ms mark"},
		{"only with a name", "", func(t *Tuning) { t.Greeter.Hello = "" }, "0s face; 1s known Ann", "1s say Oh, it's Ann!; 1s mark"},
		{"never with a name", "", func(t *Tuning) { t.Greeter.Named = "" }, "0s face; 1s known Ann", "0s say Hi!"},
	})
}

func TestGreeterForgetsTheOldest(t *testing.T) {
	c := newReactor(Options{Tuning: DefaultTuning(), Zone: time.UTC})
	g := c.behaviours[0].(*greeter)
	for i := range 3 * maxAcquaintances {
		c.handleEvent(event.Envelope{At: noon.Add(time.Duration(i) * time.Second), Robot: chan1, Event: scriptEvent(t, fmt.Sprintf("known N%d", i))})
	}
	if len(g.acquaintances) != maxAcquaintances {
		t.Errorf("it remembers %d", len(g.acquaintances))
	}
	if _, there := g.acquaintances[fmt.Sprintf("N%d", 3*maxAcquaintances-1)]; !there {
		t.Error("the latest is forgotten")
	}
	if _, there := g.acquaintances["N0"]; there {
		t.Error("the oldest is remembered")
	}
}
