package skin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/socket"
	"perch/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	robotA device.ID = "a0b1c2d3e4f5"
	robotB device.ID = "a0b1c2d3e4f6"

	secret = "key-of-the-skins"
	page   = "https://skin.example"
)

// family is a registry of robots.
type family []device.ID

func (f family) Get(id device.ID) (device.Robot, error) {
	if !slices.Contains(f, id) {
		return device.Robot{}, device.ErrUnknownRobot
	}
	return device.Robot{ID: id}, nil
}

// stranger is a robot that is not adopted.
const stranger device.ID = "a0b1c2d3e4ff"

func (f family) Trusts(id device.ID) bool { return slices.Contains(f, id) && id != stranger }

// away is a fake of the robots, whose channels are all closed.
type away struct{}

func (away) Reachable() []device.ID                                         { return nil }
func (away) Announce(context.Context, device.ID, notice.Announcement) error { return io.EOF }
func (away) KeepOpen(device.ID, time.Time)                                  {}

// brain is a fake brain. It gives replies and err, or calls think if that is not nil, and records its turns.
type brain struct {
	mu      sync.Mutex
	heard   []agent.Turn
	replies []agent.Reply
	err     error
	think   func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
}

func (b *brain) Name() string { return "scripted" }

func (b *brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	b.mu.Lock()
	b.heard = append(b.heard, t)
	replies, err, think := b.replies, b.err, b.think
	b.mu.Unlock()
	if think != nil {
		return think(ctx, t, out)
	}
	for _, r := range replies {
		if err := out(r); err != nil {
			return err
		}
	}
	return err
}

func (b *brain) turns() []agent.Turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard
}

// harness runs a server on loopback, with the parts of an appliance that the server uses.
type harness struct {
	bus     *event.Bus
	board   *agent.Board
	notices *notice.Store
	brain   *brain
	mind    *agent.Mind
	server  *Server
	feed    *pausable
	url     string
	marks   int
	stop    func()
}

// bare returns options without an agent and without questions.
func bare(bus *event.Bus, board *agent.Board) Options {
	return bareOf(bus, board, notice.NewStore(&storetest.Table[notice.Notification]{}))
}

func bareOf(bus *event.Bus, board *agent.Board, notices *notice.Store) Options {
	log := slog.New(slog.DiscardHandler)
	shown := feed.New(feed.Options{Bus: bus, Board: board, Notices: notices, Words: agent.StockWords(), Log: log})
	return Options{Bus: bus, Feed: shown, Robots: family{robotA},
		Find: device.ParseID, Questions: &asker{}, Words: agent.StockWords(), Zone: time.UTC, Log: log}
}

// newHarness returns a running harness, whose options were changed by the functions in change.
func newHarness(t testing.TB, change ...func(*Options)) *harness {
	t.Helper()
	h := &harness{bus: event.NewBus(), board: agent.NewBoard(), notices: notice.NewStore(&storetest.Table[notice.Notification]{}), brain: &brain{}}
	log := slog.New(slog.DiscardHandler)
	timers := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil)
	notifier := notice.New(notice.Options{Store: h.notices, Timers: timers, Bus: h.bus, Log: log})
	h.mind = agent.NewMind(agent.Always(h.brain), agent.NewMemory(&storetest.Table[agent.Entry]{}), h.bus, log)
	o := bareOf(h.bus, h.board, h.notices)
	o.Notifier, o.Robots, o.Mind = notifier, family{robotA, robotB, stranger}, h.mind
	o.Language = func(id device.ID) string { return map[device.ID]string{"": "en", robotA: "de"}[id] }
	for _, c := range change {
		c(&o)
	}
	h.server = New(o)
	engine, err := httpserver.NewEngine(log)
	must.Succeed(t, err)
	engine.Use(httpserver.Origins{Allowed: []string{page}}.Admit(), httpserver.Guard(httpserver.Hosts{}.Check))
	h.server.Routes(engine, httpserver.NewKey(secret, "skins.key", "").Check)
	server := httptest.NewServer(engine)
	h.url = server.URL
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { h.board.Run(ctx, h.bus.ReadFrom(1)) })
	wg.Go(func() {
		if err := notifier.Run(ctx, away{}); err != nil {
			t.Error(err)
		}
	})
	h.feed = newPausable(o.Feed)
	wg.Go(func() { h.feed.run(ctx) })
	wg.Go(func() { h.server.Run(ctx) })
	h.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		server.Close()
		h.bus.Close()
	})
	t.Cleanup(h.stop)
	return h
}

// pausable is a feed that a test can pause.
type pausable struct {
	*feed.Feed
	// pauses receives a channel for each pause. The feed receives one value from that channel when it is paused, and
	// waits until the channel is closed.
	pauses chan chan struct{}
}

func newPausable(f *feed.Feed) *pausable { return &pausable{f, make(chan chan struct{})} }

func (p *pausable) run(ctx context.Context) {
	for ctx.Err() == nil {
		running, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(running) })
		var goOn chan struct{}
		select {
		case goOn = <-p.pauses:
		case <-ctx.Done():
		}
		stop()
		wg.Wait()
		if goOn != nil {
			<-goOn // pause has sent a value, so the feed is paused
			<-goOn // the channel is closed, so the feed continues
		}
	}
}

// pause pauses the feed until goOn is called.
func (p *pausable) pause() (goOn func()) {
	until := make(chan struct{})
	p.pauses <- until
	until <- struct{}{}
	return func() { close(until) }
}

func (h *harness) happens(robot device.ID, session string, events ...event.Event) {
	for _, e := range events {
		h.bus.Publish(robot, session, e)
	}
}

// client is a skin that checks every frame against the schema.
type client struct {
	t     testing.TB
	h     *harness
	conn  *socket.Conn
	early []string // frames that connect has received
}

// connect opens a skin's WebSocket, and waits until the skin is subscribed.
func (h *harness) connect(t testing.TB) *client {
	t.Helper()
	conn, err := h.dial("Authorization", "Bearer "+secret)
	must.Succeed(t, err)
	t.Cleanup(conn.Drop)
	c := &client{t: t, h: h, conn: conn}
	c.send(`{"type":"ping"}`)
	for {
		f := c.receive()
		if f == `{"type":"pong"}` {
			return c
		}
		c.early = append(c.early, f)
	}
}

func (h *harness) dial(header ...string) (*socket.Conn, error) {
	return h.dialAt("/v1/vtuber/ws", header...)
}

func (h *harness) dialAt(path string, header ...string) (*socket.Conn, error) {
	o := socket.Options{MaxMessage: 1 << 20, Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		o.Header.Add(header[i], header[i+1])
	}
	return socket.Dial(context.Background(), "ws"+strings.TrimPrefix(h.url, "http")+path, o)
}

func (c *client) send(text string) {
	c.t.Helper()
	must.Succeed(c.t, c.conn.SendText([]byte(text)))
}

// next returns the next frame without its time.
func (c *client) next() string {
	c.t.Helper()
	if len(c.early) > 0 {
		f := c.early[0]
		c.early = c.early[1:]
		return f
	}
	return c.receive()
}

func (c *client) receive() string {
	c.t.Helper()
	isText, data, err := c.conn.Receive()
	if err != nil || !isText {
		c.t.Fatalf("no frame came: text %t (%v)", isText, err)
	}
	valid(c.t, "event", data)
	var at struct{ TS int64 }
	if err := json.Unmarshal(data, &at); err != nil || time.Since(time.Unix(at.TS, 0)).Abs() > time.Minute {
		c.t.Errorf("%s: its time is %v (%v)", data, at.TS, err)
	}
	return strings.Replace(string(data), fmt.Sprintf(`,"ts":%d`, at.TS), "", 1)
}

// until returns the frames of all events so far. The skin must be subscribed to notifications.
func (c *client) until() (frames []string) {
	c.t.Helper()
	mark := c.h.mark()
	for {
		f := c.next()
		if strings.Contains(f, mark) {
			return frames
		}
		if !strings.Contains(f, `"mark-`) {
			frames = append(frames, f)
		}
	}
}

// mark publishes a notification that marks the end of the frames so far, and returns its quoted ID.
func (h *harness) mark() string {
	h.marks++
	id := fmt.Sprintf("mark-%d", h.marks)
	h.happens("", "", event.Notification{ID: id, Text: "mark", Urgency: notice.UrgencyLow})
	return `"` + id + `"`
}

// expect checks the next frames.
func (c *client) expect(want ...string) {
	c.t.Helper()
	for i, w := range want {
		if got := c.next(); got != w {
			c.t.Fatalf("frame %d is\n%s, want\n%s", i, got, w)
		}
	}
}

// schemas returns the schemas of frames ("event") and commands ("command").
var schemas = sync.OnceValue(func() map[string]*jsonschema.Resolved {
	resolved := map[string]*jsonschema.Resolved{}
	for _, name := range []string{"event", "command"} {
		var s jsonschema.Schema
		if err := json.Unmarshal(schema, &s); err != nil {
			panic(err)
		}
		s.AnyOf = nil
		s.Ref = "#/$defs/" + name
		r, err := s.Resolve(nil)
		if err != nil {
			panic(err)
		}
		resolved[name] = r
	}
	return resolved
})

// valid fails the test if data does not match a schema. of is a key of schemas.
func valid(t testing.TB, of string, data []byte) {
	t.Helper()
	if err := validate(of, data); err != nil {
		t.Errorf("%s is no %s of the schema: %v", data, of, err)
	}
}

func validate(of string, data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	return schemas()[of].Validate(v)
}

// ask sends a request with the key, and returns the response and its body.
func (h *harness) ask(t testing.TB, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	return httpservertest.Ask(t, method, h.url+path, body, append([]string{"Authorization", "Bearer " + secret}, header...)...)
}
