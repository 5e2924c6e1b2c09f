package assist_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/assist"
	"perch/must"
	"perch/waittest"
)

// plain answers a command in one piece, like a conversation agent that does not stream.
func plain(p *peer, m command) bool {
	p.began(m)
	p.event(m, "intent-start", `{"engine":"conversation.home_assistant","conversation_id":"c1"}`)
	p.end(m, "action_done", "You said "+m.Text+".", "c1")
	return true
}

func TestAWholeAnswer(t *testing.T) {
	h := newFakeHA(t, plain)
	b := h.brain(t)
	if b.Name() != "assist" {
		t.Error(b.Name())
	}
	want(t, b, "light on", "😐|You said light on.|.done")
	want(t, b, "light off", "😐|You said light off.|.done")
	runs := h.commands("assist_pipeline/run")
	if len(runs) != 2 || runs[0].Conversation != "" || runs[1].Conversation != "c1" || runs[0].Pipeline != "" || runs[0].Device != nil {
		t.Errorf("%+v", runs)
	}
	if n := h.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	waittest.For(t, "runs are let go of", func() bool { return len(h.commands("unsubscribe_events")) == 2 })
}

// TestAnAnswerIsSpokenAsItIsWritten tests that the first sentence is sent before the second
// has arrived.
func TestAnAnswerIsSpokenAsItIsWritten(t *testing.T) {
	spoken := make(chan struct{})
	h := newFakeHA(t, func(p *peer, m command) bool {
		p.began(m)
		p.delta(m, `{"role":"assistant"}`)
		p.delta(m, `{"content":"😊 Let me lo"}`)
		p.delta(m, `{"content":"ok. "}`)
		p.delta(m, `{"content":"A mom"}`)
		<-spoken
		p.delta(m, `{"content":"ent.","thinking_content":"Secret."}`)
		p.delta(m,
			`{"tool_calls":[{"id":"t1","tool_name":"GetLiveContext","tool_args":{}},{"tool_name":"none"},{"id":"t2","tool_name":"HassTurnOn","tool_args":{"name":"x"}}]}`)
		p.delta(m,
			`{"role":"tool_result","agent_id":"a","tool_call_id":"t1","tool_name":"GetLiveContext","tool_result":{"success":true},"content":"Do not say this."}`)
		p.delta(m, `{"role":"tool_result","tool_call_id":"t2","tool_name":"HassTurnOn","tool_result":{"error":"HomeAssistantError"}}`)
		p.event(m, "intent-progress", `{"tts_start_streaming":true}`)
		p.event(m, "intent-progress", `{"chat_log_delta":7}`)
		p.delta(m, `{"role":"assistant","content":"It is warm."}`)
		p.end(m, "query_answer", "It is warm.", "c1")
		return true
	})
	var replies []string
	note := collect(&replies)
	err := h.brain(t).Think(t.Context(), agent.Turn{Text: "x", Language: "en"}, func(r agent.Reply) error {
		if s, ok := r.(agent.Say); ok && s.Text == "Let me look." {
			close(spoken)
		}
		return note(r)
	})
	got := strings.Join(replies, "|")
	if err != nil ||
		got != "😊|Let me look.|A moment.|<t1 GetLiveContext running>|<t2 HassTurnOn running>|<t1 GetLiveContext done>|<t2 HassTurnOn failed>|It is warm.|.done" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestErrorAnswersAreSpoken(t *testing.T) {
	streamed, speech := "", ""
	h := newFakeHA(t, func(p *peer, m command) bool {
		p.began(m)
		if streamed != "" {
			p.delta(m, `{"role":"assistant","content":`+strconv.Quote(streamed)+`}`)
		}
		p.end(m, "error", speech, "c1")
		return true
	})
	b := h.brain(t)
	for _, c := range []struct{ streamed, speech, want string }{
		{"", "Sorry, I do not know that.", "😐|Sorry, I do not know that.|.done"},
		{"Let me see", "Sorry, it failed.", "😐|Let me see|Sorry, it failed.|.done"},
		{"Sorry, it failed.", "Sorry, it failed.", "😐|Sorry, it failed.|.done"},
		{"", "", ".done"},
	} {
		streamed, speech = c.streamed, c.speech
		want(t, b, "x", c.want)
	}
}

func TestConversations(t *testing.T) {
	now, next := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), "c1"
	h := newFakeHA(t, func(p *peer, m command) bool {
		p.began(m)
		if m.Text == "fail" {
			p.event(m, "error", `{"code":"intent-failed","message":"Unexpected error"}`)
			return true
		}
		p.end(m, "action_done", "Yes.", next)
		return true
	})
	b := h.brain(t, func(o *assist.Options) { o.Now = func() time.Time { return now } })
	with := func(conversation, words, want string) {
		t.Helper()
		_ = b.Think(t.Context(), agent.Turn{Conversation: conversation, Text: words}, func(agent.Reply) error { return nil })
		runs := h.commands("assist_pipeline/run")
		if got := runs[len(runs)-1].Conversation; got != want {
			t.Errorf("%s went on with %q, want %q", words, got, want)
		}
	}
	with("a", "first", "")
	with("b", "another robot", "")
	next = "c2" // Home Assistant has forgotten c1 and starts a new conversation
	with("a", "second", "c1")
	with("a", "third", "c2")
	now = now.Add(5*time.Minute - time.Second)
	with("a", "in time", "c2")
	now = now.Add(5 * time.Minute)
	with("a", "too late", "")
	with("a", "again", "c2")
	b.Forget("a")
	with("a", "forgotten", "")
	with("a", "fail", "c2")
	with("a", "after that", "")
	next = strings.Repeat("x", 201)
	with("a", "an id too long", "c2")
	with("a", "is none", "")
	next = "c3"
	for i := range 70 {
		now = now.Add(time.Second)
		with(strconv.Itoa(i), "many", "")
	}
	with("69", "is kept", "c3")
	with("0", "is not kept", "")
}

// TestInterruptedTurnStaysInTheConversation tests that a cancelled turn is stopped in Home
// Assistant, and that the next turn continues the conversation.
func TestInterruptedTurnStaysInTheConversation(t *testing.T) {
	started := make(chan struct{}, 1)
	h := newFakeHA(t, func(p *peer, m command) bool {
		p.began(m)
		p.event(m, "intent-start", `{"conversation_id":"c7"}`)
		if m.Text == "wait" {
			p.delta(m, `{"role":"assistant","content":"Well then. And"}`)
			started <- struct{}{}
			return true
		}
		p.end(m, "action_done", "Yes.", "c7")
		return true
	})
	b := h.brain(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := b.Think(ctx, agent.Turn{Conversation: "robot", Text: "wait"}, func(r agent.Reply) error {
		if _, ok := r.(agent.Say); ok {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
	waittest.For(t, "the run is ended", func() bool { return len(h.commands("unsubscribe_events")) == 1 })
	want(t, b, "next", "😐|Yes.|.done")
	if runs := h.commands("assist_pipeline/run"); runs[1].Conversation != "c7" || h.conns.Load() != 1 {
		t.Errorf("%+v, %d connections", runs, h.conns.Load())
	}
	gone := errors.New("gone")
	if err := b.Think(t.Context(), agent.Turn{Text: "x"}, func(agent.Reply) error { return gone }); err != gone {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Think(cancelled, agent.Turn{Text: "x"}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func asAway(t *testing.T, err error, words string) {
	t.Helper()
	if !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), canary[2:20]) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %q", err, words)
	}
}

func TestTurnsThatFail(t *testing.T) {
	fail := func(code string) func(*peer, command) bool {
		return func(p *peer, m command) bool {
			p.say(`{"id":%d,"type":"result","success":false,"error":{"code":%q,"message":"no %s"}}`, m.ID, code, canary)
			return true
		}
	}
	for name, c := range map[string]struct {
		answer func(*peer, command) bool
		words  string
	}{
		"no pipeline": {fail("pipeline-not-found"), "no such Assist pipeline"},
		"cut":         {func(*peer, command) bool { return false }, "closed the connection"},
		"cut midway":  {func(p *peer, m command) bool { p.began(m); return false }, "closed the connection"},
		"no sign":     {func(*peer, command) bool { return true }, "did not answer within 100ms"},
		"no answer":   {func(p *peer, m command) bool { p.began(m); return true }, "did not answer within 200ms"},
		"silence":     {func(p *peer, m command) bool { p.began(m); p.delta(m, `{"role":"assistant"}`); return true }, "did not answer within 150ms"},
		"no word":     {func(p *peer, m command) bool { p.began(m); p.event(m, "run-end", "null"); return true }, "without an answer"},
		"odd answer": {func(p *peer, m command) bool {
			p.began(m)
			p.event(m, "intent-end", `{"intent_output":null}`)
			return true
		}, "does not conform to its API"},
		"empty pieces": {func(p *peer, m command) bool {
			p.began(m)
			for range 60 {
				p.delta(m, `{"role":"assistant","content":""}`)
				time.Sleep(10 * time.Millisecond)
			}
			return true
		}, "did not answer within"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFakeHA(t, c.answer).brain(t, func(o *assist.Options) {
				o.ConnectWithin, o.FirstWithin, o.IdleWithin = 100*time.Millisecond, 200*time.Millisecond, 150*time.Millisecond
				if name != "no sign" {
					o.ConnectWithin = 5 * time.Second
				}
			})
			got, err := say(t, b, "x")
			asAway(t, err, c.words)
			if strings.Contains(got, ".done") {
				t.Error(got)
			}
		})
	}
}

// TestFailureAfterAToolIsFinal tests that the error of a turn in which a tool has run does not
// wrap agent.ErrAway, so that no other brain is asked.
func TestFailureAfterAToolIsFinal(t *testing.T) {
	h := newFakeHA(t, func(p *peer, m command) bool {
		p.began(m)
		p.delta(m, `{"role":"assistant","tool_calls":[{"id":"1","tool_name":"HassTurnOn"}]}`)
		p.event(m, "error", `{"code":"intent-failed"}`)
		return true
	})
	if _, err := say(t, h.brain(t), "x"); err == nil || errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
}

func TestWrongToken(t *testing.T) {
	h := newFakeHA(t, plain)
	b := h.brain(t, func(o *assist.Options) { o.Token = "wrong" })
	_, err := say(t, b, "x")
	asAway(t, err, "refuses the token")
	asAway(t, b.Check(t.Context()), "refuses the token")
}

// TestReconnectAfterARestart tests that a turn opens a new connection after the connection was
// closed.
func TestReconnectAfterARestart(t *testing.T) {
	h := newFakeHA(t, plain)
	b := h.brain(t)
	want(t, b, "a", "😐|You said a.|.done")
	h.cut()
	waittest.For(t, "it is back", func() bool { got, err := say(t, b, "b"); return err == nil && got == "😐|You said b.|.done" })
	if n := h.conns.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// TestQuietConnectionIsPinged tests that an idle connection is pinged before a command, that it
// is replaced if it does not answer, and that no command is sent twice.
func TestQuietConnectionIsPinged(t *testing.T) {
	h := newFakeHA(t, plain)
	b := h.brain(t, func(o *assist.Options) { o.QuietFor, o.ConnectWithin = 1, 200*time.Millisecond })
	want(t, b, "a", "😐|You said a.|.done")
	want(t, b, "b", "😐|You said b.|.done")
	if h.conns.Load() != 1 || len(h.commands("ping")) != 1 {
		t.Errorf("%d connections, %d pings", h.conns.Load(), len(h.commands("ping")))
	}
	h.deaf.Store(true)
	want(t, b, "c", "😐|You said c.|.done")
	if runs := h.commands("assist_pipeline/run"); h.conns.Load() != 2 || len(runs) != 3 {
		t.Errorf("%d connections, %d runs", h.conns.Load(), len(runs))
	}
}

func TestConcurrentTurns(t *testing.T) {
	h := newFakeHA(t, plain)
	b := h.brain(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			var replies []string
			id := strconv.Itoa(i)
			err := b.Think(t.Context(), agent.Turn{Conversation: id, Text: id}, collect(&replies))
			if got := strings.Join(replies, "|"); err != nil || got != "😐|You said "+id+".|.done" {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	wg.Wait()
	if n := h.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestCloseEndsATurn(t *testing.T) {
	begun := make(chan struct{}, 1)
	h := newFakeHA(t, func(p *peer, m command) bool { p.began(m); begun <- struct{}{}; return true })
	b := h.brain(t)
	done := make(chan error)
	go func() { _, err := say(t, b, "x"); done <- err }()
	<-begun
	b.Close()
	asAway(t, <-done, "is closed")
	_, err := say(t, b, "x")
	asAway(t, err, "is closed")
}

func TestCheck(t *testing.T) {
	h := newFakeHA(t, func(p *peer, m command) bool {
		if m.Type != "assist_pipeline/pipeline/get" {
			return plain(p, m)
		}
		if m.PipelineID == "nope" || m.PipelineID == "conversation.nope" {
			p.say(`{"id":%d,"type":"result","success":false,"error":{"code":"not_found","message":"Unable to find pipeline_id nope"}}`, m.ID)
		} else {
			p.say(`{"id":%d,"type":"result","success":true,"result":{"name":"Home"}}`, m.ID)
		}
		return true
	})
	b := h.brain(t, func(o *assist.Options) { o.Agent = "conversation.home_assistant" })
	must.Succeed(t, b.Check(t.Context()))
	want(t, b, "a", "😐|You said a.|.done")
	if n := h.conns.Load(); n != 1 || h.commands("assist_pipeline/run")[0].Pipeline != "conversation.home_assistant" {
		t.Errorf("%d connections, %+v", n, h.commands("assist_pipeline/run"))
	}
	asAway(t, h.brain(t, func(o *assist.Options) { o.Pipeline = "nope" }).Check(t.Context()), "has no such Assist pipeline")
}

func TestREST(t *testing.T) {
	h := newFakeHA(t, nil)
	var asked []string
	h.rest = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		switch {
		case r.Header.Get("Authorization") != "Bearer "+canary:
			w.WriteHeader(401)
		case strings.HasSuffix(r.URL.Path, "nope"):
			w.WriteHeader(404)
		case strings.Contains(string(body), "fail"):
			http.Error(w, `{"message":"Message format incorrect: invalid agent ID"}`, 400)
		default:
			_, _ = io.WriteString(w,
				`{"response":{"speech":{"plain":{"speech":"😊 It is on. And warm."}},"response_type":"action_done"},"conversation_id":"c1"}`)
		}
	}
	b := h.brain(t, func(o *assist.Options) { o.REST, o.Agent = true, "conversation.x" })
	want(t, b, "on", "😊|It is on.|And warm.|.done")
	want(t, b, "on", "😊|It is on.|And warm.|.done")
	_, err := say(t, b, "fail")
	asAway(t, err, "invalid agent ID); check agent")
	must.Succeed(t, b.Check(t.Context()))
	if !slices.Equal(asked, []string{
		`POST /api/conversation/process {"text":"on","language":"en","agent_id":"conversation.x"}`,
		`POST /api/conversation/process {"text":"on","language":"en","agent_id":"conversation.x","conversation_id":"c1"}`,
		`POST /api/conversation/process {"text":"fail","language":"en","agent_id":"conversation.x","conversation_id":"c1"}`,
		`GET /api/states/conversation.x `,
	}) {
		t.Errorf("%q", asked)
	}
	asAway(t, h.brain(t, func(o *assist.Options) { o.REST, o.Agent = true, "conversation.nope" }).Check(t.Context()),
		"has no conversation agent conversation.nope")
	asAway(t, h.brain(t, func(o *assist.Options) { o.REST, o.Token = true, "wrong" }).Check(t.Context()), "refuses the token")
	if err := h.brain(t, func(o *assist.Options) { o.REST, o.Agent = true, "homeassistant" }).Check(t.Context()); err != nil ||
		asked[len(asked)-1] != "GET /api/ " {
		t.Errorf("%v, %q", err, asked)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]assist.Options{
		"pipeline and agent":  {URL: "http://x:8123", Token: "x", Pipeline: "a", Agent: "conversation.b"},
		"pipeline and rest":   {URL: "http://x:8123", Token: "x", Pipeline: "a", REST: true},
		"an agent of another": {URL: "http://x:8123", Token: "x", Agent: "homeassistant"},
		"a deadline":          {URL: "http://x:8123", Token: "x", IdleWithin: -1},
		"a long name":         {URL: "http://x:8123", Token: "x", Pipeline: strings.Repeat("x", 201)},
	} {
		if _, err := assist.New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
