package skin

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/must"
)

// state returns an agent_state frame of robot A's session. more is appended to its fields.
func state(name, more string) string {
	return `{"type":"agent_state","state":"` + name + `","session_id":"s1","robot":"a0b1c2d3e4f5"` + more + `}`
}

// turnOfTwoTools returns the events of a robot's turn.
func turnOfTwoTools() []event.Event {
	return []event.Event{
		event.RobotOnline{}, event.ListeningStarted{Mode: "auto"}, event.Heard{Text: "hello"}, event.ThinkingStarted{Brain: "x"},
		event.ToolStatus{ID: "t1", Name: "Bash", Status: event.ToolRunning, Detail: "npm test"},
		event.ToolStatus{ID: "t2", Name: "Read", Status: event.ToolRunning},
		event.ToolStatus{ID: "t1", Name: "Bash", Status: event.ToolDone},
		event.ToolStatus{ID: "t2", Name: "Read", Status: event.ToolFailed, Detail: "no such file"},
		event.Emotion{Name: "happy", Emoji: "😊", Intensity: 0.8}, event.SpeakingStarted{}, event.Said{Text: "Hi."},
		event.TurnEnded{End: event.EndDone}, event.ListeningStarted{}, event.RobotOffline{},
	}
}

// theTurn returns the frames of turnOfTwoTools, for a skin that gets all ten states (all is true) or seven.
func theTurn(all bool) []string {
	const r = `"session_id":"s1","robot":"a0b1c2d3e4f5"`
	frames := []string{
		state("idle", ""), "listening",
		state("thinking", ""),
		`{"type":"tool_status",` + r + `,"tool_id":"t1","tool_name":"Bash","status":"running","content":"npm test"}`,
		state("working", `,"detail":{"tool_name":"Bash","subagent_count":0}`),
		`{"type":"tool_status",` + r + `,"tool_id":"t2","tool_name":"Read","status":"running"}`,
		state("juggling", `,"detail":{"tool_name":"Read","subagent_count":0}`),
		`{"type":"tool_status",` + r + `,"tool_id":"t1","tool_name":"Bash","status":"completed"}`,
		state("working", `,"detail":{"tool_name":"Read","subagent_count":0}`),
		`{"type":"tool_status",` + r + `,"tool_id":"t2","tool_name":"Read","status":"error","content":"no such file"}`,
		state("error", ""),
		`{"type":"emotion",` + r + `,"tag":"happy","intensity":0.8}`,
		"speaking", state("attention", ""), "listening", state("idle", ""),
	}
	for i, f := range frames {
		switch {
		case all && (f == "listening" || f == "speaking"):
			frames[i] = state(f, "")
		case f == "listening": // shown as idle, which is the state already
			frames[i] = ""
		case f == "speaking":
			frames[i] = state("thinking", "")
		}
	}
	frames = slices.DeleteFunc(frames, func(f string) bool { return f == "" })
	return frames
}

func TestFrames(t *testing.T) {
	h := newHarness(t)
	one, two, ten := h.connect(t), h.connect(t), h.connect(t)
	ten.send(`{"type":"subscribe","states":"all"}`)
	for _, c := range []*client{one, two, ten} {
		if got := c.answered(); len(got) > 0 {
			t.Errorf("nothing has happened, and it is sent %v", got)
		}
	}
	h.happens(robotA, "s1", turnOfTwoTools()...)
	mark := h.mark()
	for _, c := range []struct {
		client *client
		all    bool
	}{{one, false}, {two, false}, {ten, true}} {
		c.client.expect(theTurn(c.all)...)
		if f := c.client.next(); !strings.Contains(f, mark) {
			t.Errorf("there is more: %s", f)
		}
	}
}

// TestLateSkinGetsSnapshot tests that a skin that connects after any step of a turn gets a snapshot.
func TestLateSkinGetsSnapshot(t *testing.T) {
	h := newHarness(t)
	early := h.connect(t)
	early.send(`{"type":"subscribe","states":"all"}`)
	early.answered()
	latest := ""
	for i, e := range turnOfTwoTools()[:12] {
		h.happens(robotA, "s1", e)
		for _, f := range early.until() {
			if strings.HasPrefix(f, `{"type":"agent_state"`) {
				latest = f
			}
		}
		late := h.connect(t)
		late.send(`{"type":"subscribe","states":"all"}`)
		before := late.answered()
		tools, now := 0, ""
		for _, f := range append(before, late.until()...) {
			switch {
			case strings.HasPrefix(f, `{"type":"agent_state"`):
				now = f
			case strings.Contains(f, `"status":"running"`):
				tools++
			case strings.HasPrefix(f, `{"type":"tool_status"`):
				t.Errorf("%s is over", f)
			}
		}
		if now != latest {
			t.Errorf("after %d events a late skin sees %s, an early one %s", i+1, now, latest)
		}
		if want := map[int]int{4: 1, 5: 2, 6: 1}[i]; tools != want {
			t.Errorf("after %d events a late skin sees %d tools at work, want %d", i+1, tools, want)
		}
		late.conn.Drop()
	}
}

func TestSubscriptions(t *testing.T) {
	h := newHarness(t)
	happens := func() {
		for robot, session := range map[device.ID]string{robotA: "s1", robotB: "s2"} {
			h.happens(robot, session, event.RobotOnline{}, event.ListeningStarted{}, event.ThinkingStarted{},
				event.ToolStatus{ID: "t", Name: "look", Status: event.ToolRunning}, event.ToolStatus{ID: "t", Name: "look", Status: event.ToolDone},
				event.Emotion{Name: "loving"}, event.RobotOffline{})
		}
	}
	c := h.connect(t)
	for _, w := range []struct {
		subscribe     string
		with, without []string // texts that the frames contain, and texts that they do not contain
	}{
		{`{}`, []string{"s1", "s2", "agent_state", "tool_status", "emotion", `"tag":"love"`}, []string{"listening"}},
		{`{"events":["emotion"]}`, []string{"s1", "s2", "emotion"}, []string{"agent_state", "tool_status"}},
		{`{"events":["agent_state","tool_status"]}`, []string{"agent_state", "tool_status"}, []string{"emotion"}},
		{`{"session_ids":["s2"]}`, []string{"s2"}, []string{"s1"}},
		{`{"session_ids":["robot:A0-B1-C2-D3-E4-F5"]}`, []string{"s1"}, []string{"s2"}},
		{`{"session_ids":null}`, []string{"s1", "s2"}, nil},
		{`{"states":"all"}`, []string{"listening"}, nil},
		{`{"states":"rfc","vocabulary":"live2d"}`, []string{`"tag":"joy"`}, []string{"listening", `"tag":"love"`}},
		{`{"vocabulary":"xiaozhi"}`, []string{`"tag":"loving"`}, nil},
		{`{"session_ids":[],"events":["agent_state","notification"]}`, nil, []string{"s1", "s2"}},
		{`{"future":{"key":1}}`, []string{"s1", "s2"}, nil},
	} {
		text := strings.Replace(`{"type":"subscribe",`+w.subscribe[1:], ",}", "}", 1)
		valid(t, "command", []byte(strings.Replace(text, `"session_ids":null`, `"session_ids":[]`, 1)))
		c.send(text)
		c.answered() // discards the snapshot for the new filter
		happens()
		// settle works for any subscription, while until needs notifications.
		frames := c.settle()
		all := strings.Join(frames, "\n")
		for _, s := range w.with {
			if !strings.Contains(all, s) {
				t.Errorf("%s: %s is not in\n%s", w.subscribe, s, all)
			}
		}
		for _, s := range w.without {
			if strings.Contains(all, s) {
				t.Errorf("%s: %s is in\n%s", w.subscribe, s, all)
			}
		}
	}
}

// settle returns the frames of all events so far, for any subscription.
func (c *client) settle() (frames []string) {
	c.t.Helper()
	other := c.h.connect(c.t)
	other.until() // the feed has handled all events
	other.conn.Drop()
	return c.answered()
}

// answered sends a ping, and returns the frames before the pong.
func (c *client) answered() (frames []string) {
	c.t.Helper()
	c.send(`{"type":"ping"}`)
	for {
		f := c.next()
		if f == `{"type":"pong"}` {
			return frames
		}
		if !strings.Contains(f, `"mark-`) {
			frames = append(frames, f)
		}
	}
}

func TestWrongCommands(t *testing.T) {
	h := newHarness(t)
	c := h.connect(t)
	long := strings.Repeat("x", 65)
	many := `"` + strings.Repeat(`s","`, 64) + `s"`
	for _, w := range []struct{ text, code string }{
		{`{"type":"subscribe","events":["agent_state","weather"]}`, "unknown_event"},
		{`{"type":"subscribe","events":"all"}`, "bad_command"},
		{`{"type":"subscribe","states":"ten"}`, "bad_command"},
		{`{"type":"subscribe","vocabulary":"klingon"}`, "bad_command"},
		{`{"type":"subscribe","session_ids":["` + long + `"]}`, "bad_command"},
		{`{"type":"subscribe","session_ids":[""]}`, "bad_command"},
		{`{"type":"subscribe","session_ids":["robot:kitchen"]}`, "bad_command"},
		{`{"type":"subscribe","session_ids":[` + many + `]}`, "bad_command"},
		{`{"type":"dance"}`, "unknown_command"},
		{`{"type":"` + long + `"}`, "unknown_command"},
		{`{}`, "unknown_command"},
		{`{"type":"ack"}`, "bad_command"},
		{`{"type":"ack","id":"` + long + `"}`, "bad_command"},
		{`{"type":"ack","id":"nothing"}`, "unknown_notification"},
		{`{"type":"answer","id":"nothing","allow":true}`, "unknown_question"},
		{`{"type":"answer","id":"q"}`, "bad_command"},
		{`{"type":"answer","id":"q","allow":"yes"}`, "bad_command"},
		{`{"type":"answer","id":"q","allow":null}`, "bad_command"},
		{`{"type":"answer","allow":true}`, "bad_command"},
		{`{"type":"answer","id":"` + long + long + `","allow":true}`, "bad_command"},
		{`{"type":7}`, "bad_command"},
		{`[1]`, "bad_command"},
		{`null`, "unknown_command"},
		{`hello`, "bad_command"},
		{``, "bad_command"},
		{"\xff\xfe", "bad_command"},
	} {
		c.send(w.text)
		if got := c.next(); !strings.HasPrefix(got, `{"type":"error","code":"`+w.code+`","message":"`) || len(got) > 500 {
			t.Errorf("%.60s: %s, want %s", w.text, got, w.code)
		}
	}
	must.Succeed(t, c.conn.SendBinary([]byte{1}))
	if got := c.next(); !strings.Contains(got, "binary") {
		t.Error(got)
	}
	// The known part of the command took effect: states are sent, and tools are not.
	h.happens(robotA, "s1", event.ThinkingStarted{}, event.ToolStatus{ID: "t", Status: event.ToolRunning})
	if all := strings.Join(c.settle(), "\n"); !strings.Contains(all, "working") || strings.Contains(all, "tool_status") {
		t.Error(all)
	}
}

// TestManySubscribes tests that the last of many subscriptions is in effect.
func TestManySubscribes(t *testing.T) {
	h := newHarness(t)
	c := h.connect(t)
	h.happens(robotA, "s1", event.RobotOnline{}, event.ThinkingStarted{})
	c.until()
	for i := range 200 { // the server handles 50 per second
		c.send(fmt.Sprintf(`{"type":"subscribe","events":["emotion","agent_state"],"session_ids":["s%d","s1"]}`, i))
	}
	c.send(`{"type":"subscribe","events":["emotion"]}`)
	h.happens(robotA, "s1", event.SpeakingStarted{}, event.Emotion{Name: "sad"})
	all := c.settle()
	if n := len(all); n > 10 || !strings.Contains(all[n-1], `"tag":"sad"`) {
		t.Errorf("%d frames, the last %s", len(all), all[max(0, n-1)])
	}
}

// TestSessionReplacesAnother tests that a new session of a robot replaces the previous session.
func TestSessionReplacesAnother(t *testing.T) {
	h := newHarness(t)
	c := h.connect(t)
	h.happens(robotA, "s1", event.RobotOnline{}, event.ThinkingStarted{})
	h.happens(robotA, "s2", event.RobotOnline{})
	h.happens(robotA, "s1", event.SpeakingStarted{}) // an event of the old session, which has no effect
	want := []string{state("idle", ""), state("thinking", ""), state("idle", ""), strings.Replace(state("idle", ""), "s1", "s2", 1)}
	if got := c.until(); !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestMissedEventsAreReplaced tests that skins get the states of the board after the feed has missed events.
func TestMissedEventsAreReplaced(t *testing.T) {
	h := newHarness(t)
	c := h.connect(t)
	h.happens(robotA, "s1", event.RobotOnline{})
	h.happens(robotB, "s2", event.RobotOnline{}, event.ThinkingStarted{})
	c.until()
	goOn := h.feed.pause() // so that the feed misses events
	for range 5000 {
		h.happens("", "", event.Misheard{})
	}
	h.happens(robotA, "s1", event.ThinkingStarted{}, event.ToolStatus{ID: "t", Name: "look", Status: event.ToolRunning})
	h.happens(robotB, "s2", event.RobotOffline{})
	h.happens("", "vtb_x", event.ThinkingStarted{})
	for {
		if _, seq := h.board.Snapshot(); seq == h.bus.Seq() {
			break
		}
		runtime.Gosched()
	}
	goOn()
	all := strings.Join(c.until(), "\n")
	for _, want := range []string{state("working", `,"detail":{"subagent_count":0}`), `"idle","session_id":"s2"`, `"thinking","session_id":"vtb_x"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in\n%s", want, all)
		}
	}
	late := h.connect(t)
	if all := strings.Join(late.until(), "\n"); strings.Count(all, "agent_state") != 2 {
		t.Errorf("what is live is\n%s", all)
	}
}

// TestSchema tests that the schema is served, and describes every kind of frame and command.
func TestSchema(t *testing.T) {
	h := newHarness(t)
	answer, body := h.ask(t, "GET", "/v1/vtuber/schema", "")
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "application/schema+json" || body != string(schema) {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	for _, kind := range append(feed.AllKinds(), "pong", "error", "subscribe", "ping", "ack", "answer") {
		if !strings.Contains(body, `"`+kind+`": {`) {
			t.Errorf("%s is not in it", kind)
		}
	}
	for _, wrong := range []string{`{"type":"agent_state","ts":1,"state":"dancing","session_id":"s"}`, `{"type":"pong"}`,
		`{"type":"emotion","ts":1,"session_id":"s","tag":"x","intensity":0}`} {
		if validate("event", []byte(wrong)) == nil {
			t.Errorf("%s passes", wrong)
		}
	}
}

// called sets a Find that also knows robotA by the name "kitchen".
func called(o *Options) {
	o.Find = func(robot string) (device.ID, error) {
		if strings.EqualFold(robot, "kitchen") {
			return robotA, nil
		}
		return device.ParseID(robot)
	}
}

// TestRobotNames tests that a robot's name is valid in conversations, filters and notifications.
func TestRobotNames(t *testing.T) {
	h := newHarness(t, called)
	c := h.connect(t)
	c.send(`{"type":"subscribe","states":"all","session_ids":["robot:Kitchen"]}`)
	c.answered()
	h.bus.Publish(robotB, "s2", event.RobotOnline{})
	h.bus.Publish(robotB, "s2", event.Heard{Text: "x"})
	h.bus.Publish(robotA, "s1", event.RobotOnline{})
	h.bus.Publish(robotA, "s1", event.Heard{Text: "x"})
	if frames := strings.Join(c.until(), "\n"); !strings.Contains(frames, "s1") || strings.Contains(frames, "s2") {
		t.Errorf("shown is %s", frames)
	}
	for session, want := range map[string]string{"robot:kitchen": string(robotA), "kitchen": "", "vtb_kitchen": ""} {
		answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", session)
		if got := answer.Header.Get("X-Session-Id"); answer.StatusCode != http.StatusOK || strings.Contains(got, string(robotA)) != (want != "") {
			t.Errorf("%s: %d, session %q: %s", session, answer.StatusCode, got, body)
		}
	}
	if answer, body := h.ask(t, http.MethodPost, "/v1/vtuber/notifications",
		`{"text":"tea","robot":"KITCHEN"}`); answer.StatusCode != http.StatusAccepted {
		t.Errorf("a notification: %d %s", answer.StatusCode, body)
	}
}

var noon = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

func FuzzCommand(f *testing.F) {
	for _, seed := range []string{`{"type":"ping"}`, `{"type":"ack","id":"x"}`,
		`{"type":"subscribe","events":["emotion","x"],"states":"all","session_ids":["s","robot:a0b1c2d3e4f5"],"vocabulary":"vrm"}`, `[`} {
		f.Add([]byte(seed))
	}
	words := agent.StockWords()
	f.Fuzz(func(t *testing.T, text []byte) {
		c, bad := parseCommand(text, "rfc", words, device.ParseID)
		if c.kind == "" && bad == nil {
			t.Fatal("nothing comes of it, and nothing is wrong")
		}
		if bad != nil {
			made := newErrorFrame(noon, bad)
			if valid(t, "event", made.Data); len(made.Data) > 4000 {
				t.Errorf("%d bytes", len(made.Data))
			}
		}
		if f := c.filter; c.kind == "subscribe" && (len(f.Kinds) > 5 || len(f.Sessions) > maxSessions || !words.Knows(f.Vocabulary)) {
			t.Errorf("%+v", f)
		}
		// A command that the schema allows must be accepted.
		if bad != nil && validate("command", text) == nil && !strings.Contains(string(text), "vocabulary") &&
			!strings.Contains(string(text), "robot:") &&
			len(text) < 50 {
			t.Errorf("%s: %+v", text, bad)
		}
	})
}
