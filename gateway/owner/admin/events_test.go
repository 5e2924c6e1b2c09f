package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/event"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

// message is a server-sent event with decoded data.
type message struct {
	id, event string
	data      struct {
		Seq    uint64
		Kind   string
		Robot  string
		Name   string
		Data   map[string]any
		States []struct{ Robot, Name, Session, State string }
	}
}

// listener is a client of GET events.
type listener struct {
	t testing.TB
	*httpservertest.Reader
	server *httptest.Server
}

// listen opens a stream of events, which ends with the test.
func (h *appliance) listen(t testing.TB, lastID string) *listener {
	t.Helper()
	server := httptest.NewServer(h.engine)
	t.Cleanup(server.Close)
	return &listener{t, httpservertest.Listen(t, server.URL+"/api/v1/events", lastID), server}
}

// next waits for the next event.
func (l *listener) next() (m message) {
	l.t.Helper()
	next := l.Next()
	if m.id, m.event = next.ID, next.Event; m.event == "" {
		l.t.Fatalf("the stream ended: %v", l.Lines.Err())
	}
	if err := json.Unmarshal([]byte(next.Data), &m.data); err != nil {
		l.t.Fatalf("%v in %s", err, next.Data)
	}
	return m
}

// ends reports whether the stream ends without another event.
func (l *listener) ends() bool {
	for l.Lines.Scan() {
		if strings.HasPrefix(l.Lines.Text(), "data:") {
			return false
		}
	}
	return l.Lines.Err() == nil
}

func (h *appliance) id(seq int) string { return fmt.Sprintf("%s.%d", h.bus.RunID(), seq) }

func TestEventsBeginWithASnapshot(t *testing.T) {
	h := newAppliance(t)
	if m := h.listen(t, "").next(); m.event != "snapshot" || m.id != h.id(0) || m.data.States == nil || len(m.data.States) != 0 {
		t.Errorf("the first of an empty appliance is %+v, want a list without states", m)
	}
	h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
	h.publish(t, robotA, "s1", event.ListeningStarted{Mode: "auto"})
	l := h.listen(t, "")
	m := l.next()
	if m.event != "snapshot" || m.id != h.id(2) || len(m.data.States) != 1 {
		t.Fatalf("the first is %+v", m)
	}
	if s := m.data.States[0]; s.Robot != string(robotA) || s.Session != "s1" || s.State != "listening" {
		t.Errorf("state %+v", s)
	}
	h.wants(t, http.MethodGet, "/api/v1/sessions", "", 200, `"session":"s1"`)
	h.publish(t, robotA, "s1", event.Heard{Text: "hello"})
	if m = l.next(); m.event != "heard" || m.id != h.id(3) || m.data.Kind != "heard" || m.data.Seq != 3 ||
		m.data.Robot != string(robotA) || m.data.Data["text"] != "hello" {
		t.Errorf("the second is %+v", m)
	}
}

func TestEventsResume(t *testing.T) {
	h := newAppliance(t)
	for n := range 5 {
		h.publish(t, robotA, "s1", event.Heard{Text: fmt.Sprint(n + 1)})
	}
	l := h.listen(t, h.id(3))
	for _, want := range []int{4, 5} {
		if m := l.next(); m.event != "heard" || m.id != h.id(want) || m.data.Data["text"] != fmt.Sprint(want) {
			t.Errorf("got %+v, want event %d", m, want)
		}
	}
	h.publish(t, robotA, "s1", event.Heard{Text: "6"})
	if m := l.next(); m.id != h.id(6) {
		t.Errorf("got %+v, want event 6", m)
	}
	all := h.listen(t, h.id(6)) // nothing was missed
	h.publish(t, robotA, "s1", event.Misheard{})
	if m := all.next(); m.event != "misheard" || m.id != h.id(7) {
		t.Errorf("got %+v, want event 7", m)
	}
	if m := h.listen(t, h.id(0)).next(); m.id != h.id(1) {
		t.Errorf("after id 0: %+v", m)
	}
}

// TestEventsOfAnotherRun checks that a stream starts with a snapshot if the last ID is of another run or invalid.
func TestEventsOfAnotherRun(t *testing.T) {
	h := newAppliance(t)
	h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
	h.publish(t, robotA, "s1", event.Heard{Text: "hello"})
	for _, id := range []string{
		"0123456789ab.1", h.id(3), h.bus.RunID(), h.bus.RunID() + ".", h.bus.RunID() + ".-1", h.bus.RunID() + ".1x", h.bus.RunID() + ".1.1",
		h.bus.RunID() + ".99999999999999999999", "1", ".1", strings.Repeat("9", 4000),
	} {
		if m := h.listen(t, id).next(); m.event != "snapshot" || m.id != h.id(2) || len(m.data.States) != 1 {
			t.Errorf("after id %.40q: %+v, want a snapshot", id, m)
		}
	}
}

// TestEventsMissed checks that a client gets the event missed if the bus no longer has the events after its last ID.
func TestEventsMissed(t *testing.T) {
	h := newAppliance(t)
	for range 5000 {
		h.bus.Publish(robotA, "s1", event.Misheard{})
	}
	l := h.listen(t, h.id(1))
	m := l.next()
	if m.event != "missed" || m.id != h.id(1) || m.data.Data["n"] != float64(5000-4096-1) {
		t.Errorf("the first is %+v", m)
	}
	if m := l.next(); m.id != h.id(5000-4096+1) {
		t.Errorf("then comes %+v", m)
	}
}

// TestEventsWithStates checks that a client that requests states gets each state as soon as it changes, by an event
// or by expiry, and all states when it resumes the stream.
func TestEventsWithStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAppliance(t)
		h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
		listen := func(lastID string) *listener {
			client := httpservertest.Serve(t, h.engine)
			go fmt.Fprintf(client, "GET /api/v1/events?states=true HTTP/1.1\r\nHost: 127.0.0.1\r\nLast-Event-ID: %s\r\n\r\n", lastID)
			answer, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatal(answer, err)
			}
			return &listener{t: t, Reader: &httpservertest.Reader{Lines: bufio.NewScanner(answer.Body)}}
		}
		l := listen("")
		want := func(id int, kind, state string) {
			t.Helper()
			m := l.next()
			if m.event != kind || m.id != h.id(id) || state != "" && (len(m.data.States) != 1 || m.data.States[0].State != state) {
				t.Errorf("got %+v, want %s %d %s", m, kind, id, state)
			}
		}
		want(1, "snapshot", "idle")
		h.publish(t, robotA, "s1", event.Heard{Text: "hello"})
		want(2, "heard", "")
		want(2, "states", "thinking")
		h.publish(t, "", "", event.Changed{What: "timers"}) // changes no state
		want(3, "changed", "")
		h.publish(t, robotA, "s1", event.TurnEnded{End: event.EndDone})
		want(4, "turn_ended", "")
		want(4, "states", "attention")
		began := time.Now()
		want(4, "states", "idle")
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("attention ended after %v", took)
		}
		h.publish(t, robotA, "s1", event.ListeningStarted{Mode: "auto"})
		l = listen(h.id(4))
		want(4, "states", "listening")
		want(5, "listening_started", "")
		h.publish(t, robotA, "s1", event.Heard{Text: "bye"})
		want(6, "heard", "")
		want(6, "states", "thinking")
		// The client does not read, so that the stream loses events, among them the one that the robot speaks.
		for n := range 7000 {
			if n == 2000 {
				h.bus.Publish(robotA, "s1", event.SpeakingStarted{})
			}
			h.bus.Publish("", "", event.Changed{What: "timers"})
			synctest.Wait() // so that the board loses no event
		}
		var missed bool
		var shown string
		for m := l.next(); m.id != h.id(7007); m = l.next() {
			missed = missed || m.event == "missed"
			if m.event == "states" {
				shown = m.data.States[0].State
			}
		}
		if !missed || shown != "speaking" {
			t.Errorf("a client that has lost events (%v) sees that the robot is %s", missed, shown)
		}
	})
}

// TestEventsEndWithTheAppliance checks that a stream ends when the bus is closed, and that no error is logged.
func TestEventsEndWithTheAppliance(t *testing.T) {
	h := newAppliance(t)
	l := h.listen(t, "")
	l.next()
	h.bus.Close()
	if !l.ends() {
		t.Errorf("the stream goes on, or broke: %v", l.Lines.Err())
	}
	if h.log.Len() != 0 {
		t.Errorf("logged %s", h.log)
	}
}

// TestReadersOfEventsAreBounded checks that too many streams are refused with an error that says what to do, and that
// a closed stream makes room for another.
func TestReadersOfEventsAreBounded(t *testing.T) {
	h := newAppliance(t)
	var all []*listener
	for range 64 {
		all = append(all, h.listen(t, ""))
	}
	status := func() int {
		server := httptest.NewServer(h.engine)
		defer server.Close()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/events", nil)
		must.Succeed(t, err)
		answer, err := server.Client().Do(r)
		must.Succeed(t, err)
		leave()
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("one more reader: %d", got)
	}
	all[0].Leave()
	all[0].server.Close() // waits until the handler has returned
	if got := status(); got != http.StatusOK {
		t.Errorf("a slot that was freed is not given again: %d", got)
	}
}
