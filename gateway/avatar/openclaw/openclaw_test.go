package openclaw

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/must"
	"perch/socket"
	"perch/waittest"
)

// TestTranscript compares all messages of a turn of Flawed Avatar and of a robot's turn with
// testdata/transcript.txt. The chat events are at the end of the file, because their order among the
// agent events varies.
func TestTranscript(t *testing.T) {
	h := newHarness(t)
	var said, chat strings.Builder
	c := h.dial()
	note := func(f received) {
		to := &said
		if f.Event == "chat" {
			to = &chat
		}
		fmt.Fprintf(to, "< %s\n", avatartest.NormalizeOpenClaw(f.whole))
	}
	say := func(text string) {
		fmt.Fprintf(&said, "> %s\n", text)
		c.Send(text)
	}
	note(received{whole: string(httpserver.Encode(eventMessage{"event", "connect.challenge", map[string]any{"nonce": c.nonce, "ts": 1}, 0}))})
	say(avatartest.Connect("1"))
	note(c.next())
	say(`{"type":"req","id":"2","method":"sessions.list","params":{"activeMinutes":60,"includeGlobal":false,"includeUnknown":false,"limit":10}}`)
	note(c.next())
	say(`{"type":"req","id":"3","method":"agents.list","params":{}}`)
	note(c.next())
	say(`{"type":"req","id":"4","method":"chat.send","params":{"sessionKey":"agent:leo:desk","message":"What time is it?","idempotencyKey":"key-1"}}`)
	note(c.next())
	for final, ended := false, false; !final || !ended; {
		f := c.next()
		note(f)
		final = final || strings.Contains(f.whole, `"state":"final"`)
		ended = ended || strings.Contains(f.whole, `"phase":"end"`)
	}
	h.happens(robotA, "s1", event.RobotOnline{}, event.ListeningStarted{}, event.Heard{Text: "Hi."}, event.SpeakingStarted{},
		event.Said{Text: "Hello."}, event.TurnEnded{End: event.EndFailed, Reason: "no voice"})
	for _, f := range c.events(`"phase":"error"`) {
		note(f)
	}
	say(`{"type":"req","id":"5","method":"sessions.list"}`)
	note(c.answer("5"))
	// The requests that OpenClaw's own terminal client sends before its user can type.
	for n, call := range []string{`"sessions.subscribe","params":{}`, `"question.list","params":{}`, `"plugin.approval.list","params":{}`,
		`"chat.history","params":{"sessionKey":"agent:leo:desk","limit":200}`, `"sessions.describe","params":{"key":"agent:leo:desk"}`,
		`"sessions.describe","params":{"key":"agent:main:main"}`, `"commands.list","params":{"agentId":"leo","scope":"text","includeArgs":false}`,
		`"health"`, `"status"`} {
		id := fmt.Sprint(6 + n)
		say(`{"type":"req","id":"` + id + `","method":` + call + `}`)
		note(c.answer(id))
	}
	if got := h.talks.heard(); len(got) != 1 || got[0] != "vtb_desk leo: What time is it?" {
		t.Errorf("the talk heard %q", got)
	}
	golden(t, "transcript.txt", said.String()+"\n"+chat.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		must.Succeed(t, os.MkdirAll("testdata", 0o755))
		must.Succeed(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.Succeed(t, err)
	if got != string(want) {
		t.Errorf("%s differs; if that is wanted, PERCH_GOLDEN=rewrite go test:\n%s", path, got)
	}
}

// TestRuns checks the agent events for frames of the feed.
func TestRuns(t *testing.T) {
	state := func(s agent.Shown) any { return feed.State{State: s, Session: "s"} }
	tool := func(id, status string) any { return feed.Tool{Session: "s", ID: id, Name: "clock", Status: status} }
	said := func(text string) any { return feed.Said{Session: "s", Text: text} }
	for name, c := range map[string]struct {
		frames []any
		want   string
	}{
		"a turn": {[]any{state(agent.Thinking), state(agent.Speaking), said("A."), said("B."), state(agent.Attention), state(agent.Idle)},
			"start assistant[] assistant[A.] assistant[A. B.] end"},
		"at rest": {[]any{state(agent.Idle), state(agent.Listening), state(agent.Sleeping)}, ""},
		"a tool": {[]any{tool("1", "running"), state(agent.Working), tool("1", "completed"), state(agent.Thinking), state(agent.Idle)},
			"start tool:start tool:result end"},
		"says so":     {[]any{state(agent.Working), state(agent.Juggling), state(agent.Attention)}, "start tool:update tool:update end"},
		"asks":        {[]any{state(agent.Thinking), state(agent.Notification), state(agent.Thinking), state(agent.Idle)}, "start end"},
		"fails":       {[]any{state(agent.Thinking), state(agent.Failed), state(agent.Idle)}, "start error error"},
		"failed then": {[]any{state(agent.Failed), state(agent.Idle)}, ""},
		"no end of":   {[]any{tool("1", "completed")}, ""},
		"joined late": {[]any{state(agent.Speaking), state(agent.Idle)}, "start assistant[] end"},
		"twice":       {[]any{said("A."), state(agent.Idle), said("B."), state(agent.Idle)}, "start assistant[A.] end start assistant[B.] end"},
	} {
		r := newRuns(func(session string, robot device.ID, _ string) (string, string) {
			return sessionKey(session, robot), "run"
		})
		var all []string
		for _, body := range c.frames {
			for _, e := range r.handleFrame(&feed.Frame{Session: "s", Body: body}, time.Now()) {
				switch d := e.Data.(type) {
				case lifecycle:
					all = append(all, d.Phase)
				case assistantEvent:
					all = append(all, "assistant["+d.Text+"]")
				case toolEvent:
					all = append(all, "tool:"+d.Phase)
				case errorEvent:
					all = append(all, "error")
				}
			}
		}
		if got := strings.Join(all, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestRunsAreBounded checks the limits of recorded sessions, of running tools, and of the text of a run.
func TestRunsAreBounded(t *testing.T) {
	r := newRuns(func(session string, robot device.ID, _ string) (string, string) {
		return sessionKey(session, robot), "run"
	})
	noon := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	ends := 0
	for n := range 2 * maxSessions {
		for _, e := range r.handleFrame(&feed.Frame{Session: fmt.Sprint(n), Body: feed.State{State: agent.Thinking, Session: fmt.Sprint(n)}},
			noon.Add(time.Duration(n)*time.Second)) {
			if l, is := e.Data.(lifecycle); is && l.Phase == "end" {
				ends++
			}
		}
	}
	if len(r.sessions) != maxSessions || ends != maxSessions || r.recent()[0].key != "agent:main:399" {
		t.Errorf("%d sessions, %d have ended", len(r.sessions), ends)
	}
	s := r.sessions["399"]
	started := 0
	for n := range 1000 {
		for _, body := range []any{feed.Tool{Session: "399", ID: fmt.Sprint(n), Status: "running"},
			feed.Said{Session: "399", Text: strings.Repeat("x", 500)}} {
			for _, e := range r.handleFrame(&feed.Frame{Session: "399", Body: body}, noon) {
				if tool, is := e.Data.(toolEvent); is && tool.Phase == "start" {
					started++
				}
			}
		}
	}
	if len(s.run.tools) != maxTools || started != maxTools || len(s.run.text) > limit.Question {
		t.Errorf("%d tools, %d of them started, %d bytes", len(s.run.tools), started, len(s.run.text))
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ key, who, talk string }{
		{"agent:main:main", "main", "vtb_main"}, {"main", "main", "vtb_main"}, {"agent:main", "main", "vtb_main"},
		{"agent:leo:desk", "leo", "vtb_desk"},
		{"agent:main:robot:a0b1c2d3e4f5", "main", "robot:a0b1c2d3e4f5"}, {"robot:hall", "main", "robot:hall"}, {"agent::", "", "vtb_main"},
		{"agent:main:a:b", "main", "vtb_a:b"},
	} {
		if who, talk := parseKey(c.key); who != c.who || talk != c.talk {
			t.Errorf("%s: %s %s", c.key, who, talk)
		}
	}
	for _, session := range []string{"vtb_desk", "vtb_main"} {
		if _, talk := parseKey(sessionKey(session, "")); talk != session {
			t.Errorf("%s leads to %s", session, talk)
		}
	}
	if _, talk := parseKey(sessionKey("s1", robotA)); talk != "robot:"+string(robotA) {
		t.Errorf("a robot leads to %s", talk)
	}
}

// TestATextIsAnsweredOnce checks that a second text with the same idempotency key is not answered, even
// on another connection, and that the number of recorded texts is limited.
func TestATextIsAnsweredOnce(t *testing.T) {
	h := newHarness(t)
	text := `{"sessionKey":"main","message":"hello","idempotencyKey":"once"}`
	c := h.join()
	c.call("1", "chat.send", text)
	if got := c.answer("1"); !strings.Contains(got.whole, `"payload":{"runId":"once","status":"started"}`) {
		t.Error(got.whole)
	}
	c.events(`"state":"final"`)
	for _, cl := range []*client{c, h.join()} {
		cl.call("2", "chat.send", text)
		if got := cl.answer("2"); !strings.Contains(got.whole, `"status":"ok"`) {
			t.Error(got.whole)
		}
	}
	if got := h.talks.heard(); len(got) != 1 {
		t.Errorf("it was answered: %q", got)
	}
	chats := newTexts()
	for n := range 5 * maxRecorded {
		chats.start(fmt.Sprint("s", n), "k", fmt.Sprint(n))
	}
	if len(chats.status) != maxRecorded || chats.status[fmt.Sprint(5*maxRecorded-1)] == nil || len(chats.latest) != maxSessions {
		t.Errorf("%d keys, %d sessions are kept", len(chats.status), len(chats.latest))
	}
}

// TestRefusedTexts checks the errors for invalid texts, and that internal errors are not disclosed.
func TestRefusedTexts(t *testing.T) {
	h := newHarness(t)
	c := h.join()
	for n, x := range []struct{ params, want string }{
		{`{"message":"hello","idempotencyKey":"a"}`, "sessionKey"}, {`{"sessionKey":"main","message":"hello"}`, "idempotencyKey"},
		{`{"sessionKey":"main","message":" ","idempotencyKey":"a"}`, "empty"},
		{`{"sessionKey":7}`, "sessionKey may not be a JSON number"}, {`[]`, "JSON object"},
		{`{"sessionKey":"agent:nobody:main","message":"hello","idempotencyKey":"a"}`, `no agent \"nobody\"`},
		{`{"sessionKey":"robot:a0b1c2d3e4ff","message":"hello","idempotencyKey":"a"}`, "no such robot"},
		{`{"sessionKey":"` + strings.Repeat("x", 600) + `","message":"hello","idempotencyKey":"a"}`, "512"},
	} {
		id := fmt.Sprint(n)
		c.call(id, "chat.send", x.params)
		if got := c.answer(id); got.OK || !strings.Contains(got.whole, x.want) {
			t.Errorf("%.80s: %s, want %s", x.params, got.whole, x.want)
		}
	}
	for id, x := range map[string]struct {
		err  error
		want string
	}{
		"busy":   {&httpserver.Fault{Word: "agent_busy", Sentence: "agent is busy, retry in a moment", HTTP: 429}, "agent is busy"},
		"inside": {io.ErrNoProgress, "the log of the appliance says why"},
	} {
		h.talks.answers(func(context.Context, string, func(agent.Reply) error) error { return x.err })
		c.call(id, "chat.send", `{"sessionKey":"main","message":"hello","idempotencyKey":"`+id+`"}`)
		all := c.events(`"state":"error"`)
		if last := all[len(all)-1].whole; !strings.Contains(last, x.want) || strings.Contains(last, io.ErrNoProgress.Error()) {
			t.Errorf("%s: %s", id, last)
		}
	}
}

// TestAgent checks that the client gets agent events for a text by the method agent, and a second
// response after the last of these events.
func TestAgent(t *testing.T) {
	late := func(late time.Duration) *harness {
		return newHarness(t, func(_ *Options, p *timings) { p.finalDelay = late })
	}
	h := late(time.Minute)
	c := h.join()
	ask := func(id, params string) (accepted received, between string, final received) {
		c.call(id, "agent", params)
		accepted = c.answer(id)
		for strings.Contains(accepted.whole, `"status":"accepted"`) {
			if final = c.next(); final.Type == "res" {
				return accepted, between, final
			}
			between += final.whole + "\n"
		}
		return accepted, "", accepted
	}
	for range 3 { // the end of the run may be sent before or after the reply is complete
		_, between, final := ask("1", `{"message":"hello","idempotencyKey":"`+rand.Text()+`"}`)
		if end := strings.LastIndex(between, `"stream":"lifecycle"`); end < 0 || !strings.Contains(between[end:], `"phase":"end"`) ||
			strings.Contains(between, `"event":"chat"`) || final.ID != "1" || !final.OK ||
			!strings.Contains(final.whole, `"result":{"payloads":[{"type":"text","text":"It is noon. Eat."}]}`) {
			t.Errorf("between\n%s\nand\n%s", between, final.whole)
		}
	}
	ask("2", `{"message":"hello","agentId":"leo","sessionKey":"desk","idempotencyKey":"k2"}`)
	if again, _, _ := ask("3", `{"message":"hello","agentId":"leo","sessionKey":"agent:leo:desk","idempotencyKey":"k2"}`); !again.OK ||
		!strings.Contains(again.whole, `{"runId":"k2","status":"ok"}`) {
		t.Error(again.whole)
	}
	if got := strings.Join(h.talks.heard()[2:], "; "); got != "vtb_main : hello; vtb_desk leo: hello" {
		t.Errorf("the talks heard %s", got)
	}
	for id, params := range map[string]string{"differs from agentId": `{"message":"x","agentId":"leo","sessionKey":"agent:main:desk","idempotencyKey":"k"}`,
		"message is empty": `{"idempotencyKey":"k"}`, "idempotencyKey must have": `{"message":"x"}`, "agentId may not": `{"agentId":7}`} {
		if bad, _, _ := ask(id, params); bad.OK || !strings.Contains(bad.whole, id) {
			t.Errorf("%s: %s", params, bad.whole)
		}
	}
	// The second response is also sent for a robot's turn, whose run has another ID, and for a turn
	// without a run.
	for key, h := range map[string]*harness{"agent:main:robot:" + string(robotA): h, "silent": late(time.Millisecond)} {
		h.talks.answers(func(_ context.Context, _ string, take func(agent.Reply) error) error {
			return take(agent.Say{Text: "Aha."})
		})
		c = h.join()
		if _, _, final := ask("4", `{"message":"hello","sessionKey":"`+key+`","idempotencyKey":"`+key+`"}`); !strings.Contains(final.whole, "Aha.") {
			t.Errorf("%s: %s", key, final.whole)
		}
	}
	h.talks.answers(func(context.Context, string, func(agent.Reply) error) error { return io.ErrNoProgress })
	c = h.join()
	_, _, final := ask("5", `{"message":"hello","idempotencyKey":"k5"}`)
	if final.OK || !strings.Contains(final.whole, "the log of the appliance says why") {
		t.Error(final.whole)
	}
}

// TestLeavingEndsTurns checks that the turns of a client end when it disconnects, and that the client may
// then send the same texts again. It also checks the limit maxTexts.
func TestLeavingEndsTurns(t *testing.T) {
	h := newHarness(t)
	began, ended := make(chan struct{}, maxTexts+1), make(chan error, maxTexts+1)
	h.talks.answer = func(ctx context.Context, _ string, _ func(agent.Reply) error) error {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	c := h.join()
	for n := range maxTexts {
		c.call(fmt.Sprint(n), "chat.send", fmt.Sprintf(`{"sessionKey":"t%d","message":"hello","idempotencyKey":"k%d"}`, n, n))
		c.answer(fmt.Sprint(n))
		<-began
	}
	c.call("more", "chat.send", `{"sessionKey":"more","message":"hello","idempotencyKey":"more"}`)
	if got := c.answer("more"); got.Error == nil || got.Error.Code != unavailable || !got.Error.Retryable {
		t.Errorf("a fifth at once: %s", got.whole)
	}
	c.Conn.Drop()
	for range maxTexts {
		if err := <-ended; err == nil {
			t.Error("a turn went on")
		}
	}
	waittest.For(t, "the client counts no more", func() bool { return h.server.Connected() == 0 })
	c = h.join()
	c.call("again", "chat.send", `{"sessionKey":"t0","message":"hello","idempotencyKey":"k0"}`)
	if got := c.answer("again"); !strings.Contains(got.whole, `"started"`) {
		t.Errorf("asked again: %s", got.whole)
	}
	<-began
}

// TestClientThatDoesNotRead checks that a client that does not read is disconnected, and does not delay
// other clients.
func TestClientThatDoesNotRead(t *testing.T) {
	h := newHarness(t, func(_ *Options, p *timings) { p.send = time.Minute })
	other := h.join()
	h.server.timings.send = 200 * time.Millisecond // only for the silent client, because the other one may be slow, too
	silent := h.join()
	long := strings.Repeat("x", 1900)
	go func() { // sends requests without reading the responses
		for n := 0; silent.Conn.SendText(fmt.Appendf(nil, `{"type":"req","id":"%d","method":"sessions.list"}`, n)) == nil; n++ {
		}
	}()
	for n := 0; h.server.Connected() > 1; n++ {
		session := fmt.Sprint("vtb_", n%100)
		h.happens("", session, event.Heard{Text: "go"}, event.Said{Text: long}, event.TurnEnded{End: event.EndDone})
		other.events(`"phase":"end"`)
		if n > 20_000 {
			t.Fatal("it is still there")
		}
	}
	silent.Conn.Drop()
}

// TestGarbage checks that an invalid frame ends the connection before the handshake, and is answered
// with an error after the handshake.
func TestGarbage(t *testing.T) {
	h := newHarness(t)
	for _, text := range []string{"", "{", "[]", "null", `"req"`, `{"type":"req"}`, `{"type":"req","id":"1","method":"sessions.list"}`,
		`{"type":"res","id":"1","method":"connect"}`, strings.Repeat("[", 60_000), "\xff\xfe"} {
		c := h.dial()
		c.Send(text)
		if f := c.next(); f.OK || f.Error == nil || f.Error.Code != invalidRequest {
			t.Errorf("%.40q: %s", text, f.whole)
		}
		c.gone()
	}
	for _, c := range []*client{h.dial(), h.join()} { // a too large frame ends the connection without an answer
		c.Send(`{"type":"req","id":"1","method":"connect","params":"` + strings.Repeat("x", limit.Body) + `"}`)
		if _, text, err := c.Conn.Receive(); err == nil {
			t.Errorf("a frame that is too big: %.80s", text)
		}
	}
	c := h.join()
	for _, text := range []string{"", "{", "[]", `{"type":"req"}`, `{"type":"req","id":7,"method":"sessions.list"}`} {
		c.Send(text)
		if f := c.answer(noID); f.Error.Code != invalidRequest {
			t.Errorf("%q: %s", text, f.whole)
		}
	}
	must.Succeed(t, c.Conn.SendBinary([]byte{1, 2, 3}))
	c.answer(noID)
	c.Send(`{"type":"cancel","id":"1"}`) // gets no response
	c.call("2", "connect", "{}")
	if f := c.answer("2"); !strings.Contains(f.whole, "first request") {
		t.Error(f.whole)
	}
	c.call("3", "exec.approval.resolve", "{}")
	if f := c.answer("3"); !strings.Contains(f.whole, "unknown method: exec.approval.resolve") {
		t.Error(f.whole)
	}
}

// TestLimits checks the time limit of the handshake, and the maximum number of connections.
func TestLimits(t *testing.T) {
	h := newHarness(t, func(_ *Options, p *timings) { p.handshake = 50 * time.Millisecond })
	c := h.dial()
	c.gone() // the client has sent nothing
	h = newHarness(t)
	for range maxPerAddress {
		h.dial()
	}
	if conn, err := socket.Dial(t.Context(), h.URL+"/", socket.Options{}); err == nil || !strings.Contains(err.Error(), "too_many_clients") {
		t.Errorf("one more: %v %v", conn, err)
	}
}

// TestTick checks that numbered ticks are sent.
func TestTick(t *testing.T) {
	h := newHarness(t, func(_ *Options, p *timings) { p.tick = 10 * time.Millisecond })
	c := h.join()
	for n := range 5 {
		var at struct{ TS int64 }
		if f := c.next(); f.Event != "tick" || f.Seq != n+1 || json.Unmarshal(f.Payload, &at) != nil || at.TS == 0 {
			t.Errorf("%d: %s", n, f.whole)
		}
	}
}

// TestRunClosesConnections checks that Run closes connections before the handshake, idle connections and
// connections with a turn, and that it waits for the end of the turn.
func TestRunClosesConnections(t *testing.T) {
	h := newHarness(t)
	left := make(chan struct{})
	h.talks.answer = func(ctx context.Context, _ string, _ func(agent.Reply) error) error {
		<-ctx.Done()
		<-time.After(20 * time.Millisecond) // the turn needs some time to end
		close(left)
		return ctx.Err()
	}
	waits, idle, asks := h.dial(), h.join(), h.join()
	asks.call("1", "chat.send", `{"sessionKey":"main","message":"hello","idempotencyKey":"1"}`)
	asks.answer("1")
	h.Stop()
	select {
	case <-left:
	default:
		t.Error("a turn was not waited for")
	}
	for _, c := range []*client{waits, idle, asks} {
		c.gone()
	}
	if n := h.server.Connected(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// FuzzFrames checks that any frame is either accepted or answered with an error that can be encoded.
func FuzzFrames(f *testing.F) {
	f.Add(true, []byte(avatartest.Connect("1")))
	f.Add(true, []byte(`{"type":"req","id":"2","method":"chat.send","params":{"sessionKey":"agent:main:main","message":"x","idempotencyKey":"k"}}`))
	f.Add(true, []byte(`{"type":"cancel","id":"2"}`))
	for _, change := range []func(map[string]any){set("maxProtocol", 2), set("minProtocol", 5), set("role", "node"), set("role", ""),
		set("scopes", make([]string, maxScopes+1)), set("client", 7), set("auth", map[string]any{"token": "t", "deviceToken": "d"}),
		set("auth", map[string]any{"password": "p", "bootstrapToken": ""}), set("device", map[string]any{"publicKey": "AA"})} {
		f.Add(true, []byte(avatartest.Connect("1", change)))
	}
	f.Add(false, []byte{0})
	f.Fuzz(func(t *testing.T, isText bool, text []byte) {
		r, asks, bad := parseRequest(isText, text)
		if bad == nil && asks && (r.ID == "" || len(r.ID) > limit.Name || r.Method == "" || len(r.Method) > limit.ID) {
			t.Fatalf("it passed: %+v", r)
		}
		if bad != nil && r.ID == "" {
			t.Fatalf("nobody is answered: %+v", r)
		}
		var p connectParams
		if bad == nil {
			bad = r.decodeParams(&p)
		}
		if bad == nil {
			agreed, refused := p.check(nil)
			if refused != nil {
				bad = refused.failure
			} else if agreed.protocol < minProtocol || agreed.protocol > maxProtocol {
				t.Fatalf("version %d", agreed.protocol)
			}
		}
		if who, talk := parseKey(r.Method); talk == "" {
			t.Fatalf("no talk of %q, %q", r.Method, who)
		}
		var again response
		must.Succeed(t, json.Unmarshal(httpserver.Encode(newResponse(r.ID, nil, bad)), &again))
	})
}
