package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/gateway/mdns"
	"perch/must"
	"perch/socket"
	"perch/store/storetest"
	"perch/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const robotA device.ID = "a0b1c2d3e4f5"

// harness runs relays with a bus and a feed.
type harness struct {
	t      testing.TB
	bus    *event.Bus
	board  *agent.Board
	feed   *feed.Feed
	relays *Relays
	voice  *voiceLevel
	home   string // directory in which programs write their addresses
	stop   func() // ends the relays; may be called more than once

	mu       sync.Mutex
	others   []mdns.Found // services that other machines announce
	named    map[string]device.ID
	answered []string // IDs of questions and their answers
}

// Instance and Browse implement network.
func (h *harness) Instance() (name, host string, announced bool) {
	return "perch-c0ffee", "127.0.0.1", true
}

func (h *harness) Browse(_ context.Context, kind string) (found []mdns.Found, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kind == mdns.OSC {
		found = slices.Clone(h.others)
	}
	return found, nil
}

// announce replaces the services that other machines announce.
func (h *harness) announce(others ...mdns.Found) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others = others
}

// answer records the answer to a question.
func (h *harness) answer(id string, allow bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = append(h.answered, fmt.Sprint(id, " ", allow))
	return nil
}

// answers returns the answers so far.
func (h *harness) answers() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.answered, ", ")
}

// find returns the robot with an ID or a name.
func (h *harness) find(robot string) (device.ID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id, is := h.named[robot]; is {
		return id, nil
	}
	return device.ParseID(robot)
}

// name names a robot. All other robots then have no name.
func (h *harness) name(id device.ID, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.named = map[string]device.ID{name: id}
}

// newHarness returns a harness whose relays run until the test ends.
func newHarness(t testing.TB, targets ...Target) *harness {
	t.Helper()
	return changedHarness(t, slog.DiscardHandler, func(*Relays) {}, targets...)
}

// newConnected is like newHarness, and waits until the first program is connected.
func newConnected(t testing.TB, targets ...Target) *harness {
	t.Helper()
	h := newHarness(t, targets...)
	h.eventually("it is connected", func() bool { return h.relays.List()[0].OK })
	return h
}

// note returns the note in the status of the first program.
func (h *harness) note() string { return h.relays.List()[0].Note }

// changedHarness is like newHarness, but calls change before the relays run, and logs to the handler to.
func changedHarness(t testing.TB, to slog.Handler, change func(*Relays), targets ...Target) *harness {
	t.Helper()
	h := &harness{t: t, bus: event.NewBus(), board: agent.NewBoard(), voice: newVoiceLevel(), home: t.TempDir()}
	log, names := slog.New(to), agent.StockWords()
	notices := notice.NewStore(&storetest.Table[notice.Notification]{})
	h.feed = feed.New(feed.Options{Board: h.board, Bus: h.bus, Notices: notices, Words: names, Log: log})
	var err error
	h.relays, err = New(Options{Targets: targets, Feed: h.feed, Bus: h.bus, Words: names, Find: h.find, Answer: h.answer, Voice: h.voice,
		Tokens: &storetest.Table[string]{}, Gestures: []string{"wave", "dance", "twirl"}, Home: h.home, Name: "Perch", Network: h, Log: log})
	must.Succeed(t, err)
	change(h.relays)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	h.stop = func() {
		cancel()
		all.Wait()
	}
	all.Go(func() { h.board.Run(ctx, h.bus.ReadFrom(1)) })
	all.Go(func() { h.feed.Run(ctx) })
	all.Go(func() { h.relays.Run(ctx) })
	t.Cleanup(func() {
		h.stop()
		h.bus.Close()
	})
	return h
}

func (h *harness) happens(robot device.ID, session string, events ...event.Event) {
	for _, e := range events {
		h.bus.Publish(robot, session, e)
	}
}

// eventually waits until a condition is true.
func (h *harness) eventually(what string, is func() bool) {
	h.t.Helper()
	if !waittest.Until(time.Minute, is) {
		h.t.Fatalf("not within a minute: %s; %+v", what, h.relays.List())
	}
}

// voiceLevel is the loudness of one robot.
type voiceLevel struct {
	mu      sync.Mutex
	level   float64
	changed chan struct{}
}

func newVoiceLevel() *voiceLevel { return &voiceLevel{changed: make(chan struct{})} }

func (v *voiceLevel) Level(string) (float64, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.level, v.changed
}

func (v *voiceLevel) set(level float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.level = level
	close(v.changed)
	v.changed = make(chan struct{})
}

// transcript records the messages of a program.
type transcript struct {
	mu   sync.Mutex
	told []string
}

func (s *transcript) add(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, lines...)
}

// clear removes the messages and returns them.
func (s *transcript) clear() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	return told
}

// all returns the messages, one per line.
func (s *transcript) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, "\n")
}

// last returns the latest message that contains part.
func (s *transcript) last(part string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, message := range slices.Backward(s.told) {
		if strings.Contains(message, part) {
			return message
		}
	}
	return ""
}

// fake is a fake program with a WebSocket server.
type fake struct {
	t       testing.TB
	address string
	answer  func(message []byte) (answers []any)
	greet   func() any // returns the first message to a client; may be nil
	server  *http.Server
	serving sync.WaitGroup
	saying  sync.Mutex
	transcript

	mu    sync.Mutex
	conns []*socket.Conn
	asked string // URL query of the last connection
}

// rawText is an answer that is not JSON.
type rawText string

// hangUp is an answer that ends the connection.
type hangUp struct{}

// newFake returns a running fake that listens at an address, or anywhere if the address is empty.
func newFake(t testing.TB, address string, answer func([]byte) []any) *fake {
	t.Helper()
	return greetingFake(t, address, nil, answer)
}

// greetingFake is like newFake, with a first message.
func greetingFake(t testing.TB, address string, greet func() any, answer func([]byte) []any) *fake {
	t.Helper()
	f := &fake{t: t, address: cmp.Or(address, anywhere), answer: answer, greet: greet}
	f.run()
	t.Cleanup(f.stop)
	return f
}

// anywhere is the loopback address with any free port.
const anywhere = "127.0.0.1:0"

// somewhere calls listen with an address. For anywhere, it chooses a port below the range of ephemeral ports,
// so that the port is still free when a stopped program starts again.
func somewhere(t testing.TB, address string, listen func(address string) error) (at string) {
	t.Helper()
	if address != anywhere {
		must.Succeed(t, listen(address))
		return address
	}
	for range 100 {
		at = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if listen(at) == nil {
			return at
		}
	}
	t.Fatal("no port is free")
	return ""
}

// listen listens at an address over TCP.
func listen(t testing.TB, address string) (l net.Listener) {
	t.Helper()
	somewhere(t, address, func(at string) (err error) {
		l, err = net.Listen("tcp", at)
		return err
	})
	return l
}

// run serves at the fake's address.
func (f *fake) run() {
	f.t.Helper()
	l, server := listen(f.t, f.address), &http.Server{Handler: http.HandlerFunc(f.serve)}
	f.address, f.server = l.Addr().String(), server
	f.serving.Go(func() { _ = server.Serve(l) })
}

// again starts a stopped fake at its address, and clears the transcript.
func (f *fake) again() {
	f.t.Helper()
	f.clear()
	f.mu.Lock()
	f.conns = nil
	f.mu.Unlock()
	f.run()
}

// httpFake is a fake program with an HTTP server.
type httpFake struct {
	*httptest.Server
	t testing.TB
	transcript
}

// start serves on a listener until the test ends.
func (f *httpFake) start(l net.Listener, h http.Handler) {
	f.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	f.Start()
	f.t.Cleanup(f.Server.Close)
}

// stop ends the program and all its connections.
func (f *httpFake) stop() {
	f.CloseClientConnections()
	f.Close()
}

// again starts a stopped program at its address, and clears the transcript.
func (f *httpFake) again() {
	f.t.Helper()
	f.clear()
	f.start(listen(f.t, f.Listener.Addr().String()), f.Config.Handler)
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	c, err := socket.Accept(w, r, socket.Options{MaxMessage: 1 << 20, Subprotocols: []string{"obswebsocket.json"}})
	if err != nil {
		return
	}
	f.mu.Lock()
	f.conns, f.asked = append(f.conns, c), r.URL.RawQuery
	f.mu.Unlock()
	f.serving.Go(func() {
		defer c.Drop()
		if f.greet != nil && !f.say(c, f.greet()) {
			return
		}
		for {
			_, message, err := c.Receive()
			if err != nil {
				return
			}
			f.add(string(message))
			if f.answer == nil {
				continue
			}
			for _, a := range f.answer(message) {
				if !f.say(c, a) {
					return
				}
			}
		}
	})
}

// send sends a message to all connections.
func (f *fake) send(v any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = f.say(c, v)
	}
}

// say sends a message. It returns false if the connection has to end.
func (f *fake) say(c *socket.Conn, v any) bool {
	if _, end := v.(hangUp); end {
		return false
	}
	text, err := json.Marshal(v)
	if raw, is := v.(rawText); is {
		text = []byte(raw)
	}
	f.saying.Lock()
	defer f.saying.Unlock()
	return err == nil && c.SendText(text) == nil
}

// stop kills the program.
func (f *fake) stop() {
	_ = f.server.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		c.Drop()
	}
	f.mu.Unlock()
	f.serving.Wait()
}

func (f *fake) query() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// turn returns the events of a spoken turn up to the first sentence.
func turn() []event.Event {
	return []event.Event{event.RobotOnline{}, event.ListeningStarted{}, event.Heard{Text: "How warm is it?"}, event.ThinkingStarted{},
		event.ToolStatus{ID: "1", Name: "weather", Status: event.ToolRunning}, event.ToolStatus{ID: "1", Name: "weather", Status: event.ToolDone},
		event.Emotion{Name: "happy"}, event.Gesture{Name: "nod", By: event.ByModel}, event.SpeakingStarted{}, event.Said{Text: "It is warm."}}
}
