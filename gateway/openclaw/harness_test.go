package openclaw

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/feed"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/door"
	"perch/socket"
	"perch/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const robotA device.ID = "a0b1c2d3e4f5"

// scripted has texts answered by a script, under the session of their talk.
type scripted struct {
	bus *event.Bus

	mu     sync.Mutex
	texts  []string // "talk character: text"
	answer func(ctx context.Context, session string, take func(agent.Reply) error) error
}

func (s *scripted) SessionOf(talk string) (string, error) {
	if robot, is := strings.CutPrefix(talk, feed.OfRobot); is {
		if robot != string(robotA) {
			return "", &door.Fault{Word: "unknown_robot", Sentence: "there is no such robot", HTTP: 404}
		}
		return ofChat + robot, nil
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

// hello is a turn with a tool and two sentences.
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
	return append([]string(nil), s.texts...)
}

// cast are characters.
type cast []string

func (c cast) Names() []string { return c }

func (c cast) Known(name string) bool {
	for _, one := range c {
		if one == name {
			return true
		}
	}
	return false
}

// harness is the door with a bus and a feed behind it, served over loopback.
type harness struct {
	t     testing.TB
	bus   *event.Bus
	talks *scripted
	door  *Door
	url   string
	stop  func()
}

func newHarness(t testing.TB, change ...func(*Options, *paces)) *harness {
	t.Helper()
	bus, board, log := event.NewBus(), agent.NewBoard(), slog.New(slog.DiscardHandler)
	words, err := agent.NewWords(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := feed.New(feed.Options{Board: board, Bus: bus, Notices: notice.NewStore(&storetest.Table[notice.Notification]{}), Words: words, Log: log})
	h := &harness{t: t, bus: bus, talks: &scripted{bus: bus}}
	o, p := Options{Feed: f, Talks: h.talks, Characters: cast{"leo"}, Name: "Chan", Version: "1.2.3", Log: log}, usualPaces()
	for _, c := range change {
		c(&o, &p)
	}
	h.door = New(o)
	h.door.paces = p
	engine, err := door.NewEngine(log)
	if err != nil {
		t.Fatal(err)
	}
	h.door.Routes(engine)
	server := httptest.NewServer(engine)
	h.url = "ws" + strings.TrimPrefix(server.URL, "http")
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { board.Run(ctx, bus.ReadFrom(1)) })
	all.Go(func() { f.Run(ctx) })
	all.Go(func() { h.door.Run(ctx) })
	h.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		server.Close()
		bus.Close()
	})
	t.Cleanup(h.stop)
	return h
}

func (h *harness) happens(robot device.ID, session string, events ...event.Event) {
	for _, e := range events {
		h.bus.Publish(robot, session, e)
	}
}

// client is a program of OpenClaw's. It reads frames as they come.
type client struct {
	t     testing.TB
	conn  *socket.Conn
	nonce string
}

// told is a frame of the door's.
type told struct {
	Type, ID, Event string
	OK              bool
	Seq             int
	Payload         json.RawMessage
	Error           *failure

	whole string
}

// dial opens a connection, and takes the challenge.
func (h *harness) dial() *client {
	h.t.Helper()
	conn, err := socket.Dial(context.Background(), h.url+"/", socket.Options{MaxMessage: 1 << 20})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(conn.Drop)
	c := &client{t: h.t, conn: conn}
	first := c.next()
	var challenge struct{ Nonce string }
	if err := json.Unmarshal(first.Payload, &challenge); err != nil || first.Event != "connect.challenge" || challenge.Nonce == "" {
		h.t.Fatalf("no challenge: %s", first.whole)
	}
	c.nonce = challenge.Nonce
	return c
}

// connect is what Flawed Avatar sends, with what is changed of it.
func (c *client) connect(id string, change ...func(map[string]any)) string {
	params := map[string]any{"minProtocol": 3, "maxProtocol": 3,
		"client": map[string]any{"id": "gateway-client", "displayName": "Flawed Avatar", "version": "0.2.2", "platform": "linux", "mode": "backend"},
		"caps":   []string{}, "role": "operator", "scopes": []string{"operator.admin"}}
	for _, c := range change {
		c(params)
	}
	return string(encode(map[string]any{"type": "req", "id": id, "method": "connect", "params": params}))
}

// join opens a connection that has connected.
func (h *harness) join(change ...func(map[string]any)) *client {
	h.t.Helper()
	c := h.dial()
	c.send(c.connect("1", change...))
	if hello := c.next(); !hello.OK || !strings.Contains(hello.whole, `"type":"hello-ok"`) {
		h.t.Fatalf("no hello: %s", hello.whole)
	}
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.conn.SendText([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) call(id, method, params string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"type":"req","id":%q,"method":%q,"params":%s}`, id, method, params))
}

func (c *client) next() told {
	c.t.Helper()
	isText, text, err := c.conn.Receive()
	if err != nil || !isText {
		c.t.Fatalf("no frame came: text %t (%v)", isText, err)
	}
	f := told{whole: string(text)}
	if err := json.Unmarshal(text, &f); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	return f
}

// answer is the answer to a call; events before it are left out.
func (c *client) answer(id string) told {
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

// events are those until one that holds a text.
func (c *client) events(last string) (all []told) {
	c.t.Helper()
	for {
		f := c.next()
		all = append(all, f)
		if strings.Contains(f.whole, last) {
			return all
		}
	}
}

// gone waits for the end of the connection.
func (c *client) gone() {
	c.t.Helper()
	for {
		if _, _, err := c.conn.Receive(); err == io.EOF {
			return
		} else if err != nil {
			c.t.Fatal(err)
		}
	}
}

// someone is a device.
type someone struct{ key ed25519.PrivateKey }

func newDevice(seed byte) someone {
	return someone{ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+seed)), ed25519.SeedSize)))}
}

func (d someone) public() ed25519.PublicKey { return d.key.Public().(ed25519.PublicKey) }

func (d someone) id() string {
	sum := sha256.Sum256(d.public())
	return hex.EncodeToString(sum[:])
}

// signs is the device's proof in what Flawed Avatar sends. format is of the payload: it
// takes the id and the time.
func (d someone) signs(nonce, format string) func(map[string]any) {
	return func(params map[string]any) {
		at := time.Now().UnixMilli()
		payload := strings.NewReplacer("ID", d.id(), "AT", fmt.Sprint(at), "NONCE", nonce).Replace(format)
		proof := map[string]any{"id": d.id(), "publicKey": base64.RawURLEncoding.EncodeToString(d.public()),
			"signature": base64.RawURLEncoding.EncodeToString(ed25519.Sign(d.key, []byte(payload))), "signedAt": at}
		if nonce != "" {
			proof["nonce"] = nonce
		}
		params["device"] = proof
	}
}
