package skin

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/socket"
)

// wire is a skin as the network sees it: it reads what it likes, and sees the
// code of a close frame.
type wire struct {
	net.Conn
	r *bufio.Reader
}

// wire connects one, and returns when it is counted: the handshake is over a
// moment before.
func (h *harness) wire(t testing.TB) *wire {
	t.Helper()
	before := h.server.Connected()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })                              // twice where the test has closed it
	if err := c.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil { // or the system's own may grow to hold all that a test sends
		t.Fatal(err)
	}
	w := upgraded(t, c)
	for h.server.Connected() == before {
		time.Sleep(time.Millisecond)
	}
	return w
}

// upgraded has a connection speak WebSocket.
func upgraded(t testing.TB, c net.Conn) *wire {
	t.Helper()
	fmt.Fprintf(c, "GET /v1/vtuber/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nAuthorization: Bearer %s\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", secret)
	w := &wire{c, bufio.NewReader(c)}
	answer, err := http.ReadResponse(w.r, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v (%v)", answer, err)
	}
	return w
}

// frame reads one frame (RFC 6455, section 5.2).
func (w *wire) frame() (opcode byte, data []byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(w.r, head); err != nil {
		return 0, nil, err
	}
	size := int(head[1] & 0x7f)
	if size == 126 {
		long := make([]byte, 2)
		if _, err := io.ReadFull(w.r, long); err != nil {
			return 0, nil, err
		}
		size = int(binary.BigEndian.Uint16(long))
	}
	data = make([]byte, size)
	_, err = io.ReadFull(w.r, data)
	return head[0] & 0x0f, data, err
}

// closed reads up to the close frame, and returns its code and what came before.
func (w *wire) closed(t testing.TB) (code int, frames []string) {
	t.Helper()
	must.Succeed(t, w.SetReadDeadline(time.Now().Add(20*time.Second)))
	for {
		opcode, data, err := w.frame()
		switch {
		case err != nil:
			t.Fatalf("after %d frames: %v", len(frames), err)
		case opcode == 8:
			return int(binary.BigEndian.Uint16(data)), frames
		case opcode == 1:
			frames = append(frames, string(data))
		}
	}
}

// filler is a text that soon fills the buffers of the network itself.
var filler = strings.Repeat("x", 30_000)

// someLate reports whether there is a skin that cannot keep up.
func (h *harness) someLate() bool {
	return slices.ContainsFunc(h.server.skins.list(), func(s *skin) bool { return s.view.Late() })
}

// TestASkinThatDoesNotRead delays no other, and is disconnected once too much waits
// that may not be lost. The close frame holds why.
func TestASkinThatDoesNotRead(t *testing.T) {
	h := newHarness(t)
	h.server.paces.send = time.Minute // this machine may be slow as well
	slow, quick := h.wire(t), h.connect(t)
	quick.until()
	for n := 0; n < 2000 && !h.someLate(); n++ {
		h.happens("", "", event.Notification{ID: fmt.Sprint(n), Text: filler, Urgency: "normal"})
		quick.until()
	}
	code, frames := slow.closed(t)
	if code != socket.TryLater || len(frames) < 10 {
		t.Errorf("after %d frames it is closed with %d, want %d", len(frames), code, socket.TryLater)
	}
	if all := quick.until(); len(all) > 100 {
		t.Errorf("%d frames have waited for the other", len(all))
	}
}

// TestASkinThatReadsNoMoods, though it has asked for them and for gestures: what waits
// for it stays small, it delays nobody, and what it reads at last is the latest.
func TestASkinThatReadsNoMoods(t *testing.T) {
	h := newHarness(t)
	h.server.paces.send = time.Minute // this machine may be slow as well
	slow, quick := h.wire(t), h.connect(t)
	const wish = `{"type":"subscribe","events":["mood","gesture","notification"]}`
	if _, err := slow.Write(masked(wish)); err != nil {
		t.Fatal(err)
	}
	const rounds = 300 // more than the network holds
	for n := range rounds {
		for i := range 20 { // of a session of its own each, as a hostile program names them
			h.happens("", fmt.Sprint(n, "-", i), event.Gesture{Name: strings.Repeat("x", 200), By: event.ByModel},
				event.Mood{Dominant: "celebration", Face: "happy", Feelings: event.Feelings{Celebration: float64(n) / rounds}})
		}
		quick.until()
	}
	must.Succeed(t, slow.SetReadDeadline(time.Now().Add(20*time.Second)))
	frames := 0
	last := fmt.Sprintf(`"session_id":"%d-19"`, rounds-1)
	for data := ""; !strings.Contains(data, `"type":"mood"`) || !strings.Contains(data, last); frames++ {
		_, frame, err := slow.frame()
		if err != nil {
			t.Fatalf("after %d frames: %v", frames, err)
		}
		data = string(frame)
	}
	if frames >= rounds*40 {
		t.Errorf("%d frames were kept for it", frames)
	}
}

// masked is a text of less than 126 bytes as a client sends it, with a mask of zeros.
func masked(text string) []byte {
	return append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

// TestASkinThatReadsLittle is sent the latest state and face of each session,
// however many there were meanwhile, and every notification that is not of low
// urgency.
func TestASkinThatReadsLittle(t *testing.T) {
	h := newHarness(t)
	h.server.paces.send = time.Minute // this machine may be slow as well
	slow, quick := h.wire(t), h.connect(t)
	h.happens(robotA, "s1", event.RobotOnline{})
	quick.until()
	const rounds = 400 // more than the network holds
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
		opcode, data, err := slow.frame()
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

// TestHalfOpenSockets: a skin whose network went away answers no ping. One that answers
// stays for as long as it does, though it says nothing.
func TestHalfOpenSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := event.NewBus()
		defer bus.Close()
		s := New(bare(bus, agent.NewBoard()))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		defer func() { cancel(); <-ended }()
		w := upgraded(t, httpservertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := s.open(w, r); err != nil {
				t.Error(err)
			}
		})))
		var there atomic.Bool
		there.Store(true)
		over := make(chan struct{})
		go func() {
			defer close(over)
			for {
				opcode, _, err := w.frame()
				if err != nil {
					return
				}
				if opcode == 9 && there.Load() {
					_, _ = w.Write([]byte{0x8a, 0x80, 0, 0, 0, 0})
				}
			}
		}()
		quiet := s.paces.quiet
		time.Sleep(10 * quiet)
		_, _ = w.Write(masked(`{"type":"ping"}`)) // the last sign of life
		synctest.Wait()
		there.Store(false)
		time.Sleep(quiet - 1)
		if synctest.Wait(); s.Connected() != 1 {
			t.Error("it is gone too early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); s.Connected() != 0 {
			t.Error("it is still there")
		}
		<-over
	})
}

// TestTwoHundredConnectionsFromOneAddress: half of them are let in, and a skin that
// leaves makes room.
func TestTwoHundredConnectionsFromOneAddress(t *testing.T) {
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
	if len(in) != mostOfOne {
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

// TestSkinsAreClosedAtTheEnd of the appliance, and no more are let in.
func TestSkinsAreClosedAtTheEnd(t *testing.T) {
	h := newHarness(t)
	one, other := h.wire(t), h.wire(t)
	h.connect(t).until()
	go h.stop()
	for _, w := range []*wire{one, other} {
		if code, _ := w.closed(t); code != socket.GoingAway {
			t.Errorf("closed with %d", code)
		}
	}
}
