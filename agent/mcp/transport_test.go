package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/limit"
	"perch/must"
	"perch/remote"
)

// endless is a reader that repeats a text without end.
type endless struct {
	text string
	read int // bytes
}

func (e *endless) Read(p []byte) (int, error) {
	for n := range p {
		p[n] = e.text[(e.read+n)%len(e.text)]
	}
	e.read += len(p)
	return len(p), nil
}

// TestLinesOfAStreamArePaced tests that an endless stream of comments, empty lines or empty events
// is read at a limited rate, and that the end of the request ends a waiting read.
func TestLinesOfAStreamArePaced(t *testing.T) {
	for name, text := range map[string]string{"empty lines": "\n", "comments": ": x\n\n", "empty events": "event: x\ndata:\n\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &endless{text: text}
				ctx, cancel := context.WithCancel(t.Context())
				b := &body{Body: remote.Body{ReadCloser: io.NopCloser(from), Left: -1}, release: func() {}, pace: limit.PerSecond(maxLinesPerSecond), done: ctx.Done()}
				const most = 10_000_000 // bytes after which the reader stops if the rate is not limited
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					p := make([]byte, 4096)
					for ctx.Err() == nil && from.read < most {
						_, _ = b.Read(p)
					}
				}()
				time.Sleep(time.Minute)
				synctest.Wait() // the reader waits in Read
				lines := from.read / len(text) * strings.Count(text, "\n")
				if lines < 59*maxLinesPerSecond || lines > 67*maxLinesPerSecond {
					t.Errorf("%d lines were read in a minute, want %d", lines, 60*maxLinesPerSecond)
				}
				began := time.Now()
				cancel()
				<-ended
				if took := time.Since(began); took != 0 {
					t.Errorf("its end took %s", took)
				}
			})
		})
	}
}

// TestARequestOfALostConnectionFails tests a request that is sent after the connection's context
// has ended and before its own context ends. It must fail with the reason for the end.
func TestARequestOfALostConnectionFails(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	end(errCut)
	g := &guard{ctx: ended, base: &http.Transport{}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://127.0.0.1:1/", nil)
	must.Succeed(t, err)
	response, err := g.roundTrip(r)
	if response != nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, errCut) {
		t.Errorf("it fails with %v", err)
	}
}
