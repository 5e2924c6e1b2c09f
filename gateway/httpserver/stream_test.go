package httpserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/must"
)

// from returns a function next for Stream that returns the messages, one per call, and then the error end.
func from(end error, messages ...httpserver.Message) func(context.Context) (httpserver.Message, error) {
	return func(context.Context) (httpserver.Message, error) {
		if len(messages) == 0 {
			return httpserver.Message{}, end
		}
		m := messages[0]
		messages = messages[1:]
		return m, nil
	}
}

var errEnd = errors.New("end")

func TestStreamFormat(t *testing.T) {
	w := httptest.NewRecorder()
	err := httpserver.Stream(t.Context(), w, from(errEnd,
		httpserver.Message{ID: "run.1", Event: "heard", Data: map[string]string{"text": "two\nlines \u2028 <b>"}},
		httpserver.Message{ID: "run.2", Event: "none", Data: nil}))
	if !errors.Is(err, errEnd) {
		t.Errorf("it ended with %v", err)
	}
	want := ": welcome\n\n" +
		"id: run.1\nevent: heard\ndata: {\"text\":\"two\\nlines \\u2028 \\u003cb\\u003e\"}\n\n" +
		"id: run.2\nevent: none\ndata: null\n\n"
	if w.Body.String() != want {
		t.Errorf("sent\n%q\nwant\n%q", w.Body, want)
	}
	for header, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
	if !w.Flushed {
		t.Error("nothing was flushed")
	}
}

func TestStreamEndsWithWhatCannotBeEncoded(t *testing.T) {
	w := httptest.NewRecorder()
	err := httpserver.Stream(t.Context(), w, from(errEnd, httpserver.Message{ID: "1", Event: "e", Data: make(chan int)}))
	if err == nil || errors.Is(err, errEnd) || strings.Contains(w.Body.String(), "event:") {
		t.Errorf("ended with %v, sent %q", err, w.Body)
	}
}

// tape is an httptest.ResponseRecorder that can be read while a handler writes to it.
type tape struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (w *tape) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func (w *tape) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(p)
}

func (w *tape) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Body.String()
}

// TestStreamKeepsAlive checks that a stream sends a comment after every 15 seconds without a message.
func TestStreamKeepsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		messages, ended, w := make(chan httpserver.Message), make(chan error), &tape{ResponseRecorder: httptest.NewRecorder()}
		go func() {
			ended <- httpserver.Stream(ctx, w, func(ctx context.Context) (httpserver.Message, error) {
				select {
				case m := <-messages:
					return m, nil
				case <-ctx.Done():
					return httpserver.Message{}, ctx.Err()
				}
			})
		}()
		alive := func() int {
			synctest.Wait()
			return strings.Count(w.text(), ": still here\n\n")
		}
		time.Sleep(15*time.Second - time.Millisecond)
		if n := alive(); n != 0 {
			t.Errorf("%d signs of life within 15 s", n)
		}
		time.Sleep(time.Millisecond)
		if n := alive(); n != 1 {
			t.Errorf("%d signs of life after 15 s", n)
		}
		time.Sleep(14 * time.Second)
		messages <- httpserver.Message{ID: "1", Event: "e"}
		time.Sleep(14 * time.Second)
		if n := alive(); n != 1 {
			t.Errorf("%d signs of life, 14 s after a message", n)
		}
		time.Sleep(16 * time.Second)
		if n := alive(); n != 3 {
			t.Errorf("%d signs of life, 30 s after a message", n)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// TestStreamEndsWithItsClient checks over TCP that a stream ends when its client disconnects.
func TestStreamEndsWithItsClient(t *testing.T) {
	e, _ := newEngine(t)
	ended := make(chan error, 1)
	e.GET("/events", func(g *gin.Context) {
		first := true
		ended <- httpserver.Stream(g.Request.Context(), g.Writer, func(ctx context.Context) (httpserver.Message, error) {
			if first {
				first = false
				return httpserver.Message{ID: "1", Event: "e", Data: 1}, nil
			}
			<-ctx.Done()
			return httpserver.Message{}, ctx.Err()
		})
	})
	server := httptest.NewServer(e)
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/events")
	must.Succeed(t, err)
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && lines.Text() != "data: 1" { // it arrives while the stream is open
	}
	if lines.Text() != "data: 1" {
		t.Fatalf("the first event did not arrive: %v", lines.Err())
	}
	must.Succeed(t, answer.Body.Close())
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on without its client")
	}
}

// wire is an http.ResponseWriter that writes to a connection without buffers.
type wire struct {
	net.Conn
	header http.Header
}

func (w wire) Header() http.Header { return w.header }
func (w wire) WriteHeader(int)     {}
func (w wire) Flush()              {}

// letGo checks that a stream ends if its client stops reading for ten seconds. The client reads the first piece after
// nine seconds, and then nothing.
func letGo(t *testing.T, first string, send func(context.Context, http.ResponseWriter) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client, appliance := net.Pipe()
		defer client.Close()
		ended := make(chan error)
		go func() { ended <- send(t.Context(), wire{appliance, http.Header{}}) }()
		began := time.Now()
		time.Sleep(9 * time.Second)
		must.Value(io.ReadFull(client, make([]byte, len(first))))(t) // nine seconds are slow, but not too slow
		err := <-ended
		if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took != 19*time.Second {
			t.Errorf("it ended after %v with %v", took, err)
		}
	})
}

func TestStreamDisconnectsSlowClient(t *testing.T) {
	letGo(t, ": welcome\n\n", func(ctx context.Context, w http.ResponseWriter) error {
		return httpserver.Stream(ctx, w, from(errEnd, httpserver.Message{ID: "1"}, httpserver.Message{ID: "2"}))
	})
}

func TestStreamNeedsFlushing(t *testing.T) {
	unflushable := struct{ http.ResponseWriter }{httptest.NewRecorder()}
	if err := httpserver.Stream(t.Context(), unflushable, from(errEnd)); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("ended with %v", err)
	}
}
