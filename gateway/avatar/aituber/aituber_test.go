package aituber

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a running server whose agent is chats.Answer.
type harness struct {
	*avatartest.Appliance
	chats *avatartest.Chats
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{chats: &avatartest.Chats{}}
	h.Appliance = avatartest.Start(t, func(f *feed.Feed) avatartest.Server {
		return New(Options{Feed: f, Chat: h.chats, Words: agent.StockWords(), Log: slog.New(slog.DiscardHandler)})
	}, avatartest.Lock())
	return h
}

// open connects a page, and reads the server's first message.
func (h *harness) open(t testing.TB) *avatartest.Client {
	t.Helper()
	return avatartest.AITuber(t, h.URL, "?token="+avatartest.Key)
}

func ack(id, kind string) string {
	return `{"type":"ack","payload":{"requestId":"` + id + `","type":"` + kind + `","status":"ok"},"requestId":"` + id + `"}`
}

func of(kind, id, payload string) string {
	return `{"type":"` + kind + `","payload":` + payload + `,"requestId":"` + id + `"}`
}

// TestTurn checks the messages of a handshake and of turns with faces.
func TestTurn(t *testing.T) {
	h := newHarness(t)
	h.chats.Answer = func(_ context.Context, text string, take func(agent.Reply) error) error {
		return errors.Join(take(agent.Say{Text: text + "?"}), take(agent.Felt{Emotion: agent.Emotion{Name: "crying"}}),
			take(agent.Say{Text: "Oh."}), take(agent.Felt{Emotion: agent.Emotion{Name: "shocked"}}), take(agent.Say{Text: "Three!"}))
	}
	p := h.open(t)
	p.Send(`{"version":"2","id":"m1","type":"session.hello","payload":{"protocolVersion":"2","capabilities":["ack"]}}`)
	p.Send(`{"version":"2","id":"m2","type":"ping","payload":{}}`)
	p.Expect(ack("m1", "session.hello"), of("pong", "m2", "{}"))
	p.Send(`{"version":"2","id":"m3","type":"chat.message","sessionId":"s","payload":{"text":"what time is it","image":"data:image/png;base64,AA"}}`)
	p.Expect(ack("m3", "chat.message"), of("chat.start", "m3", "{}"),
		of("chat.delta", "m3", `{"text":"what time is it?","role":"assistant","emotion":"neutral"}`),
		of("chat.delta", "m3", `{"text":" Oh.","role":"assistant","emotion":"sad"}`),
		of("chat.delta", "m3", `{"text":" Three!","role":"assistant","emotion":"surprised"}`), of("chat.done", "m3", "{}"))
	for _, kind := range []string{"character.message.rendered", "character.speech.start", "character.speech.done", "character.response.done", "x"} {
		p.Send(`{"version":"2","id":"m4","type":"` + kind + `","requestId":"m3","payload":{"requestId":"m3"}}`)
	}
	p.Send(`{"type":"chat","content":"again"}`) // a message of version 1
	p.Expect(`{"type":"ack","payload":{"type":"chat.message","status":"ok"}}`, `{"type":"chat.start","payload":{}}`,
		`{"type":"chat.delta","payload":{"text":"again?","role":"assistant","emotion":"neutral"}}`)
}

// TestCancel checks that control.cancel and another question end a reply, and that the page gets one
// message at the end of each reply.
func TestCancel(t *testing.T) {
	h := newHarness(t)
	h.chats.Answer = func(ctx context.Context, text string, take func(agent.Reply) error) error {
		if err := take(agent.Say{Text: text}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	p := h.open(t)
	ask := func(id string) {
		p.Send(`{"version":"2","id":"` + id + `","type":"chat.message","payload":{"text":"x"}}`)
	}
	begins := func(id string) {
		t.Helper()
		p.Expect(ack(id, "chat.message"), of("chat.start", id, "{}"), of("chat.delta", id, `{"text":"x","role":"assistant","emotion":"neutral"}`))
	}
	ask("m1")
	begins("m1")
	ask("m2")
	p.Expect(of("chat.done", "m1", "{}"))
	begins("m2")
	p.Send(`{"version":"2","id":"m3","type":"control.cancel","requestId":"m2","payload":{}}`)
	p.Expect(ack("m3", "control.cancel"), of("chat.done", "m2", "{}"))
	p.Send(`{"version":"2","id":"m4","type":"control.cancel","payload":{}}`)
	p.Expect(ack("m4", "control.cancel"))
	h.chats.Answer = func(context.Context, string, func(agent.Reply) error) error {
		return &httpserver.Fault{Word: "agent_busy", Sentence: "agent is busy"}
	}
	ask("m5")
	p.Expect(ack("m5", "chat.message"), of("chat.start", "m5", "{}"), of("chat.error", "m5", `{"message":"agent is busy"}`))
}

// TestEndIsSentOnce checks that the end of a reply is sent once, even if the next question follows at
// once.
func TestEndIsSentOnce(t *testing.T) {
	h := newHarness(t)
	h.chats.Answer = func(_ context.Context, text string, _ func(agent.Reply) error) error {
		if text == "wrong" {
			return &httpserver.Fault{Word: "agent_busy", Sentence: "agent is busy"}
		}
		return nil
	}
	p := h.open(t)
	for n := range 100 {
		id, text, end := fmt.Sprint("m", n), "right", of("chat.done", fmt.Sprint("m", n), "{}")
		if n%2 == 1 {
			text, end = "wrong", of("chat.error", id, `{"message":"agent is busy"}`)
		}
		p.Send(`{"version":"2","id":"` + id + `","type":"chat.message","payload":{"text":"` + text + `"}}`)
		p.Expect(ack(id, "chat.message"), of("chat.start", id, "{}"), end)
	}
}

// TestFrames checks the messages for tool calls and notifications.
func TestFrames(t *testing.T) {
	h := newHarness(t)
	p := h.open(t)
	shows := func(text, role string) {
		t.Helper()
		p.Expect(`{"type":"chat.delta","payload":{"text":"` + text + `","role":"` + role + `","emotion":"neutral","legacyType":"end"}}`)
	}
	tool := event.ToolStatus{ID: "c1", Name: "web", Status: event.ToolRunning, Detail: "the weather"}
	h.Bus.Publish("", "vtb_another", tool)
	h.Bus.Publish("", "vtb_aituber", tool)
	shows("web the weather", "console")
	tool.Status = event.ToolDone
	h.Bus.Publish("", "vtb_aituber", tool)
	h.Bus.Publish("", "", event.Notification{ID: "n1", Text: "Tea.", Urgency: "normal"})
	shows("Tea.", "console")
	h.Bus.Publish("", "", event.Notification{ID: "n2", Text: "Fire!", Urgency: "high", Speak: true})
	shows("Fire!", "assistant")
}

// TestGarbage checks that invalid messages are answered with an error, that a too large message ends the
// connection, and that a page that does not read delays neither other pages nor the end of the server.
func TestGarbage(t *testing.T) {
	h := newHarness(t)
	p := h.open(t)
	for _, text := range []string{"", "x", "[]", "{}", `{"version":"3","type":"ping"}`, `{"version":"2","type":1}`,
		`{"version":"2","type":"ping","id":"` + strings.Repeat("x", 300) + `"}`} {
		p.Send(text)
		if got := p.Next(); !strings.HasPrefix(got, `{"type":"ack","payload":{"status":"error","message":"not a message`) {
			t.Errorf("%.40q is answered with %s", text, got)
		}
	}
	if err := p.Conn.SendText(make([]byte, limit.Message+1)); err == nil {
		for err == nil {
			_, _, err = p.Conn.Receive()
		}
	}
	h.chats.Answer = func(ctx context.Context, _ string, take func(agent.Reply) error) error {
		for ctx.Err() == nil {
			if err := take(agent.Say{Text: strings.Repeat("x", 100<<10)}); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	h.open(t).Send(`{"version":"2","id":"m","type":"chat.message","payload":{"text":"x"}}`)
	other := h.open(t)
	other.Send(`{"version":"2","id":"m2","type":"ping","payload":{}}`)
	other.Expect(of("pong", "m2", "{}"))
	h.Stop()
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"version":"2","id":"m","type":"chat.message","payload":{"text":"hello"}}`, `{"type":"chat","content":"hello"}`,
		`{"version":"2","type":"control.cancel"}`, `[]`, `{"version":"2","type":""}`, `{"version":"1","type":"chat"}`, `{"type":"ping"}`,
		`{"version":"2","type":"ping","id":"` + strings.Repeat("x", limit.Name+1) + `"}`, `{"version":"2","type":"chat.message","payload":{"text":7}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parse(data)
		if err == nil && (m.kind == "" || len(m.id) > limit.Name) || err != nil && (m != message{} || !errors.Is(err, errMessage)) {
			t.Errorf("%q is %v, %v", data, m, err)
		}
	})
}
