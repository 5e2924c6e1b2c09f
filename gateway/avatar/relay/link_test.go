package relay

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
)

// fakeProgram is a program in memory, for tests in a synctest bubble.
type fakeProgram struct {
	connect func() (link, error)

	mu    sync.Mutex
	opens []time.Time // times of all attempts to connect
}

func (s *fakeProgram) open(context.Context, func(error)) (link, error) {
	s.mu.Lock()
	s.opens = append(s.opens, time.Now())
	s.mu.Unlock()
	return s.connect()
}

// opened returns the number of attempts to connect, and the time of the last one.
func (s *fakeProgram) opened() (n int, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = len(s.opens); n > 0 {
		last = s.opens[n-1]
	}
	return n, last
}

// fakeLink is a link in memory.
type fakeLink struct {
	nopLink
	over chan error
	take func(*feed.Frame) error // handles frames; may be nil
}

func (l *fakeLink) disconnected() <-chan error { return l.over }

func (l *fakeLink) frame(_ context.Context, f *feed.Frame, _ Scene) error {
	if l.take == nil {
		return nil
	}
	return l.take(f)
}

// runFake runs a relay to a program in memory. logged returns the log so far.
func runFake(t *testing.T, s *fakeProgram) (h *harness, logged func() string) {
	t.Helper()
	var text bytes.Buffer // the handler writes to it under a lock
	h = changedHarness(t, slog.NewTextHandler(&text, nil), func(r *Relays) { r.relays[0].program = s }, Target{Kind: "warudo"})
	return h, func() string {
		synctest.Wait()
		return text.String()
	}
}

// TestProgramThatClosesAtOnce tests that the attempts to connect to a program that closes each connection at
// once become rarer, even while an agent works, and that this is logged once.
func TestProgramThatClosesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeProgram{connect: func() (link, error) {
			l := &fakeLink{over: make(chan error, 1)}
			l.over <- errors.New("it has closed the connection")
			return l, nil
		}}
		h, logged := runFake(t, s)
		h.happens(robotA, "s", event.RobotOnline{}, event.ThinkingStarted{})
		const tools = 60 * 30
		for range tools { // for an hour, with a tool every two seconds
			for _, is := range []string{event.ToolRunning, event.ToolDone} {
				h.happens(robotA, "s", event.ToolStatus{ID: "1", Name: "weather", Status: is})
				time.Sleep(time.Second)
			}
		}
		// quickTries attempts at first, seven while the wait grows to a minute, and then one per minute.
		if n, _ := s.opened(); n > quickTries+7+60+1 {
			t.Errorf("it is reached %d times in an hour", n)
		}
		if n := strings.Count(logged(), "\n"); n != 2 {
			t.Errorf("%d lines are logged, first\n%.900s", n, logged())
		}
		// Each connection publishes two events: that it is open, and that it is closed.
		if n, _ := s.opened(); h.bus.Seq() > uint64(2*(n+tools)+3) {
			t.Errorf("%d events of %d connections and %d tools", h.bus.Seq(), n, tools)
		}
	})
}

// TestErrorsAreLoggedOnce tests that each error is logged once, also if two errors alternate.
func TestErrorsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		_, logged := runFake(t, &fakeProgram{connect: func() (link, error) {
			tries++
			return nil, []error{errors.New("nothing listens there"), errors.New("the port is closed")}[tries%2]
		}})
		time.Sleep(time.Hour)
		if n := strings.Count(logged(), "\n"); n != 2 {
			t.Errorf("%d lines are logged, first\n%.900s", n, logged())
		}
	})
}

// TestReconnectsWithinASecond tests that a program whose connection has worked is connected again within a
// second, however long the program was away before, and that each change is logged once.
func TestReconnectsWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("nothing listens there")
		is := make(chan *fakeLink, 1) // holds the link while the program is running
		s := &fakeProgram{connect: func() (link, error) {
			select {
			case l := <-is:
				return l, nil
			default:
				return nil, away
			}
		}}
		start := func() *fakeLink {
			l := &fakeLink{over: make(chan error, 1)}
			is <- l
			return l
		}
		h, logged := runFake(t, s)
		time.Sleep(time.Hour)
		program := start()
		time.Sleep(maxWait)
		if !h.relays.List()[0].OK {
			t.Fatalf("it is not connected a minute after it came: %+v", h.relays.List())
		}
		time.Sleep(workingAfter)
		program.over <- errors.New("it has gone")
		synctest.Wait()
		gone := time.Now()
		time.Sleep(time.Nanosecond)
		program = start()
		h.eventually("it is back", func() bool { return h.relays.List()[0].OK })
		if _, last := s.opened(); last.Sub(gone) != firstWait || firstWait >= time.Second {
			t.Errorf("it is tried again after %s", last.Sub(gone))
		}
		program.over <- errors.New("it has gone") // before this connection has worked; the previous connection had worked
		synctest.Wait()
		gone = time.Now()
		program = start()
		h.eventually("it is back again", func() bool { return h.relays.List()[0].OK })
		if _, last := s.opened(); last.Sub(gone) != firstWait {
			t.Errorf("it is tried again after %s", last.Sub(gone))
		}
		time.Sleep(workingAfter)
		program.over <- errors.New("it has gone")
		time.Sleep(time.Minute)
		var lines []string
		for line := range strings.Lines(logged()) {
			_, line, _ = strings.Cut(line, "msg=\"an avatar program is ")
			lines = append(lines, strings.SplitN(line, "\"", 2)[0])
		}
		const here, not = "connected", "not connected; connecting again"
		if want := []string{not, here, not, here, not, here, not, not}; !slices.Equal(lines, want) {
			t.Errorf("it is logged %q", lines)
		}
	})
}

// TestWorkingAgentEndsWait tests that the next attempt to connect comes at once when an agent begins to work.
func TestWorkingAgentEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeProgram{connect: func() (link, error) { return nil, errors.New("nothing listens there") }}
		h, _ := runFake(t, s)
		h.happens(robotA, "s", event.RobotOnline{})
		time.Sleep(time.Hour)
		before, last := s.opened()
		time.Sleep(time.Until(last.Add(maxWait / 2)))
		h.happens(robotA, "s", event.ListeningStarted{})
		synctest.Wait()
		time.Sleep(time.Millisecond)
		if n, _ := s.opened(); n != before+1 {
			t.Errorf("it is tried %d times", n-before)
		}
	})
}

// TestEndOfSessionIsRetried tests that the end of a session is sent again until the program has received it.
func TestEndOfSessionIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		fails := ""
		s := &fakeProgram{connect: func() (link, error) {
			return &fakeLink{take: func(f *feed.Frame) error {
				s, is := f.Body.(feed.State)
				if is && s.Session == fails {
					return errors.New("it has gone")
				} else if is {
					told = append(told, s.Session+" "+string(s.State))
				}
				return nil
			}}, nil
		}}
		h, _ := runFake(t, &fakeProgram{connect: func() (link, error) { return nil, errors.New("nothing listens there") }})
		h.happens("", "still", event.ThinkingStarted{})
		synctest.Wait()
		c := &connection{relay: h.relays.relays[0]}
		h.stop()
		c.busy = map[string]feed.State{"still": {Session: "still", State: agent.Thinking}, "over": {Session: "over", State: agent.Working}}
		for _, fails = range []string{"still", "over", "still", ""} {
			c.link, _ = s.connect()
			c.viewer, c.scenes, told = c.o.Feed.Join(feed.Filter{Kinds: []string{feed.KindState}, AllStates: true}), scenes{}, nil
			if err := c.catchUp(t.Context()); (err == nil) != (fails == "") {
				t.Errorf("%s fails: %v", fails, err)
			}
			c.viewer.Leave()
		}
		if !slices.Equal(told, []string{"still thinking", "over idle"}) {
			t.Errorf("it is told %q", told)
		}
		if len(c.busy) != 1 || c.busy["still"].State != agent.Thinking {
			t.Errorf("%v count as told at work", c.busy)
		}
	})
}
