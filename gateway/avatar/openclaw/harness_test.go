package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const robotA device.ID = "a0b1c2d3e4f5"

// scripted is an avatar.Chat that calls the function answer instead of an agent.
type scripted struct {
	bus *event.Bus

	mu     sync.Mutex
	texts  []string                                                                      // each "conversation character: text"
	answer func(ctx context.Context, session string, take func(agent.Reply) error) error // nil for hello
}

// answers replaces the function answer.
func (s *scripted) answers(script func(ctx context.Context, session string, take func(agent.Reply) error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = script
}

func (s *scripted) SessionOf(talk string) (string, error) {
	if robot, is := strings.CutPrefix(talk, feed.RobotPrefix); is {
		if robot != string(robotA) {
			return "", &httpserver.Fault{Word: "unknown_robot", Sentence: "there is no such robot", HTTP: 404}
		}
		return agent.ChatPrefix + robot, nil
	}
	return talk, nil
}

func (s *scripted) Chat(ctx context.Context, talk, character, text string, take func(agent.Reply) error) error {
	session, err := s.SessionOf(talk)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.texts = append(s.texts, talk+" "+character+": "+text)
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		answer = s.hello
	}
	return answer(ctx, session, take)
}

// hello answers with a tool call and two sentences.
func (s *scripted) hello(_ context.Context, session string, take func(agent.Reply) error) error {
	publish := func(events ...event.Event) {
		for _, e := range events {
			s.bus.Publish("", session, e)
		}
	}
	publish(event.Heard{Text: "hello"}, event.ToolStatus{ID: "c1", Name: "clock", Status: event.ToolRunning},
		event.ToolStatus{ID: "c1", Name: "clock", Status: event.ToolDone, Detail: "noon"}, event.SpeakingStarted{})
	for _, text := range []string{"It is noon.", "Eat."} {
		publish(event.Said{Text: text})
		if err := take(agent.Say{Text: text}); err != nil {
			return err
		}
	}
	publish(event.TurnEnded{End: event.EndDone})
	return nil
}

func (s *scripted) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts)
}

// cast implements characters. Its elements are the names of the characters.
type cast []string

func (c cast) Names() []string { return c }

func (c cast) Exists(name string) bool { return slices.Contains(c, name) }

// harness is a running server, with the bus and the feed that it uses.
type harness struct {
	*avatartest.Appliance
	t      testing.TB
	talks  *scripted
	server *Server
}

func newHarness(t testing.TB, change ...func(*Options, *timings)) *harness {
	t.Helper()
	h := &harness{t: t, talks: &scripted{}}
	h.Appliance = avatartest.Start(t, func(f *feed.Feed) avatartest.Server {
		o := Options{Feed: f, Chat: h.talks, Characters: cast{"leo"}, Name: func() string { return "Chan" }, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)}
		p := defaultTimings()
		for _, c := range change {
			c(&o, &p)
		}
		h.server = New(o)
		h.server.timings = p
		return h.server
	})
	h.talks.bus = h.Bus
	return h
}

func (h *harness) happens(robot device.ID, session string, events ...event.Event) {
	for _, e := range events {
		h.Bus.Publish(robot, session, e)
	}
}

// client is a program for OpenClaw's gateway.
type client struct {
	*avatartest.Client
	t     testing.TB
	nonce string
}

// received is a decoded frame of the server.
type received struct {
	Type, ID, Event string
	OK              bool
	Seq             int
	Payload         json.RawMessage
	Error           *failure

	whole string // text of the frame
}

// dial opens a connection, and reads the challenge.
func (h *harness) dial() *client {
	h.t.Helper()
	c, nonce := avatartest.DialOpenClaw(h.t, h.URL, func(message string) string { return message })
	return &client{c, h.t, nonce}
}

// join opens a connection, and completes the handshake.
func (h *harness) join(change ...func(map[string]any)) *client {
	h.t.Helper()
	c := h.dial()
	c.Send(avatartest.Connect("1", change...))
	if hello := c.next(); !hello.OK || !strings.Contains(hello.whole, `"type":"hello-ok"`) {
		h.t.Fatalf("no hello: %s", hello.whole)
	}
	return c
}

func (c *client) call(id, method, params string) {
	c.t.Helper()
	c.Send(fmt.Sprintf(`{"type":"req","id":%q,"method":%q,"params":%s}`, id, method, params))
}

func (c *client) next() received {
	c.t.Helper()
	f := received{whole: c.Next()}
	if err := json.Unmarshal([]byte(f.whole), &f); err != nil {
		c.t.Fatalf("%s: %v", f.whole, err)
	}
	return f
}

// answer returns the next response, which must have the given ID. It skips events before the response.
func (c *client) answer(id string) received {
	c.t.Helper()
	for {
		if f := c.next(); f.Type == "res" {
			if f.ID != id {
				c.t.Fatalf("an answer to %q, want %q: %s", f.ID, id, f.whole)
			}
			return f
		}
	}
}

// events returns the next frames, up to a frame whose text contains last.
func (c *client) events(last string) (all []received) {
	c.t.Helper()
	for {
		f := c.next()
		all = append(all, f)
		if strings.Contains(f.whole, last) {
			return all
		}
	}
}

// gone waits until the server has closed the connection.
func (c *client) gone() {
	c.t.Helper()
	if err := c.WaitClosed(); err != io.EOF {
		c.t.Fatal(err)
	}
}
