package reflex_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/reflex"
	"perch/device"
	"perch/store/storetest"
)

// still is a clock that always shows noon.
type still struct{}

func (still) Now() time.Time         { return noon }
func (still) Running() time.Duration { return 0 }

func newTimers(table *storetest.Table[agent.Timer]) *notice.Timers {
	return notice.NewTimers(table, still{})
}

// ask returns what a brain says to a text from a robot.
func ask(t *testing.T, b *reflex.Brain, text string) string {
	t.Helper()
	return think(t, b, agent.Turn{Robot: "a0b1c2d3e4f5", Session: "s", Text: text}).said
}

func TestTimersBySentence(t *testing.T) {
	var table storetest.Table[agent.Timer]
	b := newBrain(t, nil, newTimers(&table))
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
		{"how much time is left", "1 hour."}, // cancelling timers has not cancelled the reminder
		{"cancel the reminder", "I will not remind you."},
		{"cancel the reminders", "There is no reminder."},
		{"set a timer for 1 minutes of tea", "I do not know what to say to that. Say help to hear what I can do."},
	} {
		if said := ask(t, b, step.heard); said != step.said {
			t.Errorf("%q: %q; want %q", step.heard, said, step.said)
		}
	}
	if len(table.Kept) > 0 {
		t.Errorf("kept %v", table.Kept)
	}
	for i := range 21 {
		said := ask(t, b, "set a timer for two hours")
		if full := strings.HasPrefix(said, "I have too many timers"); full != (i == 20) {
			t.Errorf("timer %d: %q", i+1, said)
		}
	}
}

func TestWhatATimerSays(t *testing.T) {
	var table storetest.Table[agent.Timer]
	b := newBrain(t, nil, newTimers(&table))
	for heard, want := range map[string]agent.Timer{
		"set a timer for ten minutes":                     {Text: "Your timer for 10 minutes is over.", Length: 10 * time.Minute},
		"remind me in two hours to take the medicine":     {Text: "It is time to take the medicine.", Length: 2 * time.Hour, Reminder: true},
		"remind me in thirty seconds to drink some water": {Text: "It is time to drink some water.", Length: 30 * time.Second, Reminder: true},
	} {
		clear(table.Kept)
		ask(t, b, heard)
		for _, got := range table.Kept {
			if got.Text != want.Text || got.Length != want.Length || got.Reminder != want.Reminder || got.Robot != "a0b1c2d3e4f5" {
				t.Errorf("%q: %+v", heard, got)
			}
		}
		if len(table.Kept) != 1 {
			t.Errorf("%q: kept %v", heard, table.Kept)
		}
	}
}

// TestAlarmsBySentence checks the English sentences about alarms, and that timers, reminders and
// alarms are cancelled separately.
func TestAlarmsBySentence(t *testing.T) {
	var table storetest.Table[agent.Timer]
	timers := newTimers(&table)
	b := newBrain(t, nil, timers)
	for _, step := range []struct{ heard, said string }{
		{"what alarms are set", "No alarm is set."},
		{"cancel the alarm", "No alarm is set."},
		{"wake me at seven", "I will wake you at 7:00 PM."}, // it is noon
		{"wake me up tomorrow at half past six", "I will wake you at 6:30 AM."},
		{"Wake me tomorrow at 9:15 a.m.", "I will wake you at 9:15 AM."},
		{"set an alarm for quarter to eight in the evening", "I will wake you at 7:45 PM."},
		{"every weekday at seven", "I will wake you every weekday at 7:00 AM."},
		{"wake me every day at seven o'clock", "I will wake you every day at 7:00 AM."},
		{"Every Monday at 7:30 PM.", "I will wake you every Monday at 7:30 PM."},
		{"wake me at nine at weekends", "I will wake you at weekends at 9:00 AM."},
		{"set an alarm on tuesdays at noon", "I will wake you every Tuesday at 12:00 PM."},
		{"wake me at midnight", "I will wake you at 12:00 AM."},
		{"wake me at seven seventy", "I do not know what to say to that. Say help to hear what I can do."},
		{"set a timer for ten minutes", "10 minutes, starting now."},
		{"remind me in one hour to feed the cat", "I will remind you in 1 hour."},
		{"cancel the alarm at noon", "I will not wake you then."},
		{"cancel the alarm at midnight", "I will not wake you then."},
		{"cancel the alarm at noon", "There is no alarm at that time."},
		{"cancel the alarm at seven", "I will not wake you then."}, // of the evening, of weekdays and of every day
		{"cancel the alarm for 9:15 am", "I will not wake you then."},
		{"how much time is left", "10 minutes."},
		{"cancel the timer", "No timer is set any more."},
		{"cancel the timer", "There is no timer."},
		{"how much time is left", "1 hour."},
		{"cancel the reminder", "I will not remind you."},
		{"which alarms do i have", "I will wake you at 7:45 PM, at 6:30 AM, at weekends at 9:00 AM, every Monday at 7:30 PM."},
		{"cancel all alarms", "No alarm is set any more."},
		{"how much time is left", "There is no timer."},
	} {
		if said := ask(t, b, step.heard); said != step.said {
			t.Errorf("%q: %q; want %q", step.heard, said, step.said)
		}
	}
	const odd = agent.Days(1<<time.Tuesday | 1<<time.Sunday) // such as the page may set
	alarm := agent.Timer{Robot: "a0b1c2d3e4f5", Text: "Up!", At: "08:00", Days: odd}
	if _, err := timers.Set(t.Context(), nil, alarm, noon); err != nil {
		t.Fatal(err)
	}
	if said := ask(t, b, "what alarms are set"); said != "I will wake you every Tuesday, every Sunday at 8:00 AM." {
		t.Errorf("listed: %q", said)
	}
}

// TestAStrangerSetsNoAlarm checks that a robot that nobody has adopted neither sets, lists nor cancels alarms.
func TestAStrangerSetsNoAlarm(t *testing.T) {
	var table storetest.Table[agent.Timer]
	b := newBrain(t, nil, newTimers(&table))
	ask(t, b, "wake me at seven")
	for _, heard := range []string{"wake me at eight", "every day at nine", "what alarms are set", "cancel all alarms"} {
		got := think(t, b, agent.Turn{Robot: "a0b1c2d3e4f5", Session: "s", Text: heard, Untrusted: true})
		if got.said != "I have nothing to do that with." || len(table.Kept) != 1 {
			t.Errorf("%q: %q, %d are kept", heard, got.said, len(table.Kept))
		}
	}
}

// TestATimerThatIsNotStored checks that the brain sends no answer if the store fails, and that a brain
// without timers answers that it cannot set them.
func TestATimerThatIsNotStored(t *testing.T) {
	var table storetest.Table[agent.Timer]
	full := errors.New("disk full")
	table.Breaks(full)
	err := newBrain(t, nil, newTimers(&table)).Think(t.Context(), agent.Turn{Text: "set a timer for ten minutes", Now: noon}, func(r agent.Reply) error {
		t.Errorf("it answers %v", r)
		return nil
	})
	if !errors.Is(err, full) {
		t.Error(err)
	}
	b := newBrain(t, nil, nil)
	for _, heard := range []string{"set a timer for ten minutes", "cancel the timer", "how much time is left", "remind me in one hour to call home"} {
		if said := ask(t, b, heard); said != "I have nothing to do that with." {
			t.Errorf("%q without timers: %q", heard, said)
		}
	}
}

// TestARobotThatRingsByItself checks that the reminder tools of a robot are used and reported.
func TestARobotThatRingsByItself(t *testing.T) {
	var table storetest.Table[agent.Timer]
	b := newBrain(t, nil, newTimers(&table))
	r := &robot{tools: []device.Tool{
		tool("self.robot.create_reminder", map[string]device.Argument{"duration_seconds": number(86400), "message": {Type: "string"}}),
		tool("self.robot.stop_reminder", map[string]device.Argument{"id": number(1000)})}}
	r.answer = "3"
	a := think(t, b, agent.Turn{Text: "set a timer for two minutes", Body: r})
	if !slices.Equal(a.tools, []string{"self.robot.create_reminder running", "self.robot.create_reminder done"}) {
		t.Errorf("reported %v", a.tools)
	}
	for _, kept := range table.Kept {
		if !kept.OnRobot || kept.RobotID != "3" {
			t.Errorf("kept %+v", kept)
		}
	}
	think(t, b, agent.Turn{Text: "cancel the timer", Body: r})
	if len(r.calls) != 2 || r.calls[1].arguments["id"] != 3 || len(table.Kept) > 0 {
		t.Errorf("called %v, kept %v", r.calls, table.Kept)
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
		if a := turn(t, nil, r, "What do you see?"); a.said != want.said || a.face != want.face {
			t.Errorf("%s: %+v", answer, a)
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
		if a := turn(t, nil, r, "take a photo"); a.said != want {
			t.Errorf("a picture and %s: %q", answer, a.said)
		}
	}
	long := strings.Repeat("There is another sheep. ", 100)
	if said := turn(t, nil, camera(long), "take a picture").said; len(said) < 300 || len(said) > 600 || !strings.HasSuffix(said, "sheep.") {
		t.Errorf("said %d bytes", len(said))
	}
	r := camera("x")
	turn(t, nil, r, "take a photo"+strings.Repeat("!", 1000))
	if asked := r.calls[0].arguments["question"].(string); len(asked) != 300 {
		t.Errorf("asked with %d bytes", len(asked))
	}
	if said := turn(t, nil, &robot{}, "what is in front of you").said; said != "I have nothing to do that with." {
		t.Errorf("without a camera: %q", said)
	}
	r = camera("x")
	r.fails = errors.New("Failed to upload photo")
	if said := turn(t, nil, r, "take a photo").said; said != "That did not work." {
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

// FuzzPhoto checks that the spoken text has 1 to 600 bytes, whatever a camera answers.
func FuzzPhoto(f *testing.F) {
	f.Add(`{"success":true,"response":"A cat."}`)
	f.Add(`{"description":"😊😊 A cup [x] {body}"}`)
	f.Add("plain \xff text\nin lines")
	brain := newBrain(f, nil, nil)
	f.Fuzz(func(t *testing.T, answer string) {
		r := &robot{answer: answer, tools: []device.Tool{tool("take_photo", map[string]device.Argument{"question": {Type: "string"}})}}
		if n := len(think(t, brain, agent.Turn{Text: "take a photo", Body: r}).said); n == 0 || n > 600 {
			t.Fatalf("%d bytes", n)
		}
	})
}
