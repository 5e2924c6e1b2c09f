package perception

import (
	"fmt"
	"testing"
	"time"

	"perch/event"
)

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
	c := newCreature(Options{Tuning: DefaultTuning(), Zone: time.UTC})
	g := c.behaviours[0].(*greeter)
	for i := range 3 * mostGreeted {
		c.take(event.Envelope{At: noon.Add(time.Duration(i) * time.Second), Robot: chan1, Event: happening(t, fmt.Sprintf("known N%d", i))})
	}
	if len(g.known) != mostGreeted {
		t.Errorf("it remembers %d", len(g.known))
	}
	if _, there := g.known[fmt.Sprintf("N%d", 3*mostGreeted-1)]; !there {
		t.Error("the latest is forgotten")
	}
	if _, there := g.known["N0"]; there {
		t.Error("the oldest is remembered")
	}
}
