package robot

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/store/storetest"
)

// communityRobot is a client that behaves like the community's firmware for Stack-chan, v1.1.0 (xiaozhi-model.js). It makes no
// check-in, its token was typed in, and its Device-Id and Client-Id may be any text. In half duplex mode it opens its microphone
// after the hello and after each speech, and plays nothing before tts start. In downlink mode it has no microphone.
type communityRobot struct {
	ws       *websocket.Conn
	downlink bool

	mu        sync.Mutex
	session   string
	uploading bool
	story     []string
}

// dialAsCommunity connects a robot with a token, and sends a hello with a format of sound. If the robot is refused, r is nil.
// status is the HTTP status of the response.
func dialAsCommunity(t *testing.T, s *Server, token, format string, downlink bool) (r *communityRobot, status int) {
	header := http.Header{"Protocol-Version": {"1"}, "Device-Id": {"physical-1"}, "Client-Id": {"client-1"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return httpservertest.Serve(t, routesOf(t, s)), nil }}
	ws, response, err := dialer.Dial("ws://192.168.1.2:8003/xiaozhi/v1/", header)
	if err != nil {
		return nil, response.StatusCode
	}
	r = &communityRobot{ws: ws, downlink: downlink}
	r.send(fmt.Sprintf(`{"type":"hello","version":1,"transport":"websocket","features":{"mcp":true},`+
		`"audio_params":{"format":%q,"sample_rate":16000,"channels":1,"frame_duration":60}}`, format))
	go r.receive(t)
	return r, http.StatusSwitchingProtocols
}

func (r *communityRobot) send(text string) {
	_ = r.ws.WriteMessage(websocket.TextMessage, []byte(text))
}

// note adds a message to the story. Consecutive packets of sound are a single "sound".
func (r *communityRobot) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.story); what == "sound" && n > 0 && r.story[n-1] == what {
		return
	}
	r.story = append(r.story, what)
}

// told returns the story since its previous call.
func (r *communityRobot) told() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.story = nil }()
	return strings.Join(r.story, ", ")
}

func (r *communityRobot) receive(t *testing.T) {
	for {
		kind, data, err := r.ws.ReadMessage()
		if err != nil {
			r.note("closed")
			return
		}
		if kind == websocket.BinaryMessage {
			switch {
			case r.session == "":
				t.Error("sound came before the hello, which ends the connection")
			case r.uploading:
				r.note("lost sound")
			default:
				r.note("sound")
			}
			continue
		}
		var m struct {
			Session   string  `json:"session_id"`
			Type      string  `json:"type"`
			Transport string  `json:"transport"`
			State     string  `json:"state"`
			Text      *string `json:"text"`
			Message   string  `json:"message"`
			Payload   struct {
				ID     *int   `json:"id"`
				Method string `json:"method"`
			} `json:"payload"`
		}
		if err := json.Unmarshal(data, &m); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if m.Type != "hello" && r.session != "" && m.Session != r.session {
			t.Errorf("a message of another session is ignored: %s", data)
		}
		switch m.Type {
		case "hello":
			if m.Transport != "websocket" {
				t.Errorf("invalid hello: %s", data)
			}
			r.session = m.Session
			r.listen()
		case "mcp":
			r.answer(m.Payload.ID, m.Payload.Method)
		case "tts":
			switch m.State {
			case "start":
				r.uploading = false
				r.note("start")
			case "sentence_start":
				if m.Text == nil {
					t.Errorf("invalid sentence: %s", data)
				} else {
					r.note(*m.Text)
				}
			case "stop":
				r.note("stop")
				r.listen()
			}
		case "alert":
			r.note("alert " + m.Message)
		}
	}
}

// listen opens the microphone, if there is one.
func (r *communityRobot) listen() {
	if !r.downlink {
		r.uploading = true
		r.send(fmt.Sprintf(`{"session_id":%q,"type":"listen","state":"start","mode":"auto"}`, r.session))
	}
}

// answer responds to a request of the appliance.
func (r *communityRobot) answer(id *int, method string) {
	results := map[string]string{"initialize": `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"stack-chan","version":"unknown"}}`,
		"tools/list": `{"tools":[{"name":"set_emotion","inputSchema":{"type":"object","properties":{}}}],"nextCursor":""}`}
	if result := results[method]; id != nil && result != "" {
		r.send(fmt.Sprintf(`{"session_id":%q,"type":"mcp","payload":{"jsonrpc":"2.0","id":%d,"result":%s}}`, r.session, *id, result))
	}
}

// TestRobotWithoutCheckIn checks that a robot with the community's firmware is refused until its owner has added it, with an
// error that says how to add it. In downlink mode its connection stays open, does not count as a conversation, and the robot can
// speak at any time. In half duplex mode its channel is closed when it is idle, like that of any other robot.
func TestRobotWithoutCheckIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := event.NewBus()
		registry := device.NewRegistry(device.Key("k"), device.AdoptOpen, &storetest.Table[device.Robot]{})
		var refused []string
		board, events := agent.NewBoard(), bus.Read()
		o := testOptions(registry, bus, mindSaying(agent.Done{End: agent.Continue}))
		o.RecordRefusal = func(r *http.Request, err error) { refused = append(refused, err.Error()) }
		s := NewServer(o)
		shows := func() agent.State {
			synctest.Wait()
			for bus.Seq() > 0 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
				e, err := events.Next(ctx)
				cancel()
				if err != nil {
					break
				}
				board.HandleEvent(e)
			}
			return board.Robot(registry.List()[0].ID)
		}

		if _, status := dialAsCommunity(t, s, "typed in", "opus", true); status != http.StatusBadRequest {
			t.Errorf("before it is added: %d", status)
		}
		if len(refused) != 1 || !strings.Contains(refused[0], "perch robot add NAME") {
			t.Errorf("its owner is shown %q", refused)
		}
		robot := must.Value(registry.AddByHand("desk", "http://192.168.1.2:8003", time.Now()))(t)
		_, token, err := registry.Token(robot.ID, device.NewClient("client-1"))
		must.Succeed(t, err)

		r, status := dialAsCommunity(t, s, token, "opus", true)
		if r == nil {
			t.Fatalf("once it is added: %d", status)
		}
		for range 3 {
			time.Sleep(time.Hour)
			if shown := shows(); !shown.Online || shown.Talking {
				t.Errorf("its standing connection shows %+v", shown)
			}
			for _, text := range []string{"Dinner is ready.", "Come."} {
				if queued := must.Value(s.Speak(t.Context(), robot.ID, text))(t); queued {
					t.Errorf("%q has to wait", text)
				}
			}
			time.Sleep(10 * time.Second)
			if got, want := r.told(), "start, Dinner is ready., sound, stop, start, Come., sound, stop"; got != want {
				t.Errorf("it hears\n  %s\nwant\n  %s", got, want)
			}
		}
		if tools := s.Tools(robot.ID); len(tools) != 1 {
			t.Errorf("it has the tools %v", tools)
		}

		r, _ = dialAsCommunity(t, s, token, "opus", false) // replaces the first connection
		time.Sleep(5 * time.Second)
		if shown := shows(); !shown.Talking {
			t.Errorf("with its microphone it shows %+v", shown)
		}
		must.Value(s.Speak(t.Context(), robot.ID, "Yes."))(t)
		time.Sleep(5 * time.Second)
		if got, want := r.told(), "start, Yes., sound, stop"; got != want {
			t.Errorf("half duplex it hears\n  %s\nwant\n  %s", got, want)
		}
		time.Sleep(2 * time.Minute)
		if got := r.told(); got != "closed" {
			t.Errorf("idle, it hears %q", got)
		}

		r, _ = dialAsCommunity(t, s, token, "pcm", true)
		time.Sleep(time.Second)
		if got := r.told(); !strings.HasPrefix(got, "alert ") || !strings.Contains(got, `"pcm"`) || !strings.HasSuffix(got, ", closed") {
			t.Errorf("with another format it hears %q", got)
		}
		must.Succeed(t, registry.Forget(robot.ID))
		if _, status := dialAsCommunity(t, s, token, "opus", true); status != http.StatusBadRequest {
			t.Errorf("once it is forgotten: %d", status)
		}
		s.Close()
		bus.Close()
	})
}

// TestBrowserAtTheRobotsWebSocket checks that a browser that opens the address of the WebSocket is redirected to a page, and
// is not recorded as a refused robot.
func TestBrowserAtTheRobotsWebSocket(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	o := testOptions(&registry{}, bus, nil)
	o.RecordRefusal = func(_ *http.Request, err error) { t.Errorf("a refused robot: %v", err) }
	s := NewServer(o)
	defer s.Close()
	r, w := httptest.NewRequest(http.MethodGet, "/xiaozhi/v1/", nil), httptest.NewRecorder()
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	routesOf(t, s).ServeHTTP(w, r)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/xiaozhi/ota/" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
