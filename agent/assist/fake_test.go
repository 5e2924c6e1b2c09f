package assist_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/assist"
	"perch/must"
	"perch/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const canary = "eyCanary-token_0123456789abcdef.x"

// fakeHA is a fake Home Assistant with a WebSocket API. rest serves all other requests.
type fakeHA struct {
	url   string
	rest  http.HandlerFunc
	conns atomic.Int64
	deaf  atomic.Bool // whether pings are ignored
	// answer responds to a command. It returns false to close the connection.
	answer func(p *peer, m command) bool

	mu       sync.Mutex
	received []command
	live     []*socket.Conn
}

type command struct {
	ID           int
	Type         string
	Text         string `json:"-"`
	Input        struct{ Text string }
	Pipeline     string
	PipelineID   string `json:"pipeline_id"`
	Conversation string `json:"conversation_id"`
	Subscription int
	Device       *string `json:"device_id"`
	Token        string  `json:"access_token"`
}

type peer struct {
	*socket.Conn
	mu sync.Mutex
}

func (p *peer) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.SendText(fmt.Appendf(nil, format, args...)) // the client may have closed the connection
}

// event sends an event of a run.
func (p *peer) event(m command, kind, data string) {
	p.say(`{"id":%d,"type":"event","event":{"type":"%s","data":%s}}`, m.ID, kind, data)
}

// delta sends a part of the answer, or of a tool call or its result.
func (p *peer) delta(m command, data string) {
	p.event(m, "intent-progress", `{"chat_log_delta":`+data+`}`)
}

// end ends a run with its whole answer. kind is the type of the response.
func (p *peer) end(m command, kind, speech, conversation string) {
	p.event(m, "intent-end",
		fmt.Sprintf(
			`{"processed_locally":true,"intent_output":{"response":{"speech":{"plain":{"speech":%q,"extra_data":null}},"response_type":%q,"data":{}},"conversation_id":%q,"continue_conversation":false}}`, speech, kind, conversation))
	p.event(m, "run-end", "null")
}

func newFakeHA(t testing.TB, answer func(p *peer, m command) bool) *fakeHA {
	t.Helper()
	h := &fakeHA{answer: answer}
	var running sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/websocket" {
			h.rest(w, r)
			return
		}
		c, err := socket.Accept(w, r, socket.Options{MaxMessage: 1 << 20})
		if err != nil {
			t.Error(err)
			return
		}
		running.Add(1)
		defer running.Done()
		h.conns.Add(1)
		h.mu.Lock()
		h.live = append(h.live, c)
		h.mu.Unlock()
		h.serve(&peer{Conn: c})
		c.Drop()
	}))
	h.url = server.URL
	t.Cleanup(func() { h.cut(); running.Wait(); server.Close() })
	return h
}

// cut closes all connections.
func (h *fakeHA) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.live {
		c.Drop()
	}
}

func (h *fakeHA) serve(p *peer) {
	p.say(`{"type":"auth_required","ha_version":"2026.11.0"}`)
	for {
		_, data, err := p.Receive()
		if err != nil {
			return
		}
		var m command
		if json.Unmarshal(data, &m) != nil {
			return
		}
		h.mu.Lock()
		h.received = append(h.received, m)
		h.mu.Unlock()
		switch m.Type {
		case "auth":
			if m.Token != canary {
				p.say(`{"type":"auth_invalid","message":"Invalid access token or password"}`)
				return
			}
			p.say(`{"type":"auth_ok","ha_version":"2026.11.0"}`)
		case "ping":
			if !h.deaf.Load() {
				p.say(`{"id":%d,"type":"pong"}`, m.ID)
			}
		case "unsubscribe_events":
			p.say(`{"id":%d,"type":"result","success":true,"result":null}`, m.ID)
		case "assist_pipeline/run":
			m.Text = m.Input.Text
			fallthrough
		default:
			if !h.answer(p, m) {
				return
			}
		}
	}
}

// commands returns the received commands of a type.
func (h *fakeHA) commands(kind string) (all []command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.received {
		if m.Type == kind {
			all = append(all, m)
		}
	}
	return all
}

// began sends the response to a run command, and the event that the run has started.
func (p *peer) began(m command) {
	p.say(`{"id":%d,"type":"result","success":true,"result":null}`, m.ID)
	p.event(m, "run-start", `{"pipeline":"p","language":"en","runner_data":{"stt_binary_handler_id":null,"timeout":300}}`)
}

func (h *fakeHA) brain(t testing.TB, change ...func(*assist.Options)) *assist.Brain {
	t.Helper()
	o := assist.Options{URL: h.url, Token: canary}
	for _, c := range change {
		c(&o)
	}
	b, err := assist.New(o)
	must.Succeed(t, err)
	t.Cleanup(b.Close)
	return b
}

// collect returns a function that appends replies to the list as text.
func collect(replies *[]string) func(agent.Reply) error {
	return func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Felt:
			*replies = append(*replies, r.Emotion.Emoji)
		case agent.Say:
			*replies = append(*replies, r.Text)
		case agent.ToolStatus:
			*replies = append(*replies, fmt.Sprintf("<%s %s %s>", r.ID, r.Name, r.Status))
		case agent.Done:
			*replies = append(*replies, "."+string(r.End))
		}
		return nil
	}
}

// say runs one turn and returns its replies, separated by "|".
func say(t testing.TB, b *assist.Brain, words string) (string, error) {
	t.Helper()
	var replies []string
	err := b.Think(t.Context(), agent.Turn{Conversation: "robot", Text: words, Language: "en"}, collect(&replies))
	return strings.Join(replies, "|"), err
}

func want(t testing.TB, b *assist.Brain, words, want string) {
	t.Helper()
	if got, err := say(t, b, words); err != nil || got != want {
		t.Errorf("%q gave\n%s\nnot\n%s\n%v", words, got, want, err)
	}
}
