package hass

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const canary = "eyCanary-token_0123456789abcdef.x"

// peer is Home Assistant's end of a WebSocket. Tests write invalid frames to conn directly.
type peer struct {
	t    testing.TB
	ws   *websocket.Conn
	conn net.Conn
}

// serve runs a script for each connection to /api/websocket.
func serve(t testing.TB, script func(*peer)) *Client {
	t.Helper()
	var running sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/websocket" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		ws, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		running.Add(1)
		defer running.Done()
		defer func() { _ = ws.Close() }()
		script(&peer{t, ws, ws.NetConn()})
	}))
	t.Cleanup(func() { running.Wait(); server.Close() })
	return client(t, server.URL, Options{})
}

func client(t testing.TB, url string, o Options) *Client {
	t.Helper()
	o.URL, o.Token = url, canary
	c, err := New(o)
	must.Succeed(t, err)
	t.Cleanup(c.Close)
	return c
}

// dial returns a connection that is closed at the end of the test.
func dial(t testing.TB, c *Client) *Conn {
	t.Helper()
	conn, err := c.Dial(t.Context())
	must.Succeed(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// frame writes a message. kind is a message type of the library. An error is ignored, because the
// client may have disconnected.
func (p *peer) frame(kind int, payload string) { _ = p.ws.WriteMessage(kind, []byte(payload)) }

func (p *peer) text(format string, args ...any) {
	p.frame(websocket.TextMessage, fmt.Sprintf(format, args...))
}

// split sends a message in fragments of three bytes, and writes each byte separately.
func (p *peer) split(message string) {
	var wire []byte
	for i := 0; i < len(message); i += 3 {
		end, first := min(i+3, len(message)), byte(0)
		if i == 0 {
			first = 1
		}
		if end == len(message) {
			first |= 0x80
		}
		wire = append(append(wire, first, byte(end-i)), message[i:end]...)
	}
	for i := range wire {
		_, _ = p.conn.Write(wire[i : i+1])
	}
}

// read returns the client's next message. kind is CloseMessage after the end of the connection.
func (p *peer) read() (kind int, payload []byte) {
	kind, payload, err := p.ws.ReadMessage()
	if err != nil {
		return websocket.CloseMessage, nil
	}
	return kind, payload
}

// command returns the client's next command, and skips sound. It returns nil after the end of the
// connection.
func (p *peer) command() (m map[string]any) {
	kind, payload := p.read()
	for kind == websocket.BinaryMessage {
		kind, payload = p.read()
	}
	if kind == websocket.TextMessage {
		if err := json.Unmarshal(payload, &m); err != nil {
			p.t.Error(err)
		}
	}
	return m
}

// greet authenticates the client.
func (p *peer) greet() {
	p.text(`{"type":"auth_required","ha_version":"2026.11.0"}`)
	if m := p.command(); m["type"] != "auth" || m["access_token"] != canary {
		p.t.Errorf("authenticated with %v", m)
	}
	p.text(`{"type":"auth_ok","ha_version":"2026.11.0"}`)
}

// hangUp reads until the client disconnects.
func (p *peer) hangUp() {
	for kind := 0; kind != websocket.CloseMessage; kind, _ = p.read() {
	}
}

// sentence checks that the error's text contains the words and not the token.
func sentence(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if text := err.Error(); strings.Contains(text, canary[2:20]) || strings.ContainsAny(text, "\n\r") || len(text) > 600 {
		t.Errorf("not a sentence, or holds the token: %q", text)
	}
}

const soon = 5 * time.Second
