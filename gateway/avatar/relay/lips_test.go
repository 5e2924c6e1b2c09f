package relay

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/voice"
)

// TestLips move by the letters of sentences in a session without a robot, for as long as it takes
// to say them.
func TestLips(t *testing.T) {
	said := func(session, text string) *feed.Frame {
		f := feed.NewFrame(feed.KindSaid, feed.Said{Text: text})
		f.Session = session
		return f
	}
	began := func(session string, s agent.Shown) *feed.Frame {
		f := feed.NewFrame(feed.KindState, feed.State{State: s})
		f.Session = session
		return f
	}
	ofRobot := said("s", "Aaa")
	ofRobot.Robot = robotA
	for _, c := range []struct {
		name   string
		frames []*feed.Frame
		sounds bool
		moves  time.Duration // in session s
	}{
		{"a sentence", []*feed.Frame{said("s", "Aaa")}, false, 6 * voice.LevelDuration},
		{"two", []*feed.Frame{said("s", "Aaa"), said("s", "Oo")}, false, 10 * voice.LevelDuration},
		{"in kana", []*feed.Frame{said("s", "はい")}, false, 8 * voice.LevelDuration},
		{"a book", []*feed.Frame{said("s", strings.Repeat("a", 400)), said("s", strings.Repeat("a", 400)), said("s", strings.Repeat("a", 400))},
			false, 1600 * voice.LevelDuration}, // the third would begin after half a minute
		{"whose sound somebody has", []*feed.Frame{said("s", "Aaa")}, true, 0},
		{"of a robot", []*feed.Frame{ofRobot}, false, 0},
		{"of another session", []*feed.Frame{said("s", "Aaa"), said("z", "Aaa")}, false, 0},
		{"and a new turn", []*feed.Frame{said("s", "Aaa"), began("s", agent.Thinking)}, false, 0},
		{"and its end", []*feed.Frame{said("s", "Aaa"), began("s", agent.Idle)}, false, 6 * voice.LevelDuration},
		{"and another's turn", []*feed.Frame{said("s", "Aaa"), began("z", agent.Thinking)}, false, 6 * voice.LevelDuration},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				l := newLips()
				l.level("s") // somebody looks
				var running sync.WaitGroup
				running.Go(func() { l.run(ctx) })
				for _, f := range c.frames {
					l.handleFrame(ctx, f, c.sounds, time.Now())
				}
				synctest.Wait()
				moves := time.Duration(0)
				for level, _ := l.level("s"); level > 0; level, _ = l.level("s") {
					time.Sleep(voice.LevelDuration)
					synctest.Wait()
					moves += voice.LevelDuration
				}
				if moves != c.moves {
					t.Errorf("they move for %s, want %s", moves, c.moves)
				}
				stop()
				running.Wait()
			})
		})
	}
}

// TestChatMovesMouth by the letters, or by the sound if a client plays it.
func TestChatMovesMouth(t *testing.T) {
	f := newFake(t, "", nil)
	h := newConnected(t, Target{Kind: "warudo", URL: "ws://" + f.address})
	mouths := func(value string) bool { return strings.Contains(f.all(), `"stackchan.mouth","data":`+value) }
	h.happens("", "vtb_x", event.SpeakingStarted{}, event.Said{Text: "Aaaaaaaaaaaaaaaaaaaaaaaa."}, event.TurnEnded{End: event.EndDone})
	h.eventually("its mouth moves", func() bool { return mouths("0.8}") && mouths("0.7}") })
	h.eventually("its mouth shuts", func() bool { return strings.HasSuffix(strings.TrimSpace(f.all()), `"stackchan.mouth","data":0}`) })
	h.voice.speak(true)
	h.happens("", "vtb_x", event.SpeakingStarted{}, event.Said{Text: "Eeeeee."})
	h.voice.set(0.33)
	h.eventually("its mouth follows the sound", func() bool { return mouths("0.33}") })
	if mouths("0.5}") {
		t.Error("its mouth moves by letters, too")
	}
}
