package hass

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"perch/must"
	"perch/remote"
)

func TestInvalidOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no url": {Token: canary}, "no scheme": {URL: "homeassistant.local:8123", Token: canary},
		"a socket's": {URL: "ws://x:8123", Token: canary}, "a password": {URL: "http://me:pw@x:8123", Token: canary},
		"a query":  {URL: "http://x/?t=" + canary, Token: canary},
		"no token": {URL: "http://x:8123"}, "two lines": {URL: "http://x:8123", Token: canary + "\n" + canary},
		"a huge token": {URL: "http://x:8123", Token: strings.Repeat("x", 5000)},
		"a deadline":   {URL: "http://x:8123", Token: canary, ConnectWithin: -1},
	} {
		_, err := New(o)
		if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := client(t, "https://ha.example/sub/", Options{})
	if got := c.socketURL(); got != "wss://ha.example/sub/api/websocket" {
		t.Error(got)
	}
}

func TestCommands(t *testing.T) {
	c := serve(t, func(p *peer) {
		p.greet()
		p.split(`{"id":99,"type":"event","event":{}}`) // no command has this ID
		p.frame(websocket.PingMessage, "ping")
		first := p.command()
		p.frame(websocket.BinaryMessage, "sound") // must be ignored
		p.split(fmt.Sprintf(`{"id":%v,"type":"result","success":true,"result":{"name":"Home","tts_engine":null,"prefer_local_intents":false}}`,
			first["id"]))
		second := p.command()
		p.text(`{"id":%v,"type":"pong"}`, second["id"])
		third := p.command()
		p.text(`{"id":%v,"type":"result","success":false,"error":{"code":"not_found","message":"Unable to find pipeline_id %s"}}`, third["id"],
			canary)
		if first["id"] != 1.0 || second["id"] != 2.0 || third["id"] != 3.0 || first["type"] != "assist_pipeline/pipeline/get" ||
			third["pipeline_id"] != "x" {
			p.t.Errorf("%v, %v, %v", first, second, third)
		}
		if _, there := first["pipeline_id"]; there {
			p.t.Errorf("%v", first)
		}
		p.hangUp()
	})
	conn := dial(t, c)
	if p, err := conn.Pipeline(t.Context(), soon, ""); err != nil || p.Name != "Home" || p.TTS != "" {
		t.Errorf("%+v, %v", p, err)
	}
	must.Succeed(t, conn.Ping(t.Context(), soon))
	_, err := conn.Pipeline(t.Context(), soon, "x")
	sentence(t, err, "Home Assistant at http://127.0.0.1", "has no such Assist pipeline")
}

func TestDialThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		script func(*peer)
		code   string
		words  string
	}{
		"wrong token": {func(p *peer) {
			p.text(`{"type":"auth_required"}`)
			p.command()
			p.text(`{"type":"auth_invalid","message":"Invalid access token or password %s"}`, canary)
		}, CodeToken, "refuses the token; make a new long-lived access token"},
		"garbage":          {func(p *peer) { p.text("hello") }, remote.CodeOdd, "does not greet as Home Assistant"},
		"an array":         {func(p *peer) { p.text("[1]") }, remote.CodeOdd, "does not greet as Home Assistant"},
		"sound":            {func(p *peer) { p.frame(websocket.BinaryMessage, "{}") }, remote.CodeOdd, "does not greet as Home Assistant"},
		"another protocol": {func(p *peer) { p.text(`{"type":"hello %s"}`, canary) }, remote.CodeOdd, "greets with"},
		"in at once":       {func(p *peer) { p.text(`{"type":"auth_ok"}`) }, remote.CodeOdd, "greets with"},
		"cut":              {func(p *peer) { p.text(`{"type":"auth_required"}`); p.command() }, remote.CodeLost, "closed the connection"},
		"cut in a frame":   {func(p *peer) { _, _ = p.conn.Write([]byte("\x81\x30{")) }, remote.CodeLost, "closed the connection"},
		"reserved bits":    {func(p *peer) { _, _ = p.conn.Write([]byte("\xf1\x01{")); p.hangUp() }, remote.CodeOdd, "broke the WebSocket protocol"},
		"a huge message": {func(p *peer) { _, _ = p.conn.Write([]byte("\x81\x7f\x00\x00\x00\x00\x7f\x00\x00\x00{")); p.hangUp() }, remote.CodeOdd,
			"more than 2097152 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := serve(t, test.script).Dial(t.Context())
			if conn != nil {
				t.Fatal("connected")
			}
			sentence(t, err, test.words)
			var f *Fault
			if !errors.As(err, &f) || f.Code != test.code {
				t.Errorf("%#v", err)
			}
		})
	}
}

func TestDialOfWhatIsNoSocket(t *testing.T) {
	for status, words := range map[int]string{
		401: "refuses the token", 403: "ip_bans.yaml", 404: "has no /api/websocket (HTTP 404", 200: "does not open a WebSocket",
		302: "sends elsewhere (HTTP 302 to another path)", 400: "refuses the request", 500: "see its log", 502: "may still be starting",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"message":"no `+canary+`"}`)
		}))
		_, err := client(t, server.URL, Options{}).Dial(t.Context())
		sentence(t, err, words)
		var f *Fault
		if !errors.As(err, &f) || f.Status != status {
			t.Errorf("%d: %#v", status, err)
		}
		server.Close()
	}
	_, err := client(t, "http://"+silent(t, true), Options{}).Dial(t.Context())
	sentence(t, err, "nothing listens at")
}

// silent returns an address that accepts connections but never sends anything. If gone is set,
// nothing listens at the address.
func silent(t *testing.T, gone bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	if gone {
		_ = l.Close()
	} else {
		t.Cleanup(func() { _ = l.Close() })
	}
	return l.Addr().String()
}

func TestDialHasADeadline(t *testing.T) {
	// Neither server ever responds: without the deadline, Dial would not return.
	_, err := client(t, "http://"+silent(t, false), Options{ConnectWithin: 50 * time.Millisecond}).Dial(t.Context())
	sentence(t, err, "cannot be connected to within 50ms")
	c := serve(t, func(p *peer) { p.text(`{"type":"auth_required"}`); p.hangUp() })
	c.o.ConnectWithin, c.ConnectWithin = 50*time.Millisecond, 50*time.Millisecond
	_, err = c.Dial(t.Context())
	sentence(t, err, "cannot be connected to within 50ms")
}

func TestDialEndsWithItsContextAndItsClient(t *testing.T) {
	asked := make(chan struct{}, 2)
	script := func(p *peer) { p.text(`{"type":"auth_required"}`); p.command(); asked <- struct{}{}; p.hangUp() }
	c := serve(t, script)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := c.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	go func() { <-asked; c.Close() }()
	_, err := c.Dial(t.Context())
	sentence(t, err, "is closed")
}

// TestACallEndsAtOnce checks that a cancelled call, a call without a response in time, and a call
// whose connection is closed return at once. The first two do not break the connection.
func TestACallEndsAtOnce(t *testing.T) {
	asked := make(chan struct{}, 8)
	c := serve(t, func(p *peer) {
		p.greet()
		for m := p.command(); m != nil; m = p.command() {
			switch m["type"] {
			case "ping":
				p.text(`{"id":%v,"type":"pong"}`, m["id"])
			default:
				asked <- struct{}{}
			}
		}
	})
	conn := dial(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if err := conn.Call(ctx, soon, "slow", nil, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	sentence(t, conn.Call(t.Context(), 20*time.Millisecond, "slow", nil, nil), "did not answer within 20ms")
	if err := conn.Ping(t.Context(), soon); err != nil {
		t.Errorf("the connection is broken: %v", err)
	}
	done := make(chan error)
	<-asked
	go func() { done <- conn.Call(t.Context(), soon, "slow", nil, nil) }()
	<-asked
	conn.Close()
	sentence(t, <-done, "is closed")
	sentence(t, conn.Ping(t.Context(), soon), "is closed")
}

func TestAConnectionThatBreaks(t *testing.T) {
	for name, test := range map[string]struct {
		script func(*peer)
		words  string
	}{
		"cut":        {func(*peer) {}, "closed the connection"},
		"cut midway": {func(p *peer) { _, _ = p.conn.Write([]byte("\x81\x05{")) }, "closed the connection"},
		"garbage":    {func(p *peer) { p.text("]"); p.hangUp() }, "not part of its API"},
		"odd ids":    {func(p *peer) { p.text(`{"id":"1","type":"result"}`); p.hangUp() }, "not part of its API"},
		"odd type":   {func(p *peer) { p.text(`{"id":1,"type":"event","event":{}}`); p.hangUp() }, `answers x with "event"`},
		"odd result": {func(p *peer) { p.text(`{"id":1,"type":"result","success":true,"result":7}`); p.hangUp() }, "its version may be too old"},
		"unknown": {func(p *peer) {
			p.text(`{"id":1,"type":"result","success":false,"error":{"code":"unknown_command"}}`)
			p.hangUp()
		}, "has no Assist"},
		"not allowed": {func(p *peer) {
			p.text(`{"id":1,"type":"result","success":false,"error":{"code":"unauthorized"}}`)
			p.hangUp()
		}, "another user"},
		"odd failure": {func(p *peer) {
			p.text(`{"id":1,"type":"result","success":false,"error":{"message":"\u202e%s\n"}}`, canary)
			p.hangUp()
		}, "failed; see the log"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(p *peer) { p.greet(); p.command(); test.script(p) })
			conn := dial(t, c)
			sentence(t, conn.Call(t.Context(), soon, "x", nil, &struct{}{}), test.words)
		})
	}
}

// TestAFloodIsBounded checks that too many unread events make their run fail, but not the connection.
func TestAFloodIsBounded(t *testing.T) {
	flooded := make(chan struct{})
	c := serve(t, func(p *peer) {
		p.greet()
		p.command()
		for range 40 {
			p.text(`{"id":1,"type":"event","event":{"type":"%s"}}`, strings.Repeat("x", 60000))
		}
		close(flooded)
		for m := p.command(); m != nil; m = p.command() {
			p.text(`{"id":%v,"type":"pong"}`, m["id"])
		}
	})
	conn := dial(t, c)
	run, err := conn.Run(t.Context(), Start{From: StageIntent, To: StageIntent})
	must.Succeed(t, err)
	defer run.Close()
	<-flooded
	must.Succeed(t, conn.Ping(t.Context(), soon))
	_, err = run.Next(t.Context(), soon)
	sentence(t, err, "more text than can be spoken")
}

// TestMessagesArePaced checks that messages that respond to no command also count for the limit
// maxPerSecond.
func TestMessagesArePaced(t *testing.T) {
	c := serve(t, func(p *peer) {
		p.greet()
		for range 2 * maxPerSecond {
			p.text(`{}`)
		}
		for m := p.command(); m != nil; m = p.command() {
			p.text(`{"id":%v,"type":"pong"}`, m["id"])
		}
	})
	began := time.Now()
	must.Succeed(t, dial(t, c).Ping(t.Context(), time.Minute))
	if took := time.Since(began); took < 800*time.Millisecond {
		t.Errorf("%d messages were read in %s", 2*maxPerSecond, took)
	}
}

// TestPeerThatReadsNothing checks that Sound and Close return in time if the other side reads
// nothing.
func TestPeerThatReadsNothing(t *testing.T) {
	stop := make(chan struct{})
	c := serve(t, func(p *peer) { p.greet(); <-stop })
	defer close(stop)
	c.o.ConnectWithin = time.Hour // this is also the time limit of a write
	conn := dial(t, c)
	run, err := conn.Run(t.Context(), Start{From: StageSpeech, To: StageSpeech, Rate: 16000})
	must.Succeed(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for err == nil {
		err = run.Sound(ctx, 1, make([]byte, 1<<20))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	run.Close()
	conn.Close() // must not wait for the write that is blocked
}

func TestConcurrentCalls(t *testing.T) {
	c := serve(t, func(p *peer) {
		p.greet()
		last := 0.0
		for m := p.command(); m != nil; m = p.command() {
			if id := m["id"].(float64); id <= last {
				p.t.Errorf("id %v after %v: Home Assistant refuses that", id, last)
			} else {
				last = id
			}
			p.text(`{"id":%v,"type":"result","success":true,"result":{"name":"%s"}}`, m["id"], m["pipeline_id"])
		}
	})
	conn := dial(t, c)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			id := fmt.Sprint(i + 1)
			if p, err := conn.Pipeline(t.Context(), soon, id); err != nil || p.Name != id {
				t.Errorf("%s: %+v, %v", id, p, err)
			}
		})
	}
	wg.Wait()
}
