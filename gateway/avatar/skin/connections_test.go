package skin

import (
	"encoding/base64"
	"errors"
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

// authorization is the header line with the key of a skin.
const authorization = "Authorization: Bearer " + secret

// raw connects a skin whose WebSocket frames the test reads, and waits until the server counts the skin.
func (h *harness) raw(t testing.TB) *avatartest.Raw {
	t.Helper()
	before := h.server.Connected()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must.Succeed(t, c.(*net.TCPConn).SetReadBuffer(64<<10)) // otherwise the system's buffer may hold everything that a test sends
	r := avatartest.Upgrade(t, c, "/v1/vtuber/ws", authorization)
	waittest.For(t, "the skin is counted", func() bool { return h.server.Connected() > before })
	return r
}

// filler is a long text. A few hundred of them fill the network's buffers.
var filler = strings.Repeat("x", 30_000)

// someLate reports whether a skin cannot keep up.
func (h *harness) someLate() bool {
	return slices.ContainsFunc(h.server.connected(), func(s *skin) bool { return s.view.Late() })
}

// TestSkinThatDoesNotRead tests that a skin that does not read delays no other skin, and is disconnected with
// TryLater when too many frames wait.
func TestSkinThatDoesNotRead(t *testing.T) {
	h := newHarness(t)
	h.server.timings.send = time.Minute // this machine may be slow
	slow, quick := h.raw(t), h.connect(t)
	quick.until()
	for n := 0; n < 2000 && !h.someLate(); n++ {
		h.happens("", "", event.Notification{ID: fmt.Sprint(n), Text: filler, Urgency: "normal"})
		quick.until()
	}
	code, _, frames := slow.ReadClose()
	if code != socket.TryLater || len(frames) < 10 {
		t.Errorf("after %d frames it is closed with %d, want %d", len(frames), code, socket.TryLater)
	}
	if all := quick.until(); len(all) > 100 {
		t.Errorf("%d frames have waited for the other", len(all))
	}
}

// TestUnreadMoodsAreBounded tests that the number of unread moods and gestures is bounded. A slow skin delays no
// other skin, and reads the latest ones.
func TestUnreadMoodsAreBounded(t *testing.T) {
	h := newHarness(t)
	h.server.timings.send = time.Minute // this machine may be slow
	slow, quick := h.raw(t), h.connect(t)
	slow.SendShort(`{"type":"subscribe","events":["mood","gesture","notification"]}`)
	const rounds = 300 // more than the network's buffers hold
	for n := range rounds {
		for i := range 20 { // each in another session, because a hostile program may name any number of sessions
			h.happens("", fmt.Sprint(n, "-", i), event.Gesture{Name: strings.Repeat("x", 200), By: event.ByModel},
				event.Mood{Dominant: "celebration", Face: "happy", Feelings: event.Feelings{Celebration: float64(n) / rounds}})
		}
		quick.until()
	}
	must.Succeed(t, slow.SetReadDeadline(time.Now().Add(20*time.Second)))
	frames := 0
	last := fmt.Sprintf(`"session_id":"%d-19"`, rounds-1)
	for data := ""; !strings.Contains(data, `"type":"mood"`) || !strings.Contains(data, last); frames++ {
		_, frame, err := slow.ReadFrame()
		if err != nil {
			t.Fatalf("after %d frames: %v", frames, err)
		}
		data = string(frame)
	}
	if frames >= rounds*40 {
		t.Errorf("%d frames were kept for it", frames)
	}
}

// TestSlowSkinGetsLatestFrames tests that a slow skin gets the latest state and face of each session, and every
// notification that is not of low urgency.
func TestSlowSkinGetsLatestFrames(t *testing.T) {
	h := newHarness(t)
	h.server.timings.send = time.Minute // this machine may be slow
	slow, quick := h.raw(t), h.connect(t)
	h.happens(robotA, "s1", event.RobotOnline{})
	quick.until()
	const rounds = 400 // more than the network's buffers hold
	for n := range rounds {
		h.happens("", "", event.Notification{ID: "news", Text: fmt.Sprint(n, filler), Urgency: "normal"})
		h.happens(robotA, "s1", event.ThinkingStarted{}, event.Emotion{Name: []string{"happy", "sad"}[n%2]}, event.ListeningStarted{})
		quick.until()
	}
	h.happens("", "", event.Notification{ID: "kept", Text: "kept", Urgency: "normal"})
	h.happens(robotA, "s1", event.SpeakingStarted{})
	quick.until()
	must.Succeed(t, slow.SetReadDeadline(time.Now().Add(20*time.Second)))
	var frames []string
	for kept := false; !kept || !strings.Contains(frames[len(frames)-1], `"state":"thinking"`); {
		opcode, data, err := slow.ReadFrame()
		if err != nil {
			t.Fatalf("after %d frames: %v", len(frames), err)
		}
		if opcode == 1 {
			frames = append(frames, string(data))
			kept = kept || strings.Contains(string(data), `"id":"kept"`)
		}
	}
	if len(frames) > 3*rounds {
		t.Errorf("%d frames were sent of %d: nothing gave way", len(frames), 4*rounds)
	}
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := event.NewBus()
		defer bus.Close()
		s := New(bare(bus, agent.NewBoard()))
		avatartest.Pipe(t, s.Run, s.open).CheckKeepAlive(s.timings.quiet, `{"type":"ping"}`, s.Connected)
	})
}

// TestConnectionsFromOneAddress tests that the number of connections from one address is limited, and that a
// disconnected skin no longer counts.
func TestConnectionsFromOneAddress(t *testing.T) {
	h := newHarness(t)
	var in []*socket.Conn
	for range 200 {
		conn, err := h.dial("Authorization", "Bearer "+secret)
		var refusal *socket.Refusal
		switch {
		case err == nil:
			in = append(in, conn)
			defer conn.Drop()
		case !errors.As(err, &refusal) || refusal.Status != http.StatusServiceUnavailable || !strings.Contains(refusal.Text, "too_many_skins"):
			t.Fatal(err)
		}
	}
	if len(in) != maxPerAddress {
		t.Errorf("%d were let in", len(in))
	}
	in[0].Drop()
	for {
		conn, err := h.dial("Authorization", "Bearer "+secret)
		if err == nil {
			conn.Drop()
			break
		}
	}
}

func TestKeys(t *testing.T) {
	coded := base64.RawURLEncoding.EncodeToString([]byte(secret))
	padded := base64.URLEncoding.EncodeToString([]byte(secret))
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
		h := newHarness(t, func(o *Options) { o.QueryToken = c.query })
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
		if code, _, _ := w.ReadClose(); code != socket.GoingAway {
			t.Errorf("closed with %d", code)
		}
	}
}
