package httpservertest

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// Message is a server-sent event.
type Message struct{ ID, Event, Data string }

// Reader is a client of server-sent events.
type Reader struct {
	Lines *bufio.Scanner
	Leave context.CancelFunc
}

// Listen reads the events of an address until the test ends, from the one after
// lastID if that is not empty.
func Listen(t testing.TB, url, lastID string) *Reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must.Succeed(t, err)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	client := &http.Client{Transport: &http.Transport{}}
	answer, err := client.Do(r)
	must.Succeed(t, err)
	t.Cleanup(func() { cancel(); _ = answer.Body.Close(); client.CloseIdleConnections() })
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("%s: %s, %s", url, answer.Status, kind)
	}
	l := &Reader{bufio.NewScanner(answer.Body), cancel}
	if !l.Lines.Scan() || l.Lines.Text() != ": welcome" {
		t.Fatalf("the stream begins with %q", l.Lines.Text())
	}
	l.Lines.Scan()
	return l
}

// Next waits for the next event. The zero Message is the end of the stream.
func (l *Reader) Next() (m Message) {
	for l.Lines.Scan() {
		name, value, _ := strings.Cut(l.Lines.Text(), ": ")
		switch name {
		case "id":
			m.ID = value
		case "event":
			m.Event = value
		case "data":
			m.Data = value
		case "":
			if m.Event != "" {
				return m
			}
		}
	}
	return Message{}
}
