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

// Reader reads server-sent events. Listen returns a Reader.
type Reader struct {
	Lines *bufio.Scanner     // remaining lines of the stream, for tests of its format
	Leave context.CancelFunc // disconnects
}

// Listen opens a stream of server-sent events and reads its first comment. The stream is closed after 10 s or
// when the test ends. If lastID is not empty, the stream begins after the event with that ID.
func Listen(t testing.TB, url, lastID string) *Reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must.Succeed(t, err)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Do(r)
	must.Succeed(t, err)
	t.Cleanup(func() { cancel(); _ = response.Body.Close(); client.CloseIdleConnections() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("%s: %s, %s", url, response.Status, kind)
	}
	l := &Reader{bufio.NewScanner(response.Body), cancel}
	if !l.Lines.Scan() || l.Lines.Text() != ": welcome" {
		t.Fatalf("the stream begins with %q", l.Lines.Text())
	}
	l.Lines.Scan()
	return l
}

// Next waits for the next event. It returns the zero Message at the end of the stream.
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
