package reflex_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/reflex"
	"perch/device"
	"perch/must"
)

// kept is a table of timers in memory.
type kept map[string]agent.Timer

func (k kept) Put(key string, t agent.Timer) error {
	if k == nil {
		return errors.New("disk full")
	}
	k[key] = t
	return nil
}

func (k kept) Delete(key string) error             { delete(k, key); return nil }
func (k kept) All() iter.Seq2[string, agent.Timer] { return maps.All(maps.Clone(k)) }

// still is a clock that stands still.
type still struct{}

func (still) Now() time.Time         { return noon }
func (still) Running() time.Duration { return 0 }

// asked has a text answered by a brain, and returns the spoken answer.
func asked(t *testing.T, b *reflex.Brain, text string) (string, error) {
	t.Helper()
	var said []string
	err := b.Think(t.Context(), agent.Turn{Robot: "a0b1c2d3e4f5", Session: "s", Text: text, Now: noon}, func(r agent.Reply) error {
		if sendAnswer, ok := r.(agent.Say); ok {
			said = append(said, sendAnswer.Text)
		}
		return nil
	})
	return strings.Join(said, " "), err
}

func TestTimersBySentence(t *testing.T) {
	table := kept{}
	b := reflex.New([]*reflex.Book{book(t)}, "Chan", remembered{}, notice.NewTimers(table, still{}), nil)
	for _, step := range []struct{ heard, said string }{
		{"cancel the timer", "There is no timer."},
		{"how much time is left", "There is no timer."},
		{"remind me in one hour to feed the cat", "I will remind you in 1 hour."},
		{"how much time is left", "1 hour."},
		{"Set a timer for twenty-five minutes.", "25 minutes, starting now."},
		{"set a timer for one hundred minutes", "1 hour and 40 minutes, starting now."},
		{"set a timer for 90 seconds", "1 minute and 30 seconds, starting now."},
		{"set a timer for one minute", "1 minute, starting now."},
		{"set a timer for 1 second", "1 second, starting now."},
		{"how much time is left on the timer", "1 second."},
		{"set a timer for zero minutes", "I can wait from one second to one day."},
		{"set a timer for twenty five hours", "I can wait from one second to one day."},
		{"cancel the timers", "No timer is set any more."},
		{"cancel the timer", "There is no timer."},
		{"how much time is left", "1 hour."}, // the reminder has stayed
		{"cancel the reminder", "I will not remind you."},
		{"cancel the reminders", "There is no reminder."},
		{"set a timer for 1 minutes of tea", "I do not know what to say to that. Say help to hear what I can do."},
	} {
		if said, err := asked(t, b, step.heard); err != nil || said != step.said {
			t.Errorf("%q: %q, %v; want %q", step.heard, said, err, step.said)
		}
	}
	if len(table) > 0 {
		t.Errorf("kept %v", table)
	}
	for i := range 21 {
		said, err := asked(t, b, "set a timer for two hours")
		if full := strings.HasPrefix(said, "I have too many timers"); err != nil || full != (i == 20) {
			t.Errorf("timer %d: %q, %v", i+1, said, err)
		}
	}
}

func TestWhatATimerSays(t *testing.T) {
	table := kept{}
	b := reflex.New([]*reflex.Book{book(t)}, "Chan", remembered{}, notice.NewTimers(table, still{}), nil)
	for heard, want := range map[string]agent.Timer{
		"set a timer for ten minutes":                     {Text: "Your timer for 10 minutes is over.", Length: 10 * time.Minute},
		"remind me in two hours to take the medicine":     {Text: "It is time to take the medicine.", Length: 2 * time.Hour, Reminder: true},
		"remind me in thirty seconds to drink some water": {Text: "It is time to drink some water.", Length: 30 * time.Second, Reminder: true},
	} {
		clear(table)
		must.Value(asked(t, b, heard))(t)
		for _, got := range table {
			if got.Text != want.Text || got.Length != want.Length || got.Reminder != want.Reminder || got.Robot != "a0b1c2d3e4f5" {
				t.Errorf("%q: %+v", heard, got)
			}
		}
		if len(table) != 1 {
			t.Errorf("%q: kept %v", heard, table)
		}
	}
}

// TestATimerThatIsNotStored: if the store fails, no answer says that the timer is
// set.
func TestATimerThatIsNotStored(t *testing.T) {
	b := reflex.New([]*reflex.Book{book(t)}, "Chan", remembered{}, notice.NewTimers(kept(nil), still{}), nil)
	if said, err := asked(t, b, "set a timer for ten minutes"); err == nil || said != "" {
		t.Errorf("%q, %v", said, err)
	}
	b = reflex.New([]*reflex.Book{book(t)}, "Chan", remembered{}, nil, nil)
	for _, heard := range []string{"set a timer for ten minutes", "cancel the timer", "how much time is left", "remind me in one hour to call home"} {
		if said, err := asked(t, b, heard); err != nil || said != "I have nothing to do that with." {
			t.Errorf("%q without timers: %q, %v", heard, said, err)
		}
	}
}

// TestARobotThatRingsByItself: and its tool is reported.
func TestARobotThatRingsByItself(t *testing.T) {
	table := kept{}
	b := reflex.New([]*reflex.Book{book(t)}, "Chan", remembered{}, notice.NewTimers(table, still{}), nil)
	r := &robot{tools: []device.Tool{
		tool("self.robot.create_reminder", map[string]device.Argument{"duration_seconds": number(86400), "message": {Type: "string"}}),
		tool("self.robot.stop_reminder", map[string]device.Argument{"id": number(1000)})}}
	r.answer = "3"
	var shown []string
	err := b.Think(t.Context(), agent.Turn{Text: "set a timer for two minutes", Now: noon, Body: r}, func(reply agent.Reply) error {
		if s, ok := reply.(agent.ToolStatus); ok {
			shown = append(shown, s.Name+" "+s.Status)
		}
		return nil
	})
	if err != nil || !slices.Equal(shown, []string{"self.robot.create_reminder running", "self.robot.create_reminder done"}) {
		t.Errorf("%v, shown %v", err, shown)
	}
	for _, kept := range table {
		if !kept.OnRobot || kept.RobotID != "3" {
			t.Errorf("kept %+v", kept)
		}
	}
	if err := b.Think(t.Context(), agent.Turn{Text: "cancel the timer", Now: noon, Body: r}, func(agent.Reply) error { return nil }); err != nil {
		t.Error(err)
	}
	if len(r.calls) != 2 || r.calls[1].arguments["id"] != 3 || len(table) > 0 {
		t.Errorf("called %v, kept %v", r.calls, table)
	}
}

func TestTakingAPhoto(t *testing.T) {
	camera := func(answer string) *robot {
		return &robot{answer: answer, tools: []device.Tool{tool("self.camera.take_photo",
			map[string]device.Argument{"question": {Type: "string"}}, "question")}}
	}
	for answer, want := range map[string]struct{ said, face string }{
		`{"success":true,"response":"A cat on a chair."}`:                      {"A cat on a chair.", "happy"},
		`{"success":true,"action":"RESPONSE","response":"😮 A dog. It barks."}`: {"A dog. It barks.", "surprised"},
		`{"description":"A red cup."}`:                                         {"A red cup.", "happy"},
		`A window. {time} 🎉`:                                                   {"A window. {time}", "happy"},
		`{"success":false,"response":"😢 Nobody can look."}`:                    {"Nobody can look.", "sad"},
		`{"success":false,"response":"Nobody can look."}`:                      {"Nobody can look.", "neutral"},
		`{"success":false,"message":"too large"}`:                              {"That did not work.", "sad"},
		`{"success":true}`:                                                     {"That did not work.", "sad"},
		`{"response":`:                                                         {"That did not work.", "sad"},
		``:                                                                     {"That did not work.", "sad"},
		`{"response":12}`:                                                      {"That did not work.", "sad"},
	} {
		r := camera(answer)
		if said, face, _ := turn(t, remembered{}, r, "What do you see?"); said != want.said || face != want.face {
			t.Errorf("%s: %q, %s", answer, said, face)
		}
		if len(r.calls) != 1 || fmt.Sprint(r.calls[0]) != fmt.Sprint(
			called{"self.camera.take_photo", map[string]any{"question": "What do you see?"}}) {
			t.Errorf("called %v", r.calls)
		}
	}
	for answer, want := range map[string]string{
		"":                                       "I took a picture, but there is nobody here who can look at it.",
		`{"success":true,"photo":"(a picture)"}`: "I took a picture, but there is nobody here who can look at it.",
		`{"success":false,"error":"401"}`:        "That did not work.",
	} {
		r := camera(answer)
		r.pictures = []device.Picture{{Type: "image/jpeg", Data: []byte{1}}}
		if said, _, _ := turn(t, remembered{}, r, "take a photo"); said != want {
			t.Errorf("a picture and %s: %q", answer, said)
		}
	}
	long := strings.Repeat("There is another sheep. ", 100)
	if said, _, _ := turn(t, remembered{}, camera(long), "take a picture"); len(said) < 300 || len(said) > 600 || !strings.HasSuffix(said, "sheep.") {
		t.Errorf("said %d bytes", len(said))
	}
	r := camera("x")
	turn(t, remembered{}, r, "take a photo"+strings.Repeat("!", 1000))
	if asked := r.calls[0].arguments["question"].(string); len(asked) != 300 {
		t.Errorf("asked with %d bytes", len(asked))
	}
	if said, _, _ := turn(t, remembered{}, &robot{}, "what is in front of you"); said != "I have nothing to do that with." {
		t.Errorf("without a camera: %q", said)
	}
	r = camera("x")
	r.fails = errors.New("Failed to upload photo")
	if said, _, _ := turn(t, remembered{}, r, "take a photo"); said != "That did not work." {
		t.Errorf("a photo that fails: %q", said)
	}
}

func TestPhrasesOfTheAppliance(t *testing.T) {
	b := book(t)
	for _, name := range []string{"misheard", "failed", "deaf", "awake", "blind"} {
		face, text := agent.SplitEmotion(b.Phrase(name))
		if text == "" || !strings.HasPrefix(b.Phrase(name), face.Emoji) {
			t.Errorf("%s is %q", name, b.Phrase(name))
		}
	}
}

// FuzzPhoto: whatever a camera answers, the spoken text is bounded.
func FuzzPhoto(f *testing.F) {
	f.Add(`{"success":true,"response":"A cat."}`)
	f.Add(`{"description":"😊😊 A cup [x] {body}"}`)
	f.Add("plain \xff text\nin lines")
	b := must.Value(reflex.Load("en", ""))(f)
	brain := reflex.New([]*reflex.Book{b}, "Chan", remembered{}, nil, nil)
	f.Fuzz(func(t *testing.T, answer string) {
		r := &robot{answer: answer, tools: []device.Tool{tool("take_photo", map[string]device.Argument{"question": {Type: "string"}})}}
		said := 0
		err := brain.Think(context.Background(), agent.Turn{Text: "take a photo", Now: noon, Body: r}, func(reply agent.Reply) error {
			if s, ok := reply.(agent.Say); ok {
				said += len(s.Text)
			}
			return nil
		})
		if err != nil || said == 0 || said > 600 {
			t.Fatalf("%d bytes, %v", said, err)
		}
	})
}
