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

// LLMVTuber connects as Open-LLM-VTuber's client, and reads the server's first messages. query
// begins with "?", or is empty.
func LLMVTuber(t testing.TB, url, query string) *Client {
	t.Helper()
	c := Dial(t, url+"/client-ws"+query, func(message string) string { return normalizeLLMVTuber(t, message) })
	for !strings.Contains(c.Next(), `"control"`) {
	}
	return c
}

// audioMessage is a message to Open-LLM-VTuber's client with a sentence and its sound.
type audioMessage struct {
	Type      string          `json:"type"`
	Sound     *string         `json:"audio"`
	Volumes   []float64       `json:"volumes"`
	Slice     int             `json:"slice_length"`
	Display   json.RawMessage `json:"display_text"`
	Actions   json.RawMessage `json:"actions"`
	Forwarded bool            `json:"forwarded"`
}

// llmVTuberVariables matches the IDs and times in messages to Open-LLM-VTuber's client.
var llmVTuberVariables = regexp.MustCompile(`"client_uid":"[a-z0-9]{26}"|"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)

// normalizeLLMVTuber returns a message to Open-LLM-VTuber's client without IDs and times. If the
// message has a sound, it checks the sound and the volumes, and returns the message with "a WAV"
// and null in their place.
func normalizeLLMVTuber(t testing.TB, message string) string {
	t.Helper()
	var s audioMessage
	if err := json.Unmarshal([]byte(message), &s); err != nil {
		t.Fatalf("%.200s: %v", message, err)
	}
	if s.Type != "audio" || s.Sound == nil {
		return llmVTuberVariables.ReplaceAllStringFunc(message, maskValue)
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
	perVolume := voice.SpeakerRate / 50
	if want := (samples + perVolume - 1) / perVolume; r.Rate != voice.SpeakerRate || len(s.Volumes) != want {
		t.Errorf("%d volumes of %d samples at %d Hz, want %d", len(s.Volumes), samples, r.Rate, want)
	}
	loudest := 0.0
	for _, v := range s.Volumes {
		loudest = max(loudest, v)
		if v < 0 || v > 1 {
			t.Errorf("a volume is %g", v)
		}
	}
	if loudest != 1 {
		t.Errorf("the loudest volume is %g", loudest)
	}
	sound := "a WAV"
	s.Sound, s.Volumes = &sound, nil
	short, err := json.Marshal(s)
	must.Succeed(t, err)
	return string(short)
}

// maskValue replaces the value of a JSON field by "~".
func maskValue(field string) string {
	name, _, _ := strings.Cut(field, ":")
	return name + `:"~"`
}

// AITuber connects as the page of aituber-kit, and reads the server's first message. query begins
// with "?", or is empty.
func AITuber(t testing.TB, url, query string) *Client {
	t.Helper()
	c := Dial(t, url+"/ws"+query, func(message string) string { return normalizeAITuber(t, message) })
	if got := c.Next(); !strings.HasPrefix(got, `{"type":"session.ready","payload":{"protocolVersion":"2","capabilities":["ack","ping",`) {
		t.Fatalf("the first message is %s", got)
	}
	return c
}

// aituberVariables matches the version, IDs and time in messages to aituber-kit.
var aituberVariables = regexp.MustCompile(`"version":"2","id":"msg_[a-z0-9]{26}",|"sessionId":"session_[a-z0-9]{26}","timestamp":"[^"]{24}",`)

// normalizeAITuber checks a message to aituber-kit, and returns it without version, IDs and time.
func normalizeAITuber(t testing.TB, message string) string {
	t.Helper()
	var e struct {
		At string `json:"timestamp"`
	}
	must.Succeed(t, json.Unmarshal([]byte(message), &e))
	at, err := time.Parse(time.RFC3339, e.At)
	if err != nil || time.Since(at).Abs() > time.Minute || len(aituberVariables.FindAllString(message, -1)) != 2 {
		t.Errorf("%s is not a message of the protocol (%v)", message, err)
	}
	return aituberVariables.ReplaceAllString(message, "")
}

// OpenClaw connects as a program for OpenClaw's gateway, and completes the handshake.
func OpenClaw(t testing.TB, url string) *Client {
	t.Helper()
	c, _ := DialOpenClaw(t, url, NormalizeOpenClaw)
	c.Send(Connect("1"))
	if hello := c.Next(); !strings.Contains(hello, `"ok":true,"payload":{"`) {
		t.Fatalf("no hello: %s", hello)
	}
	return c
}

// DialOpenClaw connects as a program for OpenClaw's gateway, reads the challenge, and returns its
// nonce. normalize is as in Dial, and must not be nil.
func DialOpenClaw(t testing.TB, url string, normalize func(string) string) (c *Client, nonce string) {
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
		return normalize(message)
	})
	if first := c.Next(); challenge.Event != "connect.challenge" || nonce == "" {
		t.Fatalf("no challenge: %s", first)
	}
	return c, nonce
}

// Connect returns the connect request of Flawed Avatar. Each change may modify the parameters of the
// request.
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

// openClawVariables matches the parts of messages of OpenClaw's gateway that differ in each run:
// random IDs, times, and the number of an event in the connection.
var openClawVariables = regexp.MustCompile(`"(nonce|connId)":"[A-Z0-9]+"|"(ts|startedAt|endedAt|timestamp|updatedAt|uptimeMs)":\d+|` +
	`"(runId|toolCallId)":"[A-Z0-9]{26}"|,"seq":\d+}$`)

// NormalizeOpenClaw returns a message of OpenClaw's gateway without the parts that differ in each run,
// or "" for a tick.
func NormalizeOpenClaw(message string) string {
	if strings.HasPrefix(message, `{"type":"event","event":"tick"`) {
		return ""
	}
	return openClawVariables.ReplaceAllStringFunc(message, func(part string) string {
		if strings.HasPrefix(part, ",") {
			return "}"
		}
		return maskValue(part)
	})
}
