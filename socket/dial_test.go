package socket_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perch/must"
	"perch/socket"
)

func TestDialSendsItsHeaders(t *testing.T) {
	asked := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header
		c, err := socket.Accept(w, r, socket.Options{MaxMessage: 100})
		if err != nil {
			t.Error(err)
			return
		}
		c.Close(socket.Normal, "")
	}))
	defer server.Close()
	header := http.Header{"Authorization": {"Bearer x"}, "Device-Id": {"a0:b1:c2:d3:e4:f5"}, "Origin": {"https://anywhere.example"}}
	c, err := socket.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), socket.Options{MaxMessage: 100, Header: header})
	must.Succeed(t, err)
	defer c.Drop()
	got := <-asked
	for name := range header {
		if got.Get(name) != header.Get(name) {
			t.Errorf("%s arrived as %q", name, got.Get(name))
		}
	}
	if got.Get("Sec-Websocket-Extensions") != "" {
		t.Errorf("extensions are offered: %s", got.Get("Sec-Websocket-Extensions"))
	}
}

func TestDialRefused(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusOK, http.StatusFound, http.StatusInternalServerError} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"code":"wrong_token"}}` + strings.Repeat(" ", 100_000)))
		}))
		c, err := socket.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), socket.Options{})
		var refusal *socket.Refusal
		if c != nil || !errors.As(err, &refusal) {
			t.Errorf("%d: %v", status, err)
		} else if text := err.Error(); !strings.Contains(text, http.StatusText(status)) || !strings.Contains(text, "wrong_token") ||
			len(text) > 1000 {
			t.Errorf("%d: the error says %.200s", status, text)
		}
		server.Close()
	}
}

func TestDialNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	address := l.Addr().String()
	must.Succeed(t, l.Close())
	if _, err := socket.Dial(t.Context(), "ws://"+address, socket.Options{}); err == nil || strings.Contains(err.Error(), "refused: ") ||
		!strings.Contains(err.Error(), address) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := socket.Dial(t.Context(), "http://"+address, socket.Options{}); err == nil {
		t.Error("http: is taken for a WebSocket")
	}
}

// TestDialReadsNoEndlessAnswer checks that Dial fails at once if the response's headers are too long, and does not wait
// for its deadline.
func TestDialReadsNoEndlessAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer l.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		header := []byte("X: " + strings.Repeat("x", 1000) + "\r\n")
		_, err = c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\n"))
		for range 32 << 10 { // 32 MB
			if err != nil {
				return
			}
			_, err = c.Write(header)
		}
		t.Error("all of it was read")
	}()
	if _, err := socket.Dial(t.Context(), "ws://"+l.Addr().String(), socket.Options{}); err == nil || !strings.Contains(err.Error(), "is too long") {
		t.Errorf("dialled: %v", err)
	}
	<-served
}

// TestDialEndsWithItsContext checks that Dial returns when its context is cancelled, if a server accepts the connection
// but never responds.
func TestDialEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	silent := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		} else if _, err = c.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		silent <- c
		cancel()
	}()
	if _, err := socket.Dial(ctx, "ws://"+l.Addr().String(), socket.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("dialled: %v", err)
	}
	_ = (<-silent).Close()
}

func TestAcceptAnswersWhatIsNoUpgrade(t *testing.T) {
	upgrade := func(change func(http.Header)) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
		change(r.Header)
		return r
	}
	for name, r := range map[string]*http.Request{
		"no upgrade":      upgrade(func(h http.Header) { h.Del("Upgrade") }),
		"no connection":   upgrade(func(h http.Header) { h.Del("Connection") }),
		"another version": upgrade(func(h http.Header) { h.Set("Sec-Websocket-Version", "12") }),
		"no key":          upgrade(func(h http.Header) { h.Del("Sec-Websocket-Key") }),
	} {
		w := httptest.NewRecorder()
		if c, err := socket.Accept(w, r, socket.Options{}); err == nil || c != nil || w.Code < 400 || w.Code > 499 {
			t.Errorf("%s: %v, answered %d", name, err, w.Code)
		}
	}
}
