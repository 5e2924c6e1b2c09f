package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/must"
	"perch/store/storetest"
)

// TestTrial tests that a trial shows everything that a program can show, and that the program then gets the real
// scene and the frames that came during the trial.
func TestTrial(t *testing.T) {
	f := newFake(t, "", nil)
	h := newConnected(t, Target{Kind: "warudo", URL: "ws://" + f.address})
	h.happens(robotA, "s", turn()[:4]...)
	var shown []string
	err := h.relays.RunTrial(t.Context(), "warudo", time.Millisecond, func(what string) error {
		if shown = append(shown, what); len(shown) == 1 {
			h.happens("", "", event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
		}
		return nil
	})
	must.Succeed(t, err)
	for _, want := range []string{"state idle", "face happy",
		"feeling curiosity", "gesture dance", "gesture twirl", "sentence", "mouth 100 %", "notification", "question"} {
		if !strings.Contains(fmt.Sprint(shown), want) {
			t.Errorf("%s was not tried", want)
		}
	}
	h.eventually("the real scene", func() bool { return strings.HasSuffix(f.last("stackchan.state"), `"thinking"}`) })
	h.eventually("the notification", func() bool { return f.last("Bread") != "" })
}

// TestInvalidTargets tests the errors for invalid targets.
func TestInvalidTargets(t *testing.T) {
	many := make([]string, maxShapes)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
	}
	word := func(key, word string) map[string]string { return map[string]string{key: word} }
	for _, c := range []struct {
		want    string
		targets []Target
	}{
		{"there is no kind", []Target{{Kind: "vtuber"}}},
		{"ws://", []Target{{Kind: "warudo", URL: "http://x"}}},
		{"set key instead", []Target{{Kind: "warudo", URL: "ws://me:secret@x"}}},
		{"two relays are called", []Target{{Kind: "warudo"}, {Kind: "warudo"}}},
		{"state.dancing", []Target{{Kind: "warudo", Words: word("state.dancing", "x")}}},
		{"more than 200 bytes", []Target{{Kind: "warudo", Words: word("face.happy", strings.Repeat("x", 300))}}},
		{"normal or high", []Target{{Kind: "aituberkit", Words: word("speak.sentence", "loud")}}},
		{"set url", []Target{{Kind: "chatdollkit"}}},
		{"no port", []Target{{Kind: "chatdollkit", URL: "tcp://127.0.0.1"}}},
		{"tcp://", []Target{{Kind: "chatdollkit", URL: "ws://127.0.0.1:1"}}},
		{"tell.state", []Target{{Kind: "unreal", Words: word("tell.state", "State")}}},
		{"tell.state", []Target{{Kind: "unreal", Words: word("tell.state", "property Stackchan")}}},
		{"tell.state", []Target{{Kind: "unreal", Words: word("tell.state", "property Stack/chan State")}}},
		{"tell.state", []Target{{Kind: "unreal", Words: word("tell.state", "property Stackchan State?x=1")}}},
		{"tell.state", []Target{{Kind: "unreal", Words: word("tell.state", "call Object Say")}}},
		{"more than 64", []Target{{Kind: "vmc", Words: map[string]string{
			"state.idle": strings.Join(many[:32], ","), "state.working": strings.Join(many[32:], ",")}}}},
		{"set url", []Target{{Kind: "webhook"}}},
		{"http://", []Target{{Kind: "webhook", URL: "ws://127.0.0.1"}}},
		{"not base64", []Target{{Kind: "webhook", URL: "http://127.0.0.1", Key: "whsec_???"}}},
		{"words.frame.mood ", []Target{{Kind: "webhook", URL: "http://127.0.0.1", Words: word("frame.mood", "feelings")}}},
	} {
		_, err := New(Options{Targets: c.targets, Words: agent.StockWords(), Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "me:secret") {
			t.Errorf("%v: %v", c.targets, err)
		}
		if len(c.targets) == 1 && Check(c.targets[0], agent.StockWords()) == nil {
			t.Errorf("Check accepts %v", c.targets)
		}
	}
}

// TestFrontIsBusy tests that the front scene is busy if any session is busy.
func TestFrontIsBusy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s scenes
		shown := map[string]agent.Shown{}
		for range rapid.IntRange(1, 50).Draw(t, "frames") {
			f := feed.NewFrame(feed.KindState, nil)
			f.Session = rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "session")
			state := rapid.SampledFrom(states()).Draw(t, "state")
			f.Body = feed.State{State: state}
			before := s.front()
			s.apply(f)
			shown[f.Session] = state
			if before.isBusy() && f.Session != before.Session && !(Scene{State: state}).isBusy() && s.front() != before {
				t.Fatalf("%s is at rest, and %s is not in front any more", f.Session, before.Session)
			}
		}
		if got := s.front(); got.State != shown[got.Session] {
			t.Fatalf("%s shows %s and not %s", got.Session, got.State, shown[got.Session])
		}
		for session, state := range shown {
			if (Scene{State: state}).isBusy() && !s.front().isBusy() {
				t.Fatalf("%s is %s, and %+v in front", session, state, s.front())
			}
		}
		if len(s.ordered) != len(shown) {
			t.Fatalf("%d sessions of %d", len(s.ordered), len(shown))
		}
	})
}

// TestTurnGoesInFront tests that a session that begins a turn becomes the front scene, even if it was busy before:
// a robot that listened, or a chat whose last turn has just ended. Changes within a turn do not change the order.
func TestTurnGoesInFront(t *testing.T) {
	var s scenes
	for i, c := range []struct {
		session string
		state   agent.Shown
		front   string
	}{
		{"robot", agent.Listening, "robot"}, {"chat", agent.Thinking, "chat"}, {"robot", agent.Attention, "chat"},
		{"robot", agent.Listening, "chat"}, {"chat", agent.Attention, "chat"}, {"robot", agent.Thinking, "robot"},
		{"chat", agent.Thinking, "chat"}, {"robot", agent.Failed, "chat"}, {"robot", agent.Working, "chat"},
		{"robot", agent.Notification, "chat"}, {"robot", agent.Speaking, "chat"}, {"chat", agent.Idle, "robot"},
	} {
		f := feed.NewFrame(feed.KindState, feed.State{State: c.state})
		f.Session = c.session
		if s.apply(f); s.front().Session != c.front {
			t.Errorf("%d: %s is %s, and %s in front", i, c.session, c.state, s.front().Session)
		}
	}
}

// TestTalkFaceEnds tests that the face of a conversation ends with the conversation, and that the next one begins with
// the face of the mood.
func TestTalkFaceEnds(t *testing.T) {
	for _, end := range []agent.Shown{agent.Idle, agent.Sleeping} {
		var s scenes
		for _, body := range []any{feed.Mood{Mood: event.Mood{Face: "relaxed"}}, feed.State{State: agent.Speaking}, feed.Face{Tag: "laughing"},
			feed.State{State: agent.Attention}, feed.State{State: end}, feed.State{State: agent.Listening}} {
			f := feed.NewFrame("", body)
			f.Robot = robotA
			s.apply(f)
		}
		if got := s.front().Expression(); got != "relaxed" {
			t.Errorf("after %s the face is %s", end, got)
		}
	}
}

func TestManySessionsAreBounded(t *testing.T) {
	var s scenes
	for i := range 1000 {
		f := feed.NewFrame(feed.KindState, feed.State{State: agent.Thinking})
		f.Robot = device.ID(fmt.Sprint(i))
		s.apply(f)
	}
	if len(s.ordered) > maxScenes || s.front().Robot != "999" {
		t.Errorf("%d sessions, %s in front", len(s.ordered), s.front().Robot)
	}
}

// TestUnseenNotificationsWait tests that a notification counts as shown if the program has accepted it, and not if the
// words exclude it or if the program sends no responses.
func TestUnseenNotificationsWait(t *testing.T) {
	warudo, webhook, other := newFake(t, "", nil), newReceiver(t, nil), newReceiver(t, nil)
	for what, c := range map[string]struct {
		target Target
		told   func() bool // whether the next message has come
		shown  bool
	}{
		"left out": {Target{Kind: "webhook", URL: webhook.URL, Words: map[string]string{"frame.notification": ""}},
			func() bool { return len(webhook.all("It is warm.")) > 0 }, false},
		"taken":             {Target{Kind: "webhook", URL: other.URL}, func() bool { return len(other.all("Bread is done.")) > 0 }, true},
		"perhaps not taken": {Target{Kind: "warudo", URL: "ws://" + warudo.address}, func() bool { return warudo.last("It is warm.") != "" }, false},
	} {
		h := newConnected(t, c.target)
		h.happens("", "", event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
		h.happens(robotA, "s", turn()...)
		h.eventually("what comes after it", c.told)
		if !c.shown {
			h.happens(robotA, "s", event.Said{Text: "The end."})
		}
		shown := false
		h.bus.ReadFrom(1).Each(t.Context(), func(e event.Envelope) {
			switch b := e.Event.(type) {
			case event.NotificationChanged:
				if shown = b.ID == "n"; shown { // the event is published after the program has responded
					h.bus.Close()
				}
			case event.Said:
				if b.Text == "The end." {
					h.bus.Close()
				}
			}
		})
		if shown != c.shown {
			t.Errorf("%s: it was shown: %t", what, shown)
		}
	}
}

// TestRobotName tests that the name of a robot is looked up again while the program is connected.
func TestRobotName(t *testing.T) {
	t.Parallel()
	f := newFake(t, "", nil)
	h := newHarness(t, Target{Kind: "warudo", URL: "ws://" + f.address, Robot: "ann"})
	h.eventually("it says that there is none", func() bool { return strings.Contains(h.note(), `no robot is called "ann"`) })
	h.happens(robotA, "s", turn()...)
	h.name(robotA, "ann")
	h.eventually("it is shown", func() bool { return f.last("speaking") != "" })
	if note := h.note(); note != "" {
		t.Error(note)
	}
	h.happens("a0b1c2d3e4f6", "o", event.RobotOnline{}, event.ListeningStarted{})
	h.name("a0b1c2d3e4f6", "ann")
	h.eventually("the other is shown", func() bool { return f.last("listening") != "" })
}

// TestRobotNotificationIsSentOnce tests that a notification is sent once, also if the program reconnects.
func TestRobotNotificationIsSentOnce(t *testing.T) {
	f := newFake(t, "", nil)
	h := newHarness(t, Target{Kind: "warudo", URL: "ws://" + f.address})
	h.happens(robotA, "", event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
	h.eventually("it is told", func() bool { return f.last("Bread") != "" })
	f.stop()
	h.eventually("it is gone", func() bool { return !h.relays.List()[0].OK })
	back := newFake(t, f.address, nil)
	h.happens(robotA, "", event.Notification{ID: "m", Text: "Tea is ready.", Urgency: "normal"})
	h.eventually("the other is told", func() bool { return back.last("Tea") != "" })
	if back.last("Bread") != "" {
		t.Errorf("it is told again:\n%s", back.all())
	}
}

// TestErrorsHideQueries tests that errors do not contain the query of an address, which may contain a key.
func TestErrorsHideQueries(t *testing.T) {
	o := &Options{Words: agent.StockWords(), Log: slog.New(slog.DiscardHandler), Tokens: &storetest.Table[string]{}, Home: t.TempDir()}
	silent := newFake(t, "", nil)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	rude := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer rude.Close()
	secret := func(kind, where string, err error) {
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s, %s: %v", kind, where, err)
		}
	}
	for _, kind := range names() {
		for where, host := range map[string]string{"nothing": "127.0.0.1:1", "another program": other.Listener.Addr().String(),
			"one that hangs up": rude.Listener.Addr().String(), "one that says nothing": silent.address} {
			fits := 0
			for _, scheme := range []string{"ws", "http", "tcp", "udp", "ftp"} {
				r, err := newRelay(o, Target{Kind: kind, URL: scheme + "://" + host + "/?key=sesame"})
				if err != nil {
					secret(kind, scheme, err)
					continue
				}
				fits++
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				l, err := r.program.open(ctx, func(note error) { secret(kind, where, note) })
				cancel()
				if err == nil {
					l.close()
				}
				secret(kind, where, err)
			}
			if fits == 0 {
				t.Errorf("%s takes none of the schemes", kind)
			}
		}
		for _, url := range []string{"sesame", "me:sesame@host", "udp://host/?sesame", "tcp://host/?sesame"} {
			_, err := newRelay(o, Target{Kind: kind, URL: url})
			secret(kind, url, err)
		}
	}
}

// TestWrongProgram tests that the error explains what is wrong with the responses to the first messages.
func TestWrongProgram(t *testing.T) {
	const gone, silent = "does not answer: the connection is closed", "does not answer: context canceled"
	nizima := func(method string) any {
		return map[string]any{"Id": "1", "Type": "Response", "Method": method, "Data": map[string]any{}}
	}
	token := func(kind string, data any) any {
		return map[string]any{"requestID": "1", "messageType": kind, "data": data}
	}
	for _, c := range []struct {
		kind, want string
		answers    []any // nil if the program sends nothing
	}{
		{"nizima", silent, nil},
		{"nizima", gone, []any{7, rawText("{"), map[string]any{"Id": 1}, hangUp{}}},
		{"nizima", "an invalid token", []any{nizima("RegisterPlugin")}},
		{"nizima", "is not nizima LIVE (it sent", []any{nizima("Hello")}},
		{"unreal", silent, nil},
		{"unreal", "HTTP server not started", []any{map[string]any{"errorMessage": "HTTP server not started."}}},
		{"veadotube", silent, nil},
		{"veadotube", gone, []any{7, rawText("nodes:{"), rawText("nodes"), rawText(":"), hangUp{}}},
		{"veadotube", "no node of the type state events", []any{rawText(`nodes:{"event":"list","entries":[]}`)}},
		{"veadotube", gone, []any{rawText(`nodes:{"event":"list","entries":[{"type":"stateEvents","id":"x"}]}`),
			rawText(`nodes:{"event":"payload","type":"stateEvents"}`), hangUp{}}},
		{"vtube_studio", silent, nil},
		{"vtube_studio", gone, []any{7, []int{}, map[string]any{"requestID": 3}, hangUp{}}},
		{"vtube_studio", "is not VTube Studio (it sent", []any{token("Hello", nil)}},
		{"vtube_studio", "an invalid token", []any{token("AuthenticationTokenResponse", map[string]any{})}},
		{"vtube_studio", gone, []any{token("AuthenticationTokenResponse", 7), hangUp{}}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the test never waits this long
		f := newFake(t, "", func([]byte) []any {
			if c.answers == nil {
				cancel()
			}
			return c.answers
		})
		r, err := newRelay(&Options{Words: agent.StockWords(), Log: slog.New(slog.DiscardHandler), Tokens: &storetest.Table[string]{}},
			Target{Kind: c.kind, URL: "ws://" + f.address})
		must.Succeed(t, err)
		l, err := r.program.open(ctx, func(error) {})
		if err == nil {
			l.close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, and not %s", c.kind, err, c.want)
		}
		cancel()
	}
}

// TestApply tests that Apply disconnects and connects only targets that have changed, and that an invalid target
// changes nothing.
func TestApply(t *testing.T) {
	stays, goes, comes := newFake(t, "", nil), newFake(t, "", nil), newFake(t, "", nil)
	target := func(name string, f *fake) Target {
		return Target{Kind: "warudo", Name: name, URL: "ws://" + f.address}
	}
	h := newHarness(t, target("stays", stays), target("goes", goes))
	connected := func() (names []string) {
		for _, r := range h.relays.List() {
			if r.OK {
				names = append(names, r.Name)
			}
		}
		return names
	}
	h.eventually("both are connected", func() bool { return len(connected()) == 2 })
	since := h.relays.List()[0].Since
	if err := h.relays.Apply([]Target{target("new", comes), {Kind: "nothing"}}); !errors.Is(err, ErrTarget) || len(connected()) != 2 {
		t.Errorf("%v, and connected are %v", err, connected())
	}
	must.Succeed(t, h.relays.Apply([]Target{target("new", comes), target("stays", stays)}))
	h.eventually("the new one is connected", func() bool { return slices.Equal(connected(), []string{"new", "stays"}) })
	if got := h.relays.List()[1].Since; !got.Equal(since) {
		t.Error("the one that stays was connected anew")
	}
	h.happens(robotA, "s", turn()...)
	h.eventually("the sentence", func() bool { return comes.last("It is warm.") != "" && stays.last("It is warm.") != "" })
	if goes.last("It is warm.") != "" {
		t.Error("the one that was taken away is told still")
	}
}
