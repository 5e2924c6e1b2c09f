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
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"perch/agent/feed"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/door"
	"perch/socket"
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

func (s *scripted) Take(ctx context.Context, message []byte) error {
	return s.take(ctx, s.conn, string(message))
}

func (s *scripted) Show(f *feed.Frame) any {
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
type routed struct{ *Door }

func (d routed) Routes(r gin.IRouter) {
	r.GET("/", func(c *gin.Context) {
		if err := d.Open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}

// start runs a door of programs with a script.
func start(t *testing.T, script scripted, change func(*paces)) (*avatartest.Appliance, *Door) {
	t.Helper()
	var d *Door
	h := avatartest.Start(t, func(f *feed.Feed) avatartest.Door {
		d = New(Options{Kind: "scripted", Feed: f, Chat: &avatartest.Chats{}, Shown: []string{feed.KindNotice}, MostMessage: 1 << 10,
			Log: slog.New(slog.DiscardHandler), New: func(c *Conn) Program {
				own := script
				own.conn = c
				return &own
			}})
		if change != nil {
			change(&d.paces)
		}
		return routed{d}
	})
	return h, d
}

// until waits for what another goroutine does, at most ten seconds.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("not within ten seconds: %s", what)
		}
	}
}

// raw is a connection that nobody reads from unless a test does.
func raw(t *testing.T, url string) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
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
	}}, nil)
	h.Bus.Publish("", "", notice(1))
	waits := func() bool {
		v := h.Feed.Join(feed.Filter{Kinds: []string{feed.KindNotice}})
		defer v.Leave()
		f, _ := v.Take()
		return f != nil
	}
	until(t, "it waits", waits)
	c := avatartest.Dial(t, h.URL, nil)
	for n := range greetings {
		c.Expect(fmt.Sprint(n))
	}
	c.Expect(`"notice 1"`)
	until(t, "it was shown", func() bool { return !waits() })
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
	}}, nil)
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
	until(t, "who leaves ends the answer", func() bool { return answering.Load() == 0 })
}

// TestTheEnd closes each connection with 1001, and waits for the answers under way.
func TestTheEnd(t *testing.T) {
	var answered atomic.Bool
	h, d := start(t, scripted{take: func(ctx context.Context, c *Conn, _ string) error {
		c.Answer(ctx, func(ctx context.Context) any {
			_ = c.Send(ctx, "begun")
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond) // it has something to put away
			answered.Store(true)
			return nil
		})
		return nil
	}}, nil)
	asks, idle := avatartest.Dial(t, h.URL, nil), raw(t, h.URL)
	asks.Expect(`"hello"`)
	asks.Send("x")
	asks.Expect(`"begun"`)
	h.Stop()
	if !answered.Load() || d.serving.Connected() != 0 {
		t.Errorf("the door has ended, and the answer %t; %d are connected", answered.Load(), d.serving.Connected())
	}
	all, err := io.ReadAll(idle)
	if want := closing(socket.GoingAway, door.GoingAway); err != nil || !strings.HasSuffix(string(all), want) {
		t.Errorf("it is told %q and not at last %q (%v)", all, want, err)
	}
	if err := asks.Ended(); err != io.EOF {
		t.Error(err)
	}
}

// TestWhoIsTooSlow is disconnected where too much waits to be shown, and is told to come
// back; nobody else notices.
func TestWhoIsTooSlow(t *testing.T) {
	const many = 100 // more than wait for one
	showing, goOn := make(chan struct{}, many+1), make(chan struct{})
	var held atomic.Bool
	h, d := start(t, scripted{show: func(string) {
		if held.CompareAndSwap(false, true) {
			showing <- struct{}{}
			<-goOn
		}
	}}, nil)
	slow := raw(t, h.URL)
	until(t, "it is connected", func() bool { return d.serving.Connected() == 1 })
	h.Bus.Publish("", "", notice(0))
	<-showing
	quick := avatartest.Dial(t, h.URL, nil)
	quick.Listen()
	for n := range many {
		h.Bus.Publish("", "", notice(n+1))
		want := fmt.Sprintf(`"notice %d"`, n+1)
		until(t, want, func() bool { return strings.HasSuffix(quick.Told(), want) })
	}
	close(goOn)
	all, err := io.ReadAll(slow)
	want := closing(socket.TryLater, "you do not read fast enough; come back")
	if err != nil || !strings.HasSuffix(string(all), want) || strings.Contains(string(all), "notice 9") {
		t.Errorf("it is told %q and not at last %q (%v)", all, want, err)
	}
	until(t, "it is gone", func() bool { return d.serving.Connected() == 1 })
}

// TestWhoTakesNothing is disconnected: one that does not read, after the time that a
// message may take, and one of whom there is no sign of life.
func TestWhoTakesNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*paces){
		"reads nothing":   func(p *paces) { p.send = 100 * time.Millisecond },
		"answers no ping": func(p *paces) { p.ping, p.quiet = 50*time.Millisecond, 300*time.Millisecond },
	} {
		ended := make(chan struct{})
		h, d := start(t, scripted{greet: func(ctx context.Context, c *Conn) error {
			if err := c.Send(ctx, "hello"); err != nil || name != "reads nothing" {
				return err
			}
			c.Answer(ctx, func(ctx context.Context) any {
				defer close(ended)
				for c.Send(ctx, strings.Repeat("x", 1<<20)) == nil {
				}
				return nil
			})
			return nil
		}}, change)
		raw(t, h.URL)
		until(t, name+": it is gone", func() bool { return d.serving.Connected() == 0 })
		if name == "reads nothing" {
			<-ended
		}
		h.Stop()
	}
}

// TestWhoIsAlive answers pings, and stays for longer than one may be quiet.
func TestWhoIsAlive(t *testing.T) {
	t.Parallel()
	h, d := start(t, scripted{take: func(ctx context.Context, c *Conn, _ string) error { return c.Send(ctx, "here") }},
		func(p *paces) { p.ping, p.quiet = 100*time.Millisecond, 2*time.Second })
	c := avatartest.Dial(t, h.URL, nil)
	c.Listen()
	time.Sleep(2500 * time.Millisecond) // nothing is said
	c.Send("x")
	until(t, "it is answered", func() bool { return slices.Contains(strings.Split(c.Told(), "\n"), `"here"`) })
	if n := d.serving.Connected(); n != 1 {
		t.Errorf("%d are connected", n)
	}
}
