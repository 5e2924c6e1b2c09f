package avatar

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/socket"
	"perch/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a Program whose methods a test provides. The message for a notification is the
// notification's text.
type scripted struct {
	conn   *Conn
	greet  func(ctx context.Context, c *Conn) error // nil to send "hello"
	handle func(ctx context.Context, c *Conn, message string) error
	show   func(text string) // called before a notification is sent; may be nil
	log    *slog.Logger      // the server's; nil to discard what it logs
}

func (s *scripted) Greet(ctx context.Context) error {
	if s.greet == nil {
		return s.conn.Send(ctx, "hello")
	}
	return s.greet(ctx, s.conn)
}

func (s *scripted) Handle(ctx context.Context, message []byte) error {
	return s.handle(ctx, s.conn, string(message))
}

func (s *scripted) MessageFor(f *feed.Frame) any {
	n, ok := f.Body.(feed.Notice)
	if !ok {
		return nil
	}
	if s.show != nil {
		s.show(n.Text)
	}
	return n.Text
}

// newServer returns a server that uses a copy of script for each program.
func newServer(f *feed.Feed, script scripted) *Server {
	return New(Options{Kind: "scripted", Path: "/", Feed: f, Chat: &avatartest.Chats{}, Log: cmp.Or(script.log, slog.New(slog.DiscardHandler)),
		New: func(c *Conn) Program {
			own := script
			own.conn = c
			return &own
		}})
}

// start runs the server that newServer returns, until the test ends.
func start(t *testing.T, script scripted) (*avatartest.Appliance, *Server) {
	t.Helper()
	var s *Server
	h := avatartest.Start(t, func(f *feed.Feed) avatartest.Server {
		s = newServer(f, script)
		return s
	})
	return h, s
}

// piped runs the server that newServer returns in a synctest bubble, and connects one program.
func piped(t *testing.T, script scripted) (*Server, *avatartest.Raw) {
	t.Helper()
	bus := event.NewBus()
	t.Cleanup(bus.Close)
	s := newServer(avatartest.NewFeed(bus, agent.NewBoard()), script)
	return s, avatartest.Pipe(t, s.Run, s.open)
}

func notice(n int) event.Notification {
	return event.Notification{ID: fmt.Sprint(n), Text: fmt.Sprint("notice ", n), Urgency: "normal"}
}

// TestGreetingPrecedesFrames checks that a waiting notification is sent after all messages of Greet, and
// then counts as shown.
func TestGreetingPrecedesFrames(t *testing.T) {
	const greetings = 20
	h, _ := start(t, scripted{greet: func(ctx context.Context, c *Conn) error {
		for n := range greetings {
			if err := c.Send(ctx, n); err != nil {
				return err
			}
		}
		return nil
	}})
	h.Bus.Publish("", "", notice(1))
	waits := func() bool {
		v := h.Feed.Join(feed.Filter{Kinds: []string{feed.KindNotice}})
		defer v.Leave()
		f, _ := v.Pop()
		return f != nil
	}
	waittest.For(t, "it waits", waits)
	c := avatartest.Dial(t, h.URL, nil)
	for n := range greetings {
		c.Expect(fmt.Sprint(n))
	}
	c.Expect(`"notice 1"`)
	waittest.For(t, "it was shown", func() bool { return !waits() })
}

// lastWords is the last message of a reply. Its encoding blocks until the reply is interrupted.
type lastWords struct {
	interrupted <-chan struct{}
	begun       chan<- struct{} // closed when encoding begins
}

func (w lastWords) MarshalJSON() ([]byte, error) {
	close(w.begun)
	<-w.interrupted
	return []byte(`"last"`), nil
}

// TestOneAnswerAtATime checks that the next question and Interrupt end a reply. A reply of which only
// the last message remains to be sent does not count as interrupted.
func TestOneAnswerAtATime(t *testing.T) {
	var answering atomic.Int32
	ending := make(chan struct{})
	h, _ := start(t, scripted{handle: func(ctx context.Context, c *Conn, message string) error {
		switch message {
		case "stop":
			return c.Send(ctx, c.Interrupt())
		case "await":
			<-c.replyEnded
			return nil
		case "await the last":
			<-ending
			return nil
		}
		c.StartReply(ctx, func(ctx context.Context) any {
			if n := answering.Add(1); n > 1 {
				t.Errorf("%d answers at a time", n)
			}
			defer answering.Add(-1)
			switch err := c.Send(ctx, message); {
			case message == "short":
				return nil
			case message == "ending":
				return lastWords{ctx.Done(), ending}
			case err == nil:
				<-ctx.Done()
			}
			return "never told"
		})
		return nil
	}})
	c := avatartest.Dial(t, h.URL, nil)
	c.Expect(`"hello"`)
	for _, step := range [][2]string{{"stop", "false"}, {"one", `"one"`}, {"two", `"two"`}, {"stop", "true"}, {"stop", "false"},
		{"short", `"short"`}, {"await", ""}, {"stop", "false"}, {"ending", `"ending"`}, {"await the last", ""},
		{"stop", `"last"`}, {"await", "false"}, {"three", `"three"`}} {
		if c.Send(step[0]); step[1] != "" {
			c.Expect(step[1])
		}
	}
	c.Leave()
	waittest.For(t, "who leaves ends the answer", func() bool { return answering.Load() == 0 })
}

// TestRunClosesConnections checks that Run closes the connections with status 1001 when ctx ends, and
// waits for the end of replies.
func TestRunClosesConnections(t *testing.T) {
	var answered atomic.Bool
	h, s := start(t, scripted{handle: func(ctx context.Context, c *Conn, _ string) error {
		c.StartReply(ctx, func(ctx context.Context) any {
			_ = c.Send(ctx, "begun")
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond) // the reply needs some time to end
			answered.Store(true)
			return nil
		})
		return nil
	}})
	asks, idle := avatartest.Dial(t, h.URL, nil), avatartest.DialRaw(t, h.URL, "/")
	asks.Expect(`"hello"`)
	asks.Send("x")
	asks.Expect(`"begun"`)
	h.Stop()
	if !answered.Load() || s.serving.Connected() != 0 {
		t.Errorf("Run has returned, and the answer %t; %d are connected", answered.Load(), s.serving.Connected())
	}
	if code, reason, _ := idle.ReadClose(); code != socket.GoingAway || reason != httpserver.GoingAway {
		t.Errorf("closed with %d %s", code, reason)
	}
	if err := asks.WaitClosed(); err != io.EOF {
		t.Error(err)
	}
}

// TestSlowProgramIsDisconnected checks that a program is disconnected with status 1013 (try again later)
// when too many frames are queued for it, and that other programs get all frames.
func TestSlowProgramIsDisconnected(t *testing.T) {
	const many = 100 // more notifications than an outbox holds
	showing, goOn := make(chan struct{}, many+1), make(chan struct{})
	var held atomic.Bool
	h, s := start(t, scripted{show: func(string) {
		if held.CompareAndSwap(false, true) {
			showing <- struct{}{}
			<-goOn
		}
	}})
	slow := avatartest.DialRaw(t, h.URL, "/")
	waittest.For(t, "it is connected", func() bool { return s.serving.Connected() == 1 })
	h.Bus.Publish("", "", notice(0))
	<-showing
	quick := avatartest.Dial(t, h.URL, nil)
	quick.Listen()
	for n := range many {
		h.Bus.Publish("", "", notice(n+1))
		want := fmt.Sprintf(`"notice %d"`, n+1)
		waittest.For(t, want, func() bool { return strings.HasSuffix(quick.Transcript(), want) })
	}
	close(goOn)
	code, reason, texts := slow.ReadClose()
	if code != socket.TryLater || reason != "you do not read fast enough; come back" ||
		strings.Contains(strings.Join(texts, "\n"), "notice 9") {
		t.Errorf("after %q it is closed with %d %s", texts, code, reason)
	}
	waittest.For(t, "it is gone", func() bool { return s.serving.Connected() == 1 })
}

// TestProgramThatReadsNothing checks that a program that does not read is disconnected after sendWithin.
func TestProgramThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		s, r := piped(t, scripted{greet: func(ctx context.Context, c *Conn) error {
			if err := c.Send(ctx, "hello"); err != nil {
				return err
			}
			c.StartReply(ctx, func(ctx context.Context) any {
				defer close(ended)
				for c.Send(ctx, strings.Repeat("x", 1<<20)) == nil {
				}
				return nil
			})
			return nil
		}})
		if _, got, err := r.ReadFrame(); err != nil || string(got) != `"hello"` {
			t.Errorf("%q (%v)", got, err)
		}
		time.Sleep(sendWithin - 1)
		if synctest.Wait(); s.serving.Connected() != 1 {
			t.Error("it is gone too early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); s.serving.Connected() != 0 {
			t.Error("it is still there")
		}
		<-ended
	})
}

// TestKeepAlive checks that a program that sends neither messages nor pongs is disconnected after quietFor, and that
// the reason is logged.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s, r := piped(t, scripted{log: slog.New(slog.NewTextHandler(&log, nil)),
			handle: func(ctx context.Context, c *Conn, _ string) error { return c.Send(ctx, "here") }})
		if texts := r.CheckKeepAlive(quietFor, "x", s.serving.Connected); !slices.Equal(texts, []string{`"hello"`, `"here"`}) {
			t.Errorf("it is sent %q", texts)
		}
		if !strings.Contains(log.String(), "the program sent neither a message nor a pong for 50s") {
			t.Errorf("it logs %q", log.String())
		}
	})
}
