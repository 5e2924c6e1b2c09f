package assist

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"perch/must"
	"perch/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const canary = "eyCanary-token_0123456789abcdef.x"

// fakeHA is a fake Home Assistant with the WebSocket API and text to speech.
type fakeHA struct {
	t     testing.TB
	url   string
	conns atomic.Int64
	// script serves an authenticated connection. m is the first command.
	script func(p *peer, m command)
	// address handles requests for the URL of a sound, sound the requests to that URL.
	address, sound http.HandlerFunc

	mu    sync.Mutex
	asked []string // bodies of requests for speech
}

type command struct {
	ID       int
	Type     string
	Start    string `json:"start_stage"`
	End      string `json:"end_stage"`
	Pipeline string
	Engine   string `json:"engine_id"`
	Language string
	Input    struct {
		Rate  int  `json:"sample_rate"`
		NoVAD bool `json:"no_vad"`
	}
}

type peer struct{ *socket.Conn }

func (p *peer) say(format string, args ...any) {
	_ = p.SendText(fmt.Appendf(nil, format, args...)) // fails if the client has disconnected
}

func (p *peer) event(m command, kind, data string) {
	p.say(`{"id":%d,"type":"event","event":{"type":"%s","data":%s}}`, m.ID, kind, data)
}

// began accepts a run of a pipeline, with the handler ID 3 for its sound.
func (p *peer) began(m command) {
	p.say(`{"id":%d,"type":"result","success":true,"result":null}`, m.ID)
	p.event(m, "run-start", `{"pipeline":"p","language":"en","runner_data":{"stt_binary_handler_id":3,"timeout":300}}`)
	p.event(m, "stt-start", `{"engine":"stt.x","metadata":{"sample_rate":16000}}`)
}

// hear returns the sound of a run until its end, without the handler IDs.
func (p *peer) hear(t testing.TB) (sound []byte) {
	for {
		text, data, err := p.Receive()
		switch {
		case err != nil:
			return sound
		case text:
			continue
		case data[0] != 3:
			t.Errorf("sound goes to %d", data[0])
		case len(data) == 1:
			return sound
		}
		sound = append(sound, data[1:]...)
	}
}

// hangUp reads until the client disconnects.
func (p *peer) hangUp() {
	for {
		if _, _, err := p.Receive(); err != nil {
			return
		}
	}
}

func newFakeHA(t testing.TB, script func(p *peer, m command)) *fakeHA {
	t.Helper()
	h := &fakeHA{t: t, script: script}
	h.address = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"url":"http://internal.example:8123/api/tts_proxy/x-_1.wav","path":"/api/tts_proxy/x-_1.wav"}`)
	}
	var running sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/websocket":
			running.Add(1)
			defer running.Done()
			h.conns.Add(1)
			h.serve(w, r)
		case "/api/tts_get_url":
			body, _ := io.ReadAll(r.Body)
			h.mu.Lock()
			h.asked = append(h.asked, string(body))
			h.mu.Unlock()
			if r.Header.Get("Authorization") != "Bearer "+canary || r.Method != http.MethodPost {
				http.Error(w, "401: Unauthorized", http.StatusUnauthorized)
				return
			}
			h.address(w, r)
		case "/api/tts_proxy/x-_1.wav":
			h.sound(w, r)
		default:
			http.Error(w, "404: Not Found", http.StatusNotFound)
		}
	}))
	h.url = server.URL
	t.Cleanup(func() { running.Wait(); server.Close() })
	return h
}

func (h *fakeHA) serve(w http.ResponseWriter, r *http.Request) {
	c, err := socket.Accept(w, r, socket.Options{MaxMessage: 1 << 20})
	if err != nil {
		h.t.Error(err)
		return
	}
	defer c.Drop()
	p := &peer{c}
	p.say(`{"type":"auth_required","ha_version":"2026.11.0"}`)
	_, data, err := c.Receive()
	if err != nil {
		return
	}
	if !strings.Contains(string(data), `"access_token":"`+canary+`"`) {
		p.say(`{"type":"auth_invalid","message":"Invalid access token or password"}`)
		return
	}
	p.say(`{"type":"auth_ok","ha_version":"2026.11.0"}`)
	var m command
	if _, data, err = c.Receive(); err != nil {
		return
	}
	if err := json.Unmarshal(data, &m); err != nil {
		h.t.Error(err)
	}
	h.script(p, m)
}

// setUp returns a script that responds to a request for the settings of a pipeline or an engine. If
// pipeline is empty, nothing exists.
func setUp(pipeline string) func(p *peer, m command) {
	return func(p *peer, m command) {
		switch {
		case pipeline == "", m.Type == "tts/engine/get" && m.Engine != "tts.piper":
			p.say(`{"id":%d,"type":"result","success":false,"error":{"code":"not_found","message":"nothing"}}`, m.ID)
		default:
			p.say(`{"id":%d,"type":"result","success":true,"result":%s}`, m.ID, pipeline)
		}
		p.hangUp()
	}
}

func (h *fakeHA) recognizer(change ...func(*Options)) *Recognizer {
	r, err := NewRecognizer(h.options(change))
	must.Succeed(h.t, err)
	h.t.Cleanup(r.Close)
	return r
}

func (h *fakeHA) synthesizer(change ...func(*Options)) *Synthesizer {
	s, err := NewSynthesizer(h.options(change))
	must.Succeed(h.t, err)
	h.t.Cleanup(s.Close)
	return s
}

func (h *fakeHA) options(change []func(*Options)) Options {
	o := Options{URL: h.url, Token: canary}
	for _, c := range change {
		c(&o)
	}
	return o
}
