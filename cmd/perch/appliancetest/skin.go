package appliancetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"perch/must"
	"perch/socket"
)

// Key is the key of the skins' API. Tests use it for other APIs, too.
const Key = "a key for the skins"

// Everything is the message with which a skin subscribes to all states, and to tools, emotions and
// notifications.
const Everything = `{"type":"subscribe","events":["agent_state","tool_status","emotion","notification"],"states":"all"}`

// Watcher is a skin (a program that shows the agent) that records the appliance's messages.
type Watcher struct {
	*socket.Conn
	reading sync.WaitGroup
	mu      sync.Mutex
	frames  []map[string]any
}

// Watch connects a skin as a browser does: with the key as a WebSocket subprotocol. subscribe is the
// skin's first message.
func (h *Appliance) Watch(subscribe string) *Watcher {
	h.T.Helper()
	w := WatchAt(h.T, h.URL(""), subscribe)
	h.T.Cleanup(w.Leave)
	return w
}

// WatchAt connects a skin to the appliance at a URL.
func WatchAt(t *testing.T, url, subscribe string) *Watcher {
	t.Helper()
	c, err := socket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1)+"/v1/vtuber/ws", socket.Options{Header: http.Header{
		"Sec-Websocket-Protocol": {"vtuber.v1, bearer." + base64.RawURLEncoding.EncodeToString([]byte(Key))}}})
	must.Succeed(t, err)
	w := &Watcher{Conn: c}
	must.Succeed(t, c.SendText([]byte(subscribe)))
	w.reading.Go(func() {
		for {
			_, text, err := c.Receive()
			if err != nil {
				return
			}
			var frame map[string]any
			if err := json.Unmarshal(text, &frame); err != nil {
				t.Error(err)
			}
			w.mu.Lock()
			w.frames = append(w.frames, frame)
			w.mu.Unlock()
		}
	})
	return w
}

// Leave closes the connection.
func (w *Watcher) Leave() { w.Close(socket.Normal, ""); w.reading.Wait() }

// Summary returns a line for each state, tool and emotion that the skin has received.
func (w *Watcher) Summary() (lines []string) {
	for _, f := range w.Frames() {
		switch f["type"] {
		case "agent_state":
			line := fmt.Sprint("state ", f["state"])
			if detail, ok := f["detail"].(map[string]any); ok && f["state"] == "juggling" {
				line += fmt.Sprint(" ", detail["subagent_count"])
			}
			lines = append(lines, line)
		case "tool_status":
			lines = append(lines, fmt.Sprint("tool ", f["tool_name"], " ", f["status"]))
		case "emotion":
			lines = append(lines, fmt.Sprint("emotion ", f["tag"]))
		}
	}
	return lines
}

// Frames returns all messages that the skin has received.
func (w *Watcher) Frames() []map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.frames)
}
