package aituber

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/gateway/avatar/avatartest"
	"perch/limit"
	"perch/must"
)

// FuzzConversation sends the lines of the script as messages. It checks that each message that needs an
// answer gets one, and that there are not more ends of replies than questions.
func FuzzConversation(f *testing.F) {
	ask := func(id, text string) string {
		return `{"version":"2","id":"` + id + `","type":"chat.message","payload":{"text":"` + text + `","image":"data:image/png;base64,AA"}}`
	}
	for _, seed := range []string{
		`{"version":"2","id":"h","type":"session.hello","payload":{"protocolVersion":"2","capabilities":["ack"]}}` + "\n" +
			ask("m", "hello"),
		ask("m", "hello") + "\n" + `{"version":"2","id":"c","type":"control.cancel","payload":{}}` + "\n" +
			ask("n", "fail") + "\n" + ask("o", "busy"),
		`{"type":"chat","content":"hello"}` + "\n" + `{"type":"chat","content":7}` + "\n" + `{"version":"1","type":"chat","content":"x"}`,
		`{"version":"2","type":"ping"}` + "\n" + `{"version":"2","id":"p","type":"ping","payload":[]}` + "\n" + `{"version":"2","type":""}`,
		`{"version":"2","id":"s","type":"character.speech.start","payload":{"requestId":"m"}}` + "\n" + `[]` + "\n" + `{` + "\n" + `null`,
		`{"version":"2","type":"ping","id":"` + strings.Repeat("x", limit.Name+1) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	h := newHarness(f)
	h.chats.Answer = func(_ context.Context, text string, take func(agent.Reply) error) error {
		if text == "fail" {
			return errors.New("broken")
		}
		return errors.Join(take(agent.Say{Text: text}), take(agent.Felt{Emotion: agent.Emotion{Name: "sad"}}), take(agent.Say{}))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		conn := avatartest.Redial(t, h.URL+"/ws?token="+avatartest.Key)
		defer conn.Drop()
		late := time.AfterFunc(20*time.Second, conn.Drop) // ends Receive if the server does not answer
		defer late.Stop()
		acks, pongs := 0, 1
		for n, line := range bytes.Split(script, []byte("\n")) {
			if n == 20 || len(line) > 64<<10 {
				break
			}
			must.Succeed(t, conn.SendText(line))
			switch m, err := parse(line); {
			case err != nil, m.kind == typeHello, m.kind == typeCancel, m.kind == typeChat:
				acks++
			case m.kind == typePing:
				pongs++
			}
		}
		must.Succeed(t, conn.SendText([]byte(`{"version":"2","id":"last","type":"ping","payload":{}}`)))
		told := map[string]int{}
		for told[typePong] < pongs {
			_, text, err := conn.Receive()
			var e envelope
			if err != nil || json.Unmarshal(text, &e) != nil || e.Version != version || e.ID == "" || e.Session == "" {
				t.Fatalf("%.200s: %v", text, err)
			}
			told[e.Type]++
		}
		if told[typeReady] != 1 || told[typeAck] != acks {
			t.Fatalf("%d acks, want %d: %v", told[typeAck], acks, told)
		}
		if told[typeDone]+told[typeError] > acks || told[typeStart] > acks {
			t.Fatalf("more questions end than were asked: %v", told)
		}
	})
}
