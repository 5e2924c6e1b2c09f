package openclaw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
)

// strict is an avatar.Chat that checks its arguments. The length of a text decides whether the answer is
// an error or the same text.
type strict struct {
	t     *testing.T
	asked atomic.Int64 // number of calls of Chat
}

func (s *strict) SessionOf(talk string) (string, error) { return (&scripted{}).SessionOf(talk) }

func (s *strict) Chat(_ context.Context, talk, character, text string, take func(agent.Reply) error) error {
	s.asked.Add(1)
	if _, err := s.SessionOf(talk); err != nil || talk == "" || strings.TrimSpace(text) == "" || character != "" && character != "leo" {
		s.t.Errorf("%q is asked %q in %q (%v)", character, text, talk, err)
	}
	switch len(text) % 4 {
	case 0:
		return &httpserver.Fault{Word: "agent_busy", Sentence: text, HTTP: 429}
	case 1:
		return errors.New(text)
	}
	return errors.Join(take(agent.Felt{Emotion: agent.Neutral}), take(agent.Say{Text: text}), take(agent.Say{Text: ""}))
}

// shown returns one of many frames. The byte b selects the session and the body.
func shown(b byte) *feed.Frame {
	place := []struct {
		robot   device.ID
		session string
	}{{"", "vtb_main"}, {robotA, ""}, {robotA, "s2"}, {"", ""}}[b>>6]
	f := &feed.Frame{Robot: place.robot, Session: place.session}
	switch n := b & 0x3f; n % 10 {
	case 0, 1, 2, 3, 4, 5:
		states := []agent.Shown{agent.Idle, agent.Thinking, agent.Working, agent.Speaking, agent.Failed, agent.Notification}
		state := feed.State{Robot: f.Robot, Session: f.Session, State: states[n%10]}
		if n > 20 {
			state.Detail = &feed.StateDetail{Tool: "clock"}
		}
		f.Body = state
	case 6, 7, 8:
		status := []string{"running", "completed", "error"}[n%10-6]
		f.Body = feed.Tool{Robot: f.Robot, Session: f.Session, ID: string('a' + rune(n/30)), Name: "clock", Status: status}
	case 9:
		f.Body = feed.Said{Robot: f.Robot, Session: f.Session, Text: strings.Repeat("word ", 1<<(n/4))}
	}
	return f
}

// caller calls the methods of a connection without a socket, as after the handshake.
type caller struct {
	t       *testing.T
	c       *connection
	talks   *strict
	started map[string]bool // texts that were accepted; key: idempotency key
	seqs    map[string]int  // number of the latest chat event; key: run ID
	runs    map[string]int  // number of the latest agent event; key: session key and run ID
}

// call handles a request, and checks the response.
func (k *caller) call(ctx context.Context, line []byte) {
	r, asks, bad := parseRequest(true, line)
	if !asks {
		return
	}
	var payload any
	if bad == nil {
		payload, bad = k.c.call(ctx, r)
	}
	answer := httpserver.Encode(newResponse(r.ID, payload, bad))
	var again struct {
		ID      string
		Payload struct{ RunID, Status string }
	}
	if err := json.Unmarshal(answer, &again); err != nil || again.ID == "" {
		k.t.Fatalf("%s: %v", answer, err)
	}
	if bad != nil {
		if !slices.Contains([]string{invalidRequest, forbidden, unavailable}, bad.Code) || bad.Message == "" || len(bad.Message) > 2000 {
			k.t.Fatalf("a refusal is %s", answer)
		}
		return
	}
	if k.c.methods()[r.Method] == nil {
		k.t.Fatalf("%q is answered with %s", r.Method, answer)
	}
	scope := scopeRead
	if r.Method == "chat.send" || r.Method == "agent" {
		scope = scopeWrite
		if again.Payload.Status == accepted {
			again.Payload.Status = statusStarted
		}
		k.sent(again.Payload.RunID, again.Payload.Status)
	}
	if k.c.handshake.scopes.require(scope) != nil {
		k.t.Fatalf("%s may not %s", k.c.handshake.scopes, r.Method)
	}
}

// sent checks the status in the response to an accepted text. run is the text's idempotency key.
func (k *caller) sent(run, status string) {
	switch known := k.started[run]; {
	case status == statusStarted && known:
		k.t.Fatalf("the text %q is answered twice", run)
	case status != statusStarted && (!known || !slices.Contains([]string{statusInFlight, statusOK, statusError}, status)):
		k.t.Fatalf("the text %q is %q, and known %t", run, status, known)
	}
	k.started[run] = true
	if len(k.c.asking) > maxTexts {
		k.t.Fatalf("%d texts are under way", len(k.c.asking))
	}
}

// answered checks the chat events until the replies to all texts have ended.
func (k *caller) answered() {
	for len(k.c.asking) > 0 {
		select {
		case e := <-k.c.chats:
			k.event(e, "delta")
		case e := <-k.c.ended:
			if !k.c.asking[e.run] {
				k.t.Fatalf("the text %q ends, and was not under way", e.run)
			}
			delete(k.c.asking, e.run)
			k.event(e.last, "final", "error")
		}
	}
}

func (k *caller) event(e chatEvent, states ...string) {
	k.seqs[e.RunID]++
	if e.Seq != k.seqs[e.RunID] || !slices.Contains(states, e.State) || (e.State == "error") != (e.Error != "") {
		k.t.Fatalf("event %d of its run is %s", k.seqs[e.RunID], httpserver.Encode(e))
	}
}

// shows checks the agent events for the frames that the bytes of script select.
func (k *caller) shows(script []byte) {
	for _, b := range script {
		for _, e := range k.c.runs.handleFrame(shown(b), time.Now()) {
			httpserver.Encode(e)
			run := e.Session + " " + e.RunID
			if k.runs[run]++; e.Seq != k.runs[run] || e.Session == "" || e.RunID == "" {
				k.t.Fatalf("event %d of its run is %+v", k.runs[run], e)
			}
		}
	}
}

// FuzzCalls checks that each request after the handshake gets a valid response that the client's scopes
// allow, and that events are numbered in order. Each line of the script is a request or, without a
// brace, a list of frames. At an empty line the test waits for the ends of all replies. The bits of
// mayDo select the client's scopes.
func FuzzCalls(f *testing.F) {
	const admin = 4
	send := func(key, once, text string) string {
		return string(httpserver.Encode(map[string]any{"type": "req", "id": "1", "method": "chat.send",
			"params": map[string]any{"sessionKey": key, "idempotencyKey": once, "message": text}}))
	}
	call := func(method, params string) string {
		return `{"type":"req","id":"1","method":"` + method + `","params":` + params + `}`
	}
	for _, seed := range []string{
		// A text, the same text while it is answered and afterwards, and the frames of the turn.
		send("agent:main:main", "k", "hello!") + "\n" + send("agent:main:main", "k", "hello!") + "\n\n" + send("main", "k", "hello!") +
			"\n\x01\x06\x07\x03\x09\x00\x01\n" + call("sessions.list", `{"limit":1,"activeMinutes":0.5}`),
		// Two more turns in the conversation of a text, which have other runs.
		send("agent:main:main", "k", "hello!") + "\n\n\x01\x00\x01\x00\x01\x00",
		// Invalid texts, and texts to other agents.
		strings.Join([]string{send("", "k", "x"), send("main", "", "x"), send("main", "k", " "), send("agent:nobody:x", "k", "x"),
			send("agent:leo:", "k1", "hello!"), send("agent:main:robot:a0b1c2d3e4f5", "k2", "hello!"), send("agent:main:robot:x", "k3", "x"),
			send("agent:::", "k4", "x"), call("chat.send", `[]`), call("chat.send", `{"message":1}`)}, "\n"),
		// Texts that the agent answers with errors, and more texts at once than are accepted.
		strings.Join([]string{send("a", "1", "four"), send("b", "2", "fives"), send("c", "3", "a text"), send("d", "4", "a text"),
			send("e", "5", "a text"), "", send("a", "1", "four"), send("b", "2", "fives")}, "\n"),
		strings.Join([]string{call("agents.list", `{}`), call("agents.list", `null`), call("sessions.list", `{"limit":-1,"activeMinutes":-1}`),
			call("sessions.list", `{"limit":1e99}`), call("sessions.list", `{"activeMinutes":1e308}`), call("connect", `{}`),
			call("chat.abort", `{"sessionKey":"main","runId":"k"}`), call("sessions.patch", `{}`), `{"type":"cancel","id":"1"}`,
			`{"type":"req","id":"1"}`, `{"type":"event","id":"1","method":"x"}`, `{`, `{"type":"req","id":7}`}, "\n"),
		// Texts by the method agent, in several conversations.
		strings.Join([]string{call("agent", `{"message":"hello!","idempotencyKey":"a1"}`),
			call("agent", `{"message":"hello!","idempotencyKey":"a1"}`),
			call("agent", `{"agentId":"leo","sessionKey":"x","message":"hello!","idempotencyKey":"a2"}`),
			call("agent", `{"agentId":"leo","sessionKey":"agent:main:x","message":"hello!","idempotencyKey":"a3"}`),
			call("agent", `{"sessionKey":"agent:main:robot:a0b1c2d3e4f5","message":"fives","idempotencyKey":"a4"}`),
			call("agent", `{"message":""}`), ""}, "\n"),
		// Turns of robots, ends of tool calls without a start, and sentences that replace a long text.
		"\x41\x42\x46\x47\x48\x4b\x57\x58\x79\x7d\x7d\x44\x80\x81\x93\xc1\x02\x16\x03\x05\x04\n" + call("sessions.list", `{}`),
	} {
		for _, mayDo := range []byte{admin, 0, 1, 2} {
			f.Add(mayDo, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, mayDo byte, script []byte) {
		var asked []string
		for i, scope := range []string{scopeRead, scopeWrite, scopeAdmin} {
			if mayDo>>i&1 == 1 {
				asked = append(asked, scope)
			}
		}
		talks := &strict{t: t}
		s := New(Options{Chat: talks, Characters: cast{"leo"}, Name: func() string { return "Chan" }, Log: slog.New(slog.DiscardHandler)})
		k := &caller{t: t, c: newConnection(s, nil, "127.0.0.1:1"), talks: talks, started: map[string]bool{}, seqs: map[string]int{},
			runs: map[string]int{}}
		k.c.handshake = handshake{maxProtocol, grant(asked)}
		ctx, cancel := context.WithCancel(t.Context())
		defer k.c.replying.Wait()
		defer cancel()
		for n, line := range bytes.Split(script, []byte("\n")) {
			switch {
			case n == 50:
				return
			case len(line) == 0:
				k.answered()
			case bytes.IndexByte(line, '{') < 0:
				k.shows(line)
			default:
				k.call(ctx, line)
			}
		}
		k.answered()
		if n := talks.asked.Load(); int(n) != len(k.started) {
			t.Fatalf("%d texts were answered, of %d", n, len(k.started))
		}
	})
}
