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

// endless is a stream that repeats a text for ever.
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

// TestLinesOfAStreamArePaced: a server that streams comments, empty lines or empty events
// for ever is read at a pace, and the end of the request is not waited for.
func TestLinesOfAStreamArePaced(t *testing.T) {
	for name, text := range map[string]string{"empty lines": "\n", "comments": ": x\n\n", "empty events": "event: x\ndata:\n\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &endless{text: text}
				ctx, cancel := context.WithCancel(t.Context())
				b := &body{Body: remote.Body{ReadCloser: io.NopCloser(from), Left: -1}, release: func() {}, pace: limit.PerSecond(maxLinesPerSecond), done: ctx.Done()}
				const most = 10_000_000 // bytes, if nothing stops it
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					p := make([]byte, 4096)
					for ctx.Err() == nil && from.read < most {
						_, _ = b.Read(p)
					}
				}()
				time.Sleep(time.Minute)
				synctest.Wait() // the reader rests
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

// TestARequestOfALostConnectionFails also in the moment in which the connection's
// context has ended and the request's has not yet: it has no answer, so it has an error.
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
