package aituber

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/feed"
	"perch/agent/notice"
	"perch/event"
	"perch/gateway/door"
	"perch/socket"
	"perch/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "key-of-the-skins"

// chats are the skins' talks with an agent that has a script.
type chats struct {
	answer func(ctx context.Context, text string, take func(agent.Reply) error) error
}

func (*chats) SessionOf(talk string) (string, error) { return "vtb_" + talk, nil }

func (c *chats) Chat(ctx context.Context, _, _, text string, take func(agent.Reply) error) error {
	return c.answer(ctx, text, take)
}

// harness is the door, served over loopback.
type harness struct {
	bus   *event.Bus
	chats *chats
	url   string
	stop  func() // once
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{bus: event.NewBus(), chats: &chats{}}
	log, board := slog.New(slog.DiscardHandler), agent.NewBoard()
	shown := feed.New(feed.Options{Bus: h.bus, Board: board, Notices: notice.NewStore(&storetest.Table[notice.Notification]{}),
		Words: agent.StockWords(), Log: log})
	d := New(Options{Feed: shown, Chat: h.chats, Words: agent.StockWords(), Log: log})
	engine, err := door.NewEngine(log)
	if err != nil {
		t.Fatal(err)
	}
	d.Routes(engine.Group("", door.Guard(door.InUpgrade(true, door.NewKey(secret, "skins.key", "").Check))))
	server := httptest.NewServer(engine)
	h.url = "ws" + strings.TrimPrefix(server.URL, "http") + "/ws"
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { board.Run(ctx, h.bus.ReadFrom(1)) })
	wg.Go(func() { shown.Run(ctx) })
	wg.Go(func() { d.Run(ctx) })
	h.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		server.Close()
		h.bus.Close()
	})
	t.Cleanup(h.stop)
	return h
}

// page is a client.
type page struct {
	t    testing.TB
	conn *socket.Conn
}

// open is a page that the door has spoken to.
func (h *harness) open(t testing.TB) *page {
	t.Helper()
	conn, err := socket.Dial(context.Background(), h.url+"?token="+secret, socket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Drop)
	p := &page{t, conn}
	if got := p.next(); !strings.HasPrefix(got, `{"type":"session.ready","payload":{"protocolVersion":"2","capabilities":["ack","ping",`) {
		t.Fatalf("the first message is %s", got)
	}
	return p
}

func (p *page) send(text string) {
	p.t.Helper()
	if err := p.conn.SendText([]byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// ofEach are what every envelope has, and no two have alike.
var ofEach = regexp.MustCompile(`"version":"2","id":"msg_[a-z0-9]{26}",|"sessionId":"session_[a-z0-9]{26}","timestamp":"[^"]{24}",`)

// next is the next message without what no two have alike.
func (p *page) next() string {
	p.t.Helper()
	isText, data, err := p.conn.Receive()
	if err != nil || !isText {
		p.t.Fatalf("no message came: text %t (%v)", isText, err)
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		p.t.Fatal(err)
	}
	if at, err := time.Parse(time.RFC3339, e.At); err != nil || time.Since(at).Abs() > time.Minute || len(ofEach.FindAll(data, -1)) != 2 {
		p.t.Errorf("%s is no envelope of the protocol (%v)", data, err)
	}
	return ofEach.ReplaceAllString(string(data), "")
}

func (p *page) expect(want ...string) {
	p.t.Helper()
	for i, w := range want {
		if got := p.next(); got != w {
			p.t.Fatalf("message %d is\n%s, want\n%s", i, got, w)
		}
	}
}

func ack(id, kind string) string {
	return `{"type":"ack","payload":{"requestId":"` + id + `","type":"` + kind + `","status":"ok"},"requestId":"` + id + `"}`
}

func of(kind, id, payload string) string {
	return `{"type":"` + kind + `","payload":` + payload + `,"requestId":"` + id + `"}`
}

// TestATurn is a whole one: what the page says, and what it is told, with its faces, and
// how far it has come with speaking.
func TestATurn(t *testing.T) {
	h := newHarness(t)
	h.chats.answer = func(_ context.Context, text string, take func(agent.Reply) error) error {
		return errors.Join(take(agent.Say{Text: text + "?"}), take(agent.Felt{Emotion: agent.Emotion{Name: "crying"}}),
			take(agent.Say{Text: "Oh."}), take(agent.Felt{Emotion: agent.Emotion{Name: "shocked"}}), take(agent.Say{Text: "Three!"}))
	}
	p := h.open(t)
	p.send(`{"version":"2","id":"m1","type":"session.hello","payload":{"protocolVersion":"2","capabilities":["ack"]}}`)
	p.send(`{"version":"2","id":"m2","type":"ping","payload":{}}`)
	p.expect(ack("m1", "session.hello"), of("pong", "m2", "{}"))
	p.send(`{"version":"2","id":"m3","type":"chat.message","sessionId":"s","payload":{"text":"what time is it","image":"data:image/png;base64,AA"}}`)
	p.expect(ack("m3", "chat.message"), of("chat.start", "m3", "{}"),
		of("chat.delta", "m3", `{"text":"what time is it?","role":"assistant","emotion":"neutral"}`),
		of("chat.delta", "m3", `{"text":" Oh.","role":"assistant","emotion":"sad"}`),
		of("chat.delta", "m3", `{"text":" Three!","role":"assistant","emotion":"surprised"}`), of("chat.done", "m3", "{}"))
	for _, kind := range []string{"character.message.rendered", "character.speech.start", "character.speech.done", "character.response.done", "x"} {
		p.send(`{"version":"2","id":"m4","type":"` + kind + `","requestId":"m3","payload":{"requestId":"m3"}}`)
	}
	p.send(`{"type":"chat","content":"again"}`) // as in version 1
	p.expect(`{"type":"ack","payload":{"type":"chat.message","status":"ok"}}`, `{"type":"chat.start","payload":{}}`,
		`{"type":"chat.delta","payload":{"text":"again?","role":"assistant","emotion":"neutral"}}`)
}

// TestCancel ends an answer, and so does another question; the page sees the end of each.
func TestCancel(t *testing.T) {
	h := newHarness(t)
	h.chats.answer = func(ctx context.Context, text string, take func(agent.Reply) error) error {
		if err := take(agent.Say{Text: text}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	p := h.open(t)
	ask := func(id string) {
		p.send(`{"version":"2","id":"` + id + `","type":"chat.message","payload":{"text":"x"}}`)
	}
	begins := func(id string) {
		t.Helper()
		p.expect(ack(id, "chat.message"), of("chat.start", id, "{}"), of("chat.delta", id, `{"text":"x","role":"assistant","emotion":"neutral"}`))
	}
	ask("m1")
	begins("m1")
	ask("m2")
	p.expect(of("chat.done", "m1", "{}"))
	begins("m2")
	p.send(`{"version":"2","id":"m3","type":"control.cancel","requestId":"m2","payload":{}}`)
	p.expect(ack("m3", "control.cancel"), of("chat.done", "m2", "{}"))
	p.send(`{"version":"2","id":"m4","type":"control.cancel","payload":{}}`)
	p.expect(ack("m4", "control.cancel"))
	h.chats.answer = func(context.Context, string, func(agent.Reply) error) error {
		return &door.Fault{Word: "agent_busy", Sentence: "agent is busy"}
	}
	ask("m5")
	p.expect(ack("m5", "chat.message"), of("chat.start", "m5", "{}"), of("chat.error", "m5", `{"message":"agent is busy"}`))
}

// TestWhatShows: tools of this talk, and notifications, spoken where they are to be.
func TestWhatShows(t *testing.T) {
	h := newHarness(t)
	p := h.open(t)
	shows := func(text, role string) {
		t.Helper()
		p.expect(`{"type":"chat.delta","payload":{"text":"` + text + `","role":"` + role + `","emotion":"neutral","legacyType":"end"}}`)
	}
	tool := event.ToolStatus{ID: "c1", Name: "web", Status: event.ToolRunning, Detail: "the weather"}
	h.bus.Publish("", "vtb_another", tool)
	h.bus.Publish("", "vtb_aituber", tool)
	shows("web the weather", "console")
	tool.Status = event.ToolDone
	h.bus.Publish("", "vtb_aituber", tool)
	h.bus.Publish("", "", event.Notification{ID: "n1", Text: "Tea.", Urgency: "normal"})
	shows("Tea.", "console")
	h.bus.Publish("", "", event.Notification{ID: "n2", Text: "Fire!", Urgency: "high", Speak: true})
	shows("Fire!", "assistant")
}

// TestGarbage costs an ack that says so, and too much of it the connection. The door ends
// with those that do not read.
func TestGarbage(t *testing.T) {
	h := newHarness(t)
	p := h.open(t)
	for _, text := range []string{"", "x", "[]", "{}", `{"version":"3","type":"ping"}`, `{"version":"2","type":1}`,
		`{"version":"2","type":"ping","id":"` + strings.Repeat("x", 300) + `"}`} {
		p.send(text)
		if got := p.next(); !strings.HasPrefix(got, `{"type":"ack","payload":{"status":"error","message":"that is no message`) {
			t.Errorf("%.40q is answered with %s", text, got)
		}
	}
	if err := p.conn.SendText(make([]byte, mostMessage+1)); err == nil {
		for err == nil {
			_, _, err = p.conn.Receive()
		}
	}
	h.chats.answer = func(ctx context.Context, _ string, take func(agent.Reply) error) error {
		for ctx.Err() == nil {
			if err := take(agent.Say{Text: strings.Repeat("x", 100<<10)}); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	h.open(t).send(`{"version":"2","id":"m","type":"chat.message","payload":{"text":"x"}}`)
	other := h.open(t)
	other.send(`{"version":"2","id":"m2","type":"ping","payload":{}}`)
	other.expect(of("pong", "m2", "{}"))
	h.stop()
}

// FuzzParse reads what anybody may send.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"version":"2","id":"m","type":"chat.message","payload":{"text":"hello"}}`, `{"type":"chat","content":"hello"}`,
		`{"version":"2","type":"control.cancel"}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parse(data)
		if err == nil && (m.kind == "" || len(m.id) > mostID) || err != nil && (m != message{} || !errors.Is(err, errMessage)) {
			t.Errorf("%q is %v, %v", data, m, err)
		}
	})
}
