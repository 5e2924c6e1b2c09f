package llmvtuber

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/gateway/avatar/avatartest"
	"perch/limit"
	"perch/must"
	"perch/voice"
)

// FuzzConversation sends the lines of the script as messages. It checks that the server sends only types
// of messages that the client knows, and that each request and the last heartbeat get an answer.
func FuzzConversation(f *testing.F) {
	mic := `{"type":"mic-audio-data","audio":[0,0.5,-1]}` + "\n" + `{"type":"mic-audio-end","images":[]}`
	for _, seed := range []string{
		`{"type":"text-input","text":"hello","images":[{"source":"camera","data":"AAAA","mime_type":"image/jpeg"}]}` + "\n" +
			`{"type":"interrupt-signal","text":"Y"}` + "\n" + `{"type":"text-input","text":"fail"}` + "\n" + `{"type":"frontend-playback-complete"}`,
		mic + "\n" + `{"type":"heartbeat"}` + "\n" + mic + "\n" + `{"type":"mic-audio-end"}`,
		`{"type":"mic-audio-data","audio":[1e38,-1e38,null]}` + "\n" +
			`{"type":"mic-audio-data","audio":[1e99]}` + "\n" +
			`{"type":"mic-audio-end"}`,
		strings.Join([]string{`{"type":"fetch-backgrounds"}`, `{"type":"fetch-configs"}`, `{"type":"fetch-history-list"}`,
			`{"type":"create-new-history"}`, `{"type":"fetch-and-set-history","history_uid":"x"}`, `{"type":"delete-history","history_uid":"\u0000"}`,
			`{"type":"request-init-config"}`,
			`{"type":"request-group-info"}`, `{"type":"switch-config","file":"x"}`, `{"type":"add-client-to-group","invitee_uid":"x"}`}, "\n"),
		`{"type":"ai-speak-signal"}` + "\n" + `{"type":"audio-play-start","display_text":{"text":"x"},"forwarded":true}` + "\n" +
			`{}` + "\n" + `[]` + "\n" + `{"type":1}`,
		`{"type":"text-input","text":"a"}` + "\n" + `{"type":"text-input","text":"b"}` + "\n" + mic + "\n" + `{"type":"frontend-playback-complete"}`,
		`{"type":"delete-history","history_uid":"` + strings.Repeat("x", limit.Name+1) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	h := newHarness(f, func(o *Options) {
		o.Synthesizer = loud(voice.SpeakerRate / 100)
		o.Recognizer = recognizer(func(pcm []int16) (voice.Transcript, error) {
			switch len(pcm) % 3 {
			case 0:
				return voice.Transcript{Text: "hello"}, nil
			case 1:
				return voice.Transcript{Refused: true}, nil
			}
			return voice.Transcript{}, errBroken
		})
	})
	h.chats.Answer = func(_ context.Context, text string, take func(agent.Reply) error) error {
		if text == "fail" {
			return errBroken
		}
		return errors.Join(take(agent.Felt{Emotion: agent.Emotion{Name: "happy"}}), take(agent.Say{Text: text}), take(agent.Say{}))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		conn := avatartest.Redial(t, h.URL+"/client-ws?token="+avatartest.Key)
		defer conn.Drop()
		late := time.AfterFunc(20*time.Second, conn.Drop) // ends Receive if the server does not answer
		defer late.Stop()
		told := map[string]int{}
		hear := func(until func() bool) {
			for !until() {
				_, text, err := conn.Receive()
				var m textMessage
				if err != nil || json.Unmarshal(text, &m) != nil {
					t.Fatalf("%.200s: %v", text, err)
				}
				if !slices.Contains(knownMessages(), m.Type) {
					t.Fatalf("the client knows no message %.200s", text)
				}
				told[m.Type+" "+m.Text]++
				told[m.Type]++
			}
		}
		hear(func() bool { return told["control start-mic"] == 1 })
		beats, wrong, requests := 1, 0, 0
		for n, line := range bytes.Split(script, []byte("\n")) {
			if n == 20 || len(line) > 64<<10 {
				break
			}
			must.Succeed(t, conn.SendText(line))
			switch m, err := parse(line); {
			case err != nil:
				wrong++
			case m.kind == "heartbeat":
				beats++
				requests++
			case (&client{server: New(Options{})}).responseTo(m) != nil:
				requests++
			}
		}
		before := told["set-model-and-conf"] + told["group-update"]
		must.Succeed(t, conn.SendText([]byte(`{"type":"heartbeat"}`)))
		hear(func() bool { return told["heartbeat-ack"] == beats })
		answers := -before
		for _, kind := range []string{"heartbeat-ack", "set-model-and-conf", "group-update", "background-files", "config-files", "history-list",
			"history-data", "new-history-created", "history-deleted", "error"} {
			answers += told[kind]
		}
		if answers < requests+1+wrong {
			t.Fatalf("%d answers to %d requests and %d messages that are none: %v", answers, requests+1, wrong, told)
		}
		if told[newControl("conversation-chain-end").String()] > told[newControl("conversation-chain-start").String()] {
			t.Fatalf("more turns end than begin: %v", told)
		}
	})
}

// knownMessages returns the types of messages that the client handles.
func knownMessages() []string {
	return []string{"control", "set-model-and-conf", "full-text", "config-files", "background-files", "audio", "history-data", "new-history-created",
		"history-deleted", "history-list", "user-input-transcription", "error", "group-update", "backend-synth-complete", "force-new-message",
		"tool_call_status", "heartbeat-ack"}
}

// String returns the key under which FuzzConversation counts the message.
func (l textMessage) String() string { return l.Type + " " + l.Text }
