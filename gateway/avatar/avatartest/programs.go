package avatartest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
)

// LLMVTuber connects as Open-LLM-VTuber's client, and reads the greeting. query begins with
// "?", or is empty.
func LLMVTuber(t testing.TB, url, query string) *Client {
	t.Helper()
	c := Dial(t, url+"/client-ws"+query, func(message string) string { return speech(t, message) })
	for !strings.Contains(c.Next(), `"control"`) {
	}
	return c
}

// spoken is a message to Open-LLM-VTuber's client.
type spoken struct {
	Type      string          `json:"type"`
	Sound     *string         `json:"audio"`
	Volumes   []float64       `json:"volumes"`
	Slice     int             `json:"slice_length"`
	Display   json.RawMessage `json:"display_text"`
	Actions   json.RawMessage `json:"actions"`
	Forwarded bool            `json:"forwarded"`
}

// ofEachClient matches the ids and times in its messages.
var ofEachClient = regexp.MustCompile(`"client_uid":"[a-z0-9]{26}"|"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)

// speech checks a message's sound and volumes, and returns the message without them.
func speech(t testing.TB, message string) string {
	t.Helper()
	var s spoken
	if err := json.Unmarshal([]byte(message), &s); err != nil {
		t.Fatalf("%.200s: %v", message, err)
	}
	if s.Type != "audio" || s.Sound == nil {
		return ofEachClient.ReplaceAllStringFunc(message, unnamed)
	}
	wav, err := base64.StdEncoding.DecodeString(*s.Sound)
	must.Succeed(t, err)
	r, err := voice.NewWAVReader(strings.NewReader(string(wav)))
	must.Succeed(t, err)
	samples, pcm := 0, make([]int16, 4096)
	for {
		n, err := r.Read(pcm)
		if err != nil {
			break
		}
		samples += n
	}
	of := voice.SpeakerRate / 50
	if want := (samples + of - 1) / of; r.Rate != voice.SpeakerRate || len(s.Volumes) != want {
		t.Errorf("%d volumes of %d samples at %d Hz, want %d", len(s.Volumes), samples, r.Rate, want)
	}
	most := 0.0
	for _, v := range s.Volumes {
		most = max(most, v)
		if v < 0 || v > 1 {
			t.Errorf("a volume is %g", v)
		}
	}
	if most != 1 {
		t.Errorf("the loudest volume is %g", most)
	}
	sound := "a WAV"
	s.Sound, s.Volumes = &sound, nil
	short, err := json.Marshal(s)
	must.Succeed(t, err)
	return string(short)
}

// unnamed replaces the value of a JSON field.
func unnamed(field string) string {
	name, _, _ := strings.Cut(field, ":")
	return name + `:"~"`
}

// AITuber connects as the page of aituber-kit, and reads the greeting. query begins with
// "?", or is empty.
func AITuber(t testing.TB, url, query string) *Client {
	t.Helper()
	c := Dial(t, url+"/ws"+query, func(message string) string { return envelope(t, message) })
	if got := c.Next(); !strings.HasPrefix(got, `{"type":"session.ready","payload":{"protocolVersion":"2","capabilities":["ack","ping",`) {
		t.Fatalf("the first message is %s", got)
	}
	return c
}

// ofEachEnvelope matches what is different in each envelope.
var ofEachEnvelope = regexp.MustCompile(`"version":"2","id":"msg_[a-z0-9]{26}",|"sessionId":"session_[a-z0-9]{26}","timestamp":"[^"]{24}",`)

// envelope checks a message, and returns it without what is different in each.
func envelope(t testing.TB, message string) string {
	t.Helper()
	var e struct {
		At string `json:"timestamp"`
	}
	must.Succeed(t, json.Unmarshal([]byte(message), &e))
	at, err := time.Parse(time.RFC3339, e.At)
	if err != nil || time.Since(at).Abs() > time.Minute || len(ofEachEnvelope.FindAllString(message, -1)) != 2 {
		t.Errorf("%s is no envelope of the protocol (%v)", message, err)
	}
	return ofEachEnvelope.ReplaceAllString(message, "")
}

// OpenClaw connects as a program for OpenClaw's gateway.
func OpenClaw(t testing.TB, url string) *Client {
	t.Helper()
	c, _ := Challenged(t, url, Steady)
	c.Send(Connect("1"))
	if hello := c.Next(); !strings.Contains(hello, `"ok":true,"payload":{"`) {
		t.Fatalf("no hello: %s", hello)
	}
	return c
}

// Challenged connects as a program for OpenClaw's gateway, and reads the challenge.
func Challenged(t testing.TB, url string, plain func(string) string) (c *Client, nonce string) {
	t.Helper()
	var challenge struct {
		Event   string
		Payload struct{ Nonce string }
	}
	c = Dial(t, url+"/", func(message string) string {
		if nonce == "" {
			if err := json.Unmarshal([]byte(message), &challenge); err != nil {
				t.Fatalf("%s: %v", message, err)
			}
			nonce = challenge.Payload.Nonce
		}
		return plain(message)
	})
	if first := c.Next(); challenge.Event != "connect.challenge" || nonce == "" {
		t.Fatalf("no challenge: %s", first)
	}
	return c, nonce
}

// Connect returns the connect request of Flawed Avatar with changes.
func Connect(id string, change ...func(params map[string]any)) string {
	params := map[string]any{"minProtocol": 3, "maxProtocol": 3,
		"client": map[string]any{"id": "gateway-client", "displayName": "Flawed Avatar", "version": "0.2.2", "platform": "linux", "mode": "backend"},
		"caps":   []string{}, "role": "operator", "scopes": []string{"operator.admin"}}
	for _, c := range change {
		c(params)
	}
	text, err := json.Marshal(map[string]any{"type": "req", "id": id, "method": "connect", "params": params})
	if err != nil {
		panic(fmt.Sprintf("a test's parameters: %v", err))
	}
	return string(text)
}

// ofEachRun matches what differs between two runs: random names, times, and the number of
// events of all kinds before.
var ofEachRun = regexp.MustCompile(`"(nonce|connId)":"[A-Z0-9]+"|"(ts|startedAt|endedAt|timestamp|updatedAt|uptimeMs)":\d+|` +
	`"(runId|toolCallId)":"[A-Z0-9]{26}"|,"seq":\d+}$`)

// Steady returns a message of OpenClaw's gateway without what differs between two runs, or ""
// for a tick.
func Steady(message string) string {
	if strings.HasPrefix(message, `{"type":"event","event":"tick"`) {
		return ""
	}
	return ofEachRun.ReplaceAllStringFunc(message, func(part string) string {
		if strings.HasPrefix(part, ",") {
			return "}"
		}
		return unnamed(part)
	})
}
