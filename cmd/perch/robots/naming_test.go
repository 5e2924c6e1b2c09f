package robots

import (
	"testing"
	"time"

	"perch/device"
	"perch/event"
	"perch/language"
)

// TestNameIn: nameIn finds a name in the usual answers, and no name in a longer text.
func TestNameIn(t *testing.T) {
	for _, c := range []struct{ tag, answer, want string }{
		{"en", "Momo.", "Momo"},
		{"en", "momo", "Momo"},
		{"en", "Call yourself Captain Beep!", "Captain Beep"},
		{"en", "your name is", ""},
		{"en", "I do not know yet, what would you like?", ""},
		{"de", "Du heißt Krümel.", "Krümel"},
		{"fr", "Tu t'appelles Loulou", "Loulou"},
		{"ja", "名前はモモです。", "モモ"},
		{"ja", "今日の天気を教えてください", ""},
		{"zh-Hans", "你叫桃桃", "桃桃"},
		{"en", "", ""},
	} {
		if got := nameIn(c.answer, new(language.Catalogue).In(c.tag)); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.tag, c.answer, got, c.want)
		}
	}
}

// TestNamelessAskInAPause: a robot asks after a turn if nobody continues to speak. A robot that was renamed does not ask.
func TestNamelessAskInAPause(t *testing.T) {
	const id = device.ID("a0b1c2d3e4f5")
	heard, ended, cancelled := event.Heard{Text: "x"}, event.TurnEnded{End: event.EndDone}, event.TurnEnded{End: event.EndCancelled}
	for name, c := range map[string]struct {
		events []event.Event
		want   bool
	}{
		"a turn has ended":          {[]event.Event{heard, ended}, true},
		"somebody goes on":          {[]event.Event{heard, ended, event.Hearing{Text: "and"}}, false},
		"a turn was cancelled":      {[]event.Event{heard, cancelled}, false},
		"it is away":                {[]event.Event{heard, ended, event.RobotOffline{}}, false},
		"it comes back and answers": {[]event.Event{ended, event.RobotOffline{}, heard, ended}, true},
		"it has got a name":         {[]event.Event{event.RobotRenamed{Name: "Momo"}, heard, ended}, false},
		"it is forgotten":           {[]event.Event{event.RobotForgotten{}, heard, ended}, false},
	} {
		waiting := nameless{id: time.Time{}}
		for _, e := range c.events {
			Naming{}.handleEvent(waiting, nil, event.Envelope{Robot: id, Event: e})
		}
		if asks := waiting.next() != nil; asks != c.want {
			t.Errorf("%s: it asks: %v, want %v", name, asks, c.want)
		}
	}
	for asked, want := range map[bool]bool{false: true, true: false} { // a question that was not spoken yet is postponed
		waiting, ended := nameless{}, false
		open := map[device.ID]*openQuestion{id: {end: func() { ended = true }, asked: asked}}
		for _, e := range []event.Event{heard, event.TurnEnded{End: event.EndDone}} {
			Naming{}.handleEvent(waiting, open, event.Envelope{Robot: id, Event: e})
		}
		if asks := waiting.next() != nil; asks != want || ended != want {
			t.Errorf("a question that was asked: %v: it asks again: %v, ended: %v", asked, asks, ended)
		}
	}
	others := nameless{}
	Naming{}.handleEvent(others, nil, event.Envelope{Robot: id, Event: ended})
	if len(others) > 0 {
		t.Error("a robot asks that was adopted long ago")
	}
}
