package skin

import (
	"encoding/base64"

	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/must"
	"perch/socket"
	"perch/waittest"
)

// authorization is the header of a skin.
const authorization = "Authorization: Bearer " + secret

// raw connects a skin that is read frame by frame, and returns when it is counted.
func (h *harness) raw(t testing.TB) *avatartest.Raw {
	t.Helper()
	before := h.server.Connected()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must.Succeed(t, c.(*net.TCPConn).SetReadBuffer(64<<10)) // otherwise the system's buffer may hold all that a test sends
	r := avatartest.Upgrade(t, c, "/v1/vtuber/ws", authorization)
	waittest.For(t, "the skin is counted", func() bool { return h.server.Connected() > before })
	return r
}

// filler is a text that soon fills the network's buffers.
var filler = strings.Repeat("x", 30_000)

// someLate reports whether a skin cannot keep up.
func (h *harness) someLate() bool {
	return slices.ContainsFunc(h.server.connected(), func(s *skin) bool { return s.view.Late() })
}

// TestSkinThatDoesNotRead delays no other, and is disconnected with TryLater when too many
// frames wait.
func TestSkinThatDoesNotRead(t *testing.T) {
	h := newHarness(t)
	h.server.paces.send = time.Minute // this machine may be slow
	slow, quick := h.raw(t), h.connect(t)
	quick.until()
	for n := 0; n < 2000 && !h.someLate(); n++ {
		h.happens("", "", event.Notification{ID: fmt.Sprint(n), Text: filler, Urgency: "normal"})
		quick.until()
	}
	code, _, frames := slow.Closed()
	if code != socket.TryLater || len(frames) < 10 {
		t.Errorf("after %d frames it is closed with %d, want %d", len(frames), code, socket.TryLater)
	}
	if all := quick.until(); len(all) > 100 {
		t.Errorf("%d frames have waited for the other", len(all))
	}
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := event.NewBus()
		defer bus.Close()
		s := New(bare(bus, agent.NewBoard()))
		avatartest.Pipe(t, s.Run, s.open).CheckKeepAlive(s.paces.quiet, `{"type":"ping"}`, s.Connected)
	})
}

func TestKeys(t *testing.T) {
	coded := base64.RawURLEncoding.EncodeToString([]byte(secret))
	padded := base64.URLEncoding.EncodeToString([]byte(secret))
	byHeader, byQuery := newHarness(t), newHarness(t, func(o *Options) { o.QueryToken = true })
	for _, c := range []struct {
		name   string
		query  bool
		path   string
		header []string
		status int
		echo   string
	}{
		{"a header", false, "", []string{"Authorization", "Bearer " + secret}, 101, ""},
		{"a header, and the subprotocol", false, "", []string{"Authorization", "Bearer " + secret, "Sec-WebSocket-Protocol", "vtuber.v1"}, 101,
			"vtuber.v1"},
		{"a subprotocol", false, "", []string{"Sec-WebSocket-Protocol", "vtuber.v1, bearer." + coded}, 101, "vtuber.v1"},
		{"in the other order", false, "", []string{"Sec-WebSocket-Protocol", "bearer." + coded + ",vtuber.v1"}, 101, "vtuber.v1"},
		{"in two lines", false, "", []string{"Sec-WebSocket-Protocol", "vtuber.v1", "Sec-WebSocket-Protocol", "bearer." + padded}, 101, "vtuber.v1"},
		{"an allowed page", false, "", []string{"Sec-WebSocket-Protocol", "vtuber.v1, bearer." + coded, "Origin", page}, 101, "vtuber.v1"},
		{"a foreign page", false, "", []string{"Sec-WebSocket-Protocol", "vtuber.v1, bearer." + coded, "Origin", "https://evil.example"}, 403, ""},
		{"no key", false, "", nil, 401, ""},
		{"a wrong key", false, "", []string{"Authorization", "Bearer x"}, 401, ""},
		{"a wrong subprotocol", false, "", []string{"Sec-WebSocket-Protocol", "vtuber.v1, bearer.eA"}, 401, ""},
		{"no base64", false, "", []string{"Sec-WebSocket-Protocol", "vtuber.v1, bearer." + secret + "!"}, 401, ""},
		{"a wrong header before a right subprotocol", false, "", []string{"Authorization", "Bearer x", "Sec-WebSocket-Protocol",
			"vtuber.v1, bearer." + coded}, 401, ""},
		{"a query that is not asked for", false, "?token=" + secret, nil, 401, ""},
		{"a query that is", true, "?token=" + secret, nil, 101, ""},
		{"a wrong one", true, "?token=x", nil, 401, ""},
	} {
		h := byHeader
		if c.query {
			h = byQuery
		}
		r, err := http.NewRequest(http.MethodGet, h.url+"/v1/vtuber/ws"+c.path, nil)
		must.Succeed(t, err)
		for key, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			r.Header.Set(key, value)
		}
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Add(c.header[i], c.header[i+1])
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		must.Succeed(t, err)
		if got := answer.Header.Get("Sec-WebSocket-Protocol"); answer.StatusCode != c.status || got != c.echo {
			t.Errorf("%s: %d %q", c.name, answer.StatusCode, got)
		}
		_ = answer.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	}
}

func TestRunClosesConnections(t *testing.T) {
	h := newHarness(t)
	one, other := h.raw(t), h.raw(t)
	h.connect(t).until()
	go h.stop()
	for _, w := range []*avatartest.Raw{one, other} {
		if code, _, _ := w.Closed(); code != socket.GoingAway {
			t.Errorf("closed with %d", code)
		}
	}
}
