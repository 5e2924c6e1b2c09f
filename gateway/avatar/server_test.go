package avatar

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/socket"
	"perch/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a protocol in which a test decides what is done. What shows is told by its
// text.
type scripted struct {
	conn  *Conn
	greet func(ctx context.Context, c *Conn) error
	take  func(ctx context.Context, c *Conn, message string) error
	show  func(text string) // nil is nothing besides
}

func (s *scripted) Greet(ctx context.Context) error {
	if s.greet == nil {
		return s.conn.Send(ctx, "hello")
	}
	return s.greet(ctx, s.conn)
}

func (s *scripted) Handle(ctx context.Context, message []byte) error {
	return s.take(ctx, s.conn, string(message))
}

func (s *scripted) MessageFor(f *feed.Frame) any {
	n, is := f.Body.(feed.Notice)
	if !is {
		return nil
	}
	if s.show != nil {
		s.show(n.Text)
	}
	return n.Text
}

// routed is a door at the root of a listener.
type routed struct{ *Server }

func (d routed) Routes(r gin.IRouter) {
	r.GET("/", func(c *gin.Context) {
		if err := d.Open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}

// newDoor is a door of programs with a script.
func newDoor(f *feed.Feed, script scripted) *Server {
	return New(Options{Kind: "scripted", Feed: f, Chat: &avatartest.Chats{}, Shown: []string{feed.KindNotice}, MostMessage: 1 << 10,
		Log: slog.New(slog.DiscardHandler), New: func(c *Conn) Program {
			own := script
			own.conn = c
			return &own
		}})
}

// start runs such a door.
func start(t *testing.T, script scripted) (*avatartest.Appliance, *Server) {
	t.Helper()
	var s *Server
	h := avatartest.Start(t, func(f *feed.Feed) avatartest.Server {
		s = newDoor(f, script)
		return routed{s}
	})
	return h, s
}

// piped runs such a door in a bubble of virtual time, where there is no network, with one
// program that reads nothing unless a test does.
func piped(t *testing.T, script scripted) (s *Server, conn net.Conn, r *bufio.Reader) {
	t.Helper()
	bus := event.NewBus()
	t.Cleanup(bus.Close)
	s = newDoor(avatartest.NewFeed(bus, agent.NewBoard()), script)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	conn = httpservertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.Open(w, r); err != nil {
			t.Error(err)
		}
	}))
	return s, conn, upgraded(t, conn)
}

// raw is a connection that nobody reads from unless a test does.
func raw(t *testing.T, url string) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "ws://"))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return upgraded(t, conn)
}

// upgraded has a connection speak WebSocket.
func upgraded(t *testing.T, conn net.Conn) *bufio.Reader {
	t.Helper()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(conn)
	if answer, err := http.ReadResponse(r, nil); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	return r
}

// closing is a close frame.
func closing(code int, reason string) string {
	return "\x88" + string([]byte{byte(2 + len(reason))}) + string(binary.BigEndian.AppendUint16(nil, uint16(code))) + reason
}

func notice(n int) event.Notification {
	return event.Notification{ID: fmt.Sprint(n), Text: fmt.Sprint("notice ", n), Urgency: "normal"}
}

// TestTheGreetingComesFirst, whatever waits to be shown, and it is shown then.
func TestTheGreetingComesFirst(t *testing.T) {
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

// lastWords are a last message that is not sent before its answer is interrupted.
type lastWords struct {
	interrupted <-chan struct{}
	begun       chan<- struct{} // closed when it is about to be sent
}

func (w lastWords) MarshalJSON() ([]byte, error) {
	close(w.begun)
	<-w.interrupted
	return []byte(`"last"`), nil
}

// TestOneAnswerAtATime: the next question ends the one before, and so does an interruption,
// which knows whether there was one. One that has only its last message to send is none.
func TestOneAnswerAtATime(t *testing.T) {
	var answering atomic.Int32
	ending := make(chan struct{})
	h, _ := start(t, scripted{take: func(ctx context.Context, c *Conn, message string) error {
		switch message {
		case "stop":
			return c.Send(ctx, c.Interrupt())
		case "await":
			<-c.answered
			return nil
		case "await the last":
			<-ending
			return nil
		}
		c.Answer(ctx, func(ctx context.Context) any {
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

// TestTheEnd closes each connection with 1001, and waits for the answers under way.
func TestTheEnd(t *testing.T) {
	var answered atomic.Bool
	h, s := start(t, scripted{take: func(ctx context.Context, c *Conn, _ string) error {
		c.Answer(ctx, func(ctx context.Context) any {
			_ = c.Send(ctx, "begun")
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond) // it has something to put away
			answered.Store(true)
			return nil
		})
		return nil
	}})
	asks, idle := avatartest.Dial(t, h.URL, nil), raw(t, h.URL)
	asks.Expect(`"hello"`)
	asks.Send("x")
	asks.Expect(`"begun"`)
	h.Stop()
	if !answered.Load() || s.serving.Connected() != 0 {
		t.Errorf("the door has ended, and the answer %t; %d are connected", answered.Load(), s.serving.Connected())
	}
	all, err := io.ReadAll(idle)
	if want := closing(socket.GoingAway, httpserver.GoingAway); err != nil || !strings.HasSuffix(string(all), want) {
		t.Errorf("it is told %q and not at last %q (%v)", all, want, err)
	}
	if err := asks.WaitClosed(); err != io.EOF {
		t.Error(err)
	}
}

// TestWhoIsTooSlow is disconnected where too much waits to be shown, and is told to come
// back; nobody else notices.
func TestWhoIsTooSlow(t *testing.T) {
	const many = 100 // more than wait for one
	showing, goOn := make(chan struct{}, many+1), make(chan struct{})
	var held atomic.Bool
	h, s := start(t, scripted{show: func(string) {
		if held.CompareAndSwap(false, true) {
			showing <- struct{}{}
			<-goOn
		}
	}})
	slow := raw(t, h.URL)
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
	all, err := io.ReadAll(slow)
	want := closing(socket.TryLater, "you do not read fast enough; come back")
	if err != nil || !strings.HasSuffix(string(all), want) || strings.Contains(string(all), "notice 9") {
		t.Errorf("it is told %q and not at last %q (%v)", all, want, err)
	}
	waittest.For(t, "it is gone", func() bool { return s.serving.Connected() == 1 })
}

// TestWhoReadsNothing is disconnected after the time that a message may take.
func TestWhoReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		s, _, r := piped(t, scripted{greet: func(ctx context.Context, c *Conn) error {
			if err := c.Send(ctx, "hello"); err != nil {
				return err
			}
			c.Answer(ctx, func(ctx context.Context) any {
				defer close(ended)
				for c.Send(ctx, strings.Repeat("x", 1<<20)) == nil {
				}
				return nil
			})
			return nil
		}})
		if got := frame(t, r); got != `"hello"` {
			t.Error(got)
		}
		time.Sleep(s.paces.send - 1)
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

// frame reads a short one: its text, "ping", or nothing once the connection is over.
func frame(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return ""
	}
	data := make([]byte, head[1])
	if _, err := io.ReadFull(r, data); err != nil {
		t.Error(err)
	}
	if head[0] == 0x89 {
		return "ping"
	}
	return string(data)
}

// TestWhoIsAlive answers pings, and stays for as long as it does, though it says nothing.
func TestWhoIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conn, r := piped(t, scripted{take: func(ctx context.Context, c *Conn, _ string) error { return c.Send(ctx, "here") }})
		const unmasked = "\x00\x00\x00\x00"
		var dead atomic.Bool
		told, over := make(chan string, 10), make(chan struct{})
		go func() {
			defer close(over)
			for {
				switch text := frame(t, r); {
				case text == "":
					return
				case text != "ping":
					told <- text
				case !dead.Load():
					_, _ = io.WriteString(conn, "\x8a\x80"+unmasked)
				}
			}
		}()
		time.Sleep(10 * s.paces.quiet)
		if _, err := io.WriteString(conn, "\x81\x81"+unmasked+"x"); err != nil || <-told != `"hello"` || <-told != `"here"` {
			t.Error(err)
		}
		dead.Store(true)
		time.Sleep(s.paces.quiet - 1)
		if synctest.Wait(); s.serving.Connected() != 1 {
			t.Error("it is gone too early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); s.serving.Connected() != 0 {
			t.Error("it is still there")
		}
		<-over
	})
}
