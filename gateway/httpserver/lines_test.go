package httpserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/must"
)

type sendLine = func(line string) error

func TestLinesFormat(t *testing.T) {
	w := httptest.NewRecorder()
	err := httpserver.Lines(t.Context(), w, func(_ context.Context, out sendLine) error {
		return errors.Join(out("one 😊"), out(""), out("three\r\n"), errEnd)
	})
	if !errors.Is(err, errEnd) || w.Body.String() != "one 😊\n\nthree\n" || !w.Flushed {
		t.Errorf("sent %q, flushed %t, ended with %v", w.Body, w.Flushed, err)
	}
	for header, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store",
		"X-Content-Type-Options": "nosniff"} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
}

// TestLinesThatCannotBegin checks that an error before the headers becomes the response, and that a later error is
// logged.
func TestLinesThatCannotBegin(t *testing.T) {
	closed := &httpserver.Fault{Word: "robot_offline", Sentence: "its channel is closed", HTTP: 409}
	for after, status := range map[time.Duration]int{0: 409, 199 * time.Millisecond: 409, 201 * time.Millisecond: 200} {
		synctest.Test(t, func(t *testing.T) {
			e, log := newEngine(t)
			e.GET("/record", func(g *gin.Context) {
				err := httpserver.Lines(g.Request.Context(), g.Writer, func(context.Context, sendLine) error { time.Sleep(after); return closed })
				_ = g.Error(err)
			})
			w := serve(e, request(http.MethodGet, "/record"))
			if w.Code != status {
				t.Errorf("after %v: %d %s", after, w.Code, w.Body)
			}
			if status == 409 {
				if code, _ := shown(t, w); code != "robot_offline" || w.Header().Get("X-Accel-Buffering") != "" {
					t.Errorf("after %v: %v %s", after, w.Header(), w.Body)
				}
			} else if w.Body.Len() > 0 || !strings.Contains(log.String(), "a response was broken off") {
				t.Errorf("after %v: sent %q, logged %s", after, w.Body, log)
			}
		})
	}
}

// TestLinesBeginWithoutALine checks that the headers are sent although there is no line yet, so that the client
// knows that the stream has begun.
func TestLinesBeginWithoutALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, ended := &tape{ResponseRecorder: httptest.NewRecorder()}, make(chan error)
		go func() {
			ended <- httpserver.Lines(ctx, w, func(ctx context.Context, _ sendLine) error { <-ctx.Done(); return ctx.Err() })
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		if !w.Flushed {
			t.Error("the headers are not out after a second")
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// TestLinesFromManyGoroutines checks that lines of concurrent goroutines are not mixed, and that no line is sent
// after the end.
func TestLinesFromManyGoroutines(t *testing.T) {
	w := httptest.NewRecorder()
	var late sendLine
	err := httpserver.Lines(t.Context(), w, func(_ context.Context, out sendLine) error {
		late = out
		var wg sync.WaitGroup
		for n := range 50 {
			wg.Go(func() {
				if err := out(strings.Repeat(fmt.Sprint(n%10), 100)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
	for _, line := range lines {
		if len(line) != 100 || strings.Trim(line, line[:1]) != "" {
			t.Errorf("a line is %q", line)
		}
	}
	if err := late("late"); err == nil || len(lines) != 50 || strings.Contains(w.Body.String(), "late") {
		t.Errorf("%d lines; after the end: %v", len(lines), err)
	}
}

// TestLinesDisconnectSlowClient checks that a client is disconnected if it takes more than ten seconds to read a line.
func TestLinesDisconnectSlowClient(t *testing.T) {
	letGo(t, "line\n", func(ctx context.Context, w http.ResponseWriter) error {
		return httpserver.Lines(ctx, w, func(_ context.Context, out sendLine) error {
			for {
				if err := out("line"); err != nil {
					return err
				}
			}
		})
	})
}

// TestLinesEnd checks over TCP that a complete stream ends like an ordinary response and a failed one does not, and
// that the connection is not used again, because the deadline of the last line would cut off the next response.
func TestLinesEnd(t *testing.T) {
	for name, end := range map[string]error{"whole": nil, "broken": errEnd} {
		e, _ := newEngine(t)
		e.GET("/record", func(g *gin.Context) {
			err := httpserver.Lines(g.Request.Context(), g.Writer, func(_ context.Context, out sendLine) error { return errors.Join(out("line"), end) })
			if err != nil {
				_ = g.Error(err)
			}
		})
		server := httptest.NewServer(e)
		answer, err := server.Client().Get(server.URL + "/record")
		must.Succeed(t, err)
		text, err := io.ReadAll(answer.Body)
		if string(text) != "line\n" || (err == nil) != (end == nil) || !answer.Close {
			t.Errorf("%s: read %q (%v), the connection closes: %t", name, text, err, answer.Close)
		}
		_ = answer.Body.Close()
		server.Close()
	}
}
