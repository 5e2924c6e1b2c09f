package xiaozhi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"perch/device/xiaozhi"
	"perch/must"
)

// fromRobot lists messages from robots, as JSON and as values. Tests encode the values and parse the
// JSON; the fuzz tests use the JSON as seeds.
var fromRobot = []struct {
	name    string
	text    string
	message xiaozhi.FromRobot
}{
	{"hello",
		`{"type":"hello","version":1,"features":{"mcp":true},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`,
		xiaozhi.Hello{Version: 1, Features: xiaozhi.Features{MCP: true}, Transport: "websocket", Audio: xiaozhi.AudioParams{SampleRate: 16000,
			FrameDuration: 60}}},
	{"hello with echo cancellation",
		`{"type":"hello","version":2,"features":{"aec":true,"mcp":true,"glyph_push":true},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`,
		xiaozhi.Hello{Version: 2, Features: xiaozhi.Features{AEC: true, MCP: true, GlyphPush: true}, Transport: "websocket",
			Audio: xiaozhi.AudioParams{SampleRate: 16000, FrameDuration: 60}}},
	{"auto", `{"session_id":"s","type":"listen","state":"start","mode":"auto"}`, xiaozhi.ListenStart{Mode: xiaozhi.Auto}},
	{"manual", `{"session_id":"s","type":"listen","state":"start","mode":"manual"}`, xiaozhi.ListenStart{Mode: xiaozhi.Manual}},
	{"realtime", `{"session_id":"s","type":"listen","state":"start","mode":"realtime"}`, xiaozhi.ListenStart{Mode: xiaozhi.Realtime}},
	{"stop", `{"session_id":"s","type":"listen","state":"stop"}`, xiaozhi.ListenStop{}},
	{"detect", `{"session_id":"s","type":"listen","state":"detect","text":"Hi, Stack Chan"}`, xiaozhi.ListenDetect{Text: "Hi, Stack Chan"}},
	{"goodbye", `{"session_id":"s","type":"goodbye"}`, xiaozhi.Goodbye{Session: "s"}},
	{"typed", `{"session_id":"s","type":"listen","state":"detect","text":"hello","source":"text"}`, xiaozhi.ListenDetect{Text: "hello", Typed: true}},
	{"abort", `{"session_id":"s","type":"abort"}`, xiaozhi.Abort{}},
	{"abort by wake word", `{"session_id":"s","type":"abort","reason":"wake_word_detected"}`, xiaozhi.Abort{Reason: xiaozhi.WakeWord}},
	{"mcp", `{"session_id":"s","type":"mcp","payload":{"jsonrpc":"2.0","id":3,"result":{}}}`,
		xiaozhi.FromMCP{Payload: json.RawMessage(`{"jsonrpc":"2.0","id":3,"result":{}}`)}},
	{"event", `{"session_id":"s","type":"event","name":"sound_event","data":{"direction":"left"}}`, xiaozhi.Event{Name: "sound_event",
		Data: json.RawMessage(`{"direction":"left"}`)}},
}

// toRobot lists messages to robots, as JSON and as values.
var toRobot = []struct {
	name    string
	text    string
	message xiaozhi.ToRobot
}{
	{"welcome",
		`{"session_id":"s","type":"hello","transport":"websocket","audio_params":{"format":"opus","sample_rate":24000,"channels":1,"frame_duration":60}}`,
		xiaozhi.Welcome{Session: "s", Audio: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60}}},
	{"welcome over UDP",
		`{"session_id":"s","type":"hello","transport":"udp","audio_params":{"format":"opus","sample_rate":24000,"channels":1,"frame_duration":60},` +
			`"udp":{"server":"192.168.1.20","port":8003,"key":"2b7e151628aed2a6abf7158809cf4f3c","nonce":"01000000deadbeef0000000000000000"}}`,
		xiaozhi.Welcome{Session: "s", Audio: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60},
			UDP: &xiaozhi.UDP{Server: "192.168.1.20", Port: 8003, Key: talkKey, Nonce: talkNonce}}},
	{"goodbye", `{"session_id":"s","type":"goodbye"}`, xiaozhi.Goodbye{Session: "s"}},
	{"notify", `{"session_id":"s","type":"notify","audio_url":"http://perch.local:8003/xiaozhi/notify/t.ogg","subtitles":[{"start_ms":0,"text":"Tea."}]}`,
		xiaozhi.Notify{URL: "http://perch.local:8003/xiaozhi/notify/t.ogg", Subtitles: []xiaozhi.Subtitle{{Text: "Tea."}}}},
	{"tts start", `{"session_id":"s","type":"tts","state":"start"}`, xiaozhi.TTSStart{}},
	{"sentence", `{"session_id":"s","type":"tts","state":"sentence_start","text":"Say \"hi\"."}`, xiaozhi.SentenceStart{Text: `Say "hi".`}},
	{"empty sentence", `{"session_id":"s","type":"tts","state":"sentence_start","text":""}`, xiaozhi.SentenceStart{}},
	{"tts stop", `{"session_id":"s","type":"tts","state":"stop"}`, xiaozhi.TTSStop{}},
	{"stt", `{"session_id":"s","type":"stt","text":"what time is it"}`, xiaozhi.STT{Text: "what time is it"}},
	{"llm", `{"session_id":"s","type":"llm","emotion":"happy","text":"😊"}`, xiaozhi.LLM{Emotion: "happy", Text: "😊"}},
	{"mcp", `{"session_id":"s","type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}`,
		xiaozhi.ToMCP{Payload: json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)}},
	{"reboot", `{"session_id":"s","type":"system","command":"reboot"}`, xiaozhi.Reboot{}},
	{"keep alive", `{"session_id":"s","type":"keepalive"}`, xiaozhi.KeepAlive{}},
	{"alert", `{"session_id":"s","type":"alert","status":"Door","message":"","emotion":"surprised"}`, xiaozhi.Alert{Status: "Door",
		Emotion: "surprised"}},
}

func TestMessagesBothWays(t *testing.T) {
	for _, v := range fromRobot {
		t.Run("from/"+v.name, func(t *testing.T) {
			got, err := xiaozhi.ParseFromRobot([]byte(v.text))
			if err != nil || !reflect.DeepEqual(got, v.message) {
				t.Errorf("parsed %#v (%v), want %#v", got, err, v.message)
			}
			if text := xiaozhi.AppendFromRobot(nil, "s", v.message); !sameJSON(t, text, v.text) {
				t.Errorf("encoded %s, want %s", text, v.text)
			}
		})
	}
	for _, v := range toRobot {
		t.Run("to/"+v.name, func(t *testing.T) {
			got, err := xiaozhi.ParseToRobot([]byte(v.text))
			if err != nil || !reflect.DeepEqual(got, v.message) {
				t.Errorf("parsed %#v (%v), want %#v", got, err, v.message)
			}
			if text := xiaozhi.AppendToRobot(nil, "s", v.message); !sameJSON(t, text, v.text) {
				t.Errorf("encoded %s, want %s", text, v.text)
			}
		})
	}
}

func sameJSON(t *testing.T, got []byte, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	must.Succeed(t, json.Unmarshal([]byte(want), &b))
	return reflect.DeepEqual(a, b)
}

// TestWhatOtherClientsSend parses messages that only clients other than the firmware send, and invalid JSON
// of the firmware.
func TestWhatOtherClientsSend(t *testing.T) {
	for text, want := range map[string]xiaozhi.FromRobot{
		`{"type":"hello"}`:                                               xiaozhi.Hello{},
		`{"type":"listen","state":"start"}`:                              xiaozhi.ListenStart{Mode: xiaozhi.Auto},
		`{"type":"listen","state":"start","mode":"vad"}`:                 xiaozhi.ListenStart{Mode: xiaozhi.Auto},
		`{"type":"listen","state":"start","mode":"ptt"}`:                 xiaozhi.ListenStart{Mode: xiaozhi.Manual},
		`{"type":"ping"}`:                                                xiaozhi.UnknownFromRobot{Type: "ping"},
		`{"session_id":"","type":"abort"}`:                               xiaozhi.Abort{},
		`{"type":"listen","state":"detect"}`:                             xiaozhi.ListenDetect{},
		`{"type":"listen","state":"detect","text":"x","source":{"a":1}}`: xiaozhi.ListenDetect{Text: "x"},
		`{"type":"event","name":"face_lost"}`:                            xiaozhi.Event{Name: "face_lost", Data: json.RawMessage("{}")},
		`{"type":"event","name":"face_lost","data":null}`:                xiaozhi.Event{Name: "face_lost", Data: json.RawMessage("{}")},
		`{"type":"iot","descriptors":[]}`:                                xiaozhi.UnknownFromRobot{Type: "iot"},
		// The firmware does not escape quotes in the message of an error.
		`{"session_id":"s","type":"mcp","payload":{"jsonrpc":"2.0","id":7,"error":{"message":"Unknown tool: "x" here"}}}`: xiaozhi.FromMCP{
			Payload: json.RawMessage(`{"jsonrpc":"2.0","id":7,"error":{"message":"Unknown tool: \"x\" here"}}`)},
	} {
		got, err := xiaozhi.ParseFromRobot([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: parsed %#v (%v), want %#v", text, got, err, want)
		}
	}
}

// badFromRobot and badToRobot list messages for which parsing must return an error.
var badFromRobot = []string{
	``, `{`, `null`, `[]`, `[{"type":"hello"}]`, `"hello"`, `{}`, `{"type":""}`, `{"type":5}`,
	`{"type":"hello","features":[]}`, `{"type":"hello","version":"1"}`, `{"type":"hello","audio_params":[1]}`,
	`{"type":"listen"}`, `{"type":"listen","state":"vad"}`, `{"type":"listen","state":5}`,
	`{"type":"mcp"}`, `{"type":"mcp","payload":[]}`, `{"type":"mcp","payload":"x"}`, `{"type":"mcp","payload":null}`,
	`{"type":"event"}`, `{"type":"event","name":"x","data":[]}`, `{"type":"event","name":"x","data":"y"}`,
	`{"type":"mcp","payload":{"jsonrpc":"2.0","id":x,"error":{"message":"a"b"}}}`,
}

var badToRobot = []string{
	``, `[]`, `{"type":"hello"}`, `{"type":"hello","transport":"udp"}`, `{"type":"hello","transport":1}`,
	`{"type":"tts"}`, `{"type":"tts","state":5}`, `{"type":"tts","state":"sentence_start"}`, `{"type":"mcp","payload":[]}`,
}

func TestBadMessagesAreRefused(t *testing.T) {
	for _, text := range badFromRobot {
		if m, err := xiaozhi.ParseFromRobot([]byte(text)); !errors.Is(err, xiaozhi.ErrMessage) {
			t.Errorf("%s from a robot: %#v, %v", text, m, err)
		}
	}
	for _, text := range badToRobot {
		if m, err := xiaozhi.ParseToRobot([]byte(text)); !errors.Is(err, xiaozhi.ErrMessage) {
			t.Errorf("%s to a robot: %#v, %v", text, m, err)
		}
	}
	long := `{"type":"stt","text":"` + strings.Repeat("x", xiaozhi.MaxMessage) + `"}`
	if _, err := xiaozhi.ParseFromRobot([]byte(long)); !errors.Is(err, xiaozhi.ErrMessage) {
		t.Errorf("a message over the limit: %v", err)
	}
}

// frames lists audio in each framing, as bytes and as values.
var frames = []struct {
	name    string
	framing xiaozhi.Framing
	bytes   []byte
	audio   xiaozhi.Audio
}{
	{"1", xiaozhi.Framing1, []byte{0xf8, 1, 2}, xiaozhi.Audio{Opus: []byte{0xf8, 1, 2}}},
	{"1 empty", xiaozhi.Framing1, []byte{}, xiaozhi.Audio{Opus: []byte{}}},
	{"2", xiaozhi.Framing2, []byte{0, 2, 0, 0, 0, 0, 0, 0, 0x01, 0x02, 0x03, 0x04, 0, 0, 0, 3, 0xf8, 1, 2},
		xiaozhi.Audio{Timestamp: 0x01020304, Opus: []byte{0xf8, 1, 2}}},
	{"2 empty", xiaozhi.Framing2, []byte{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, xiaozhi.Audio{Opus: []byte{}}},
	{"3", xiaozhi.Framing3, []byte{0, 0, 0, 3, 0xf8, 1, 2}, xiaozhi.Audio{Opus: []byte{0xf8, 1, 2}}},
	{"3 long", xiaozhi.Framing3, append([]byte{0, 0, 1, 0x2c}, make([]byte, 300)...), xiaozhi.Audio{Opus: make([]byte, 300)}},
}

func TestFramesBothWays(t *testing.T) {
	for _, v := range frames {
		t.Run(v.name, func(t *testing.T) {
			got, err := v.framing.Parse(v.bytes)
			if err != nil || !reflect.DeepEqual(got, v.audio) {
				t.Errorf("parsed %v (%v), want %v", got, err, v.audio)
			}
			if b := v.framing.Append(nil, v.audio); !bytes.Equal(b, v.bytes) {
				t.Errorf("encoded % x, want % x", b, v.bytes)
			}
		})
	}
}

func TestBadFramesAreRefused(t *testing.T) {
	for name, v := range map[string]struct {
		framing xiaozhi.Framing
		bytes   []byte
	}{
		"2 too short":      {xiaozhi.Framing2, make([]byte, 15)},
		"2 wrong version":  {xiaozhi.Framing2, []byte{0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9}},
		"2 json":           {xiaozhi.Framing2, []byte{0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9}},
		"2 size too big":   {xiaozhi.Framing2, []byte{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 9}},
		"2 size too small": {xiaozhi.Framing2, []byte{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}},
		"3 too short":      {xiaozhi.Framing3, []byte{0, 0, 0}},
		"3 json":           {xiaozhi.Framing3, []byte{1, 0, 0, 1, 9}},
		"3 size too big":   {xiaozhi.Framing3, []byte{0, 0, 0, 2, 9}},
	} {
		if a, err := v.framing.Parse(v.bytes); !errors.Is(err, xiaozhi.ErrFrame) {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

func TestResponses(t *testing.T) {
	got, err := xiaozhi.ParseResponse([]byte(`{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`))
	if err != nil || got.ID != 3 || string(got.Result) != `{"content":[]}` {
		t.Errorf("a result: %+v, %v", got, err)
	}
	got, err = xiaozhi.ParseResponse([]byte(`{"jsonrpc":"2.0","id":3,"error":{"message":"Unknown tool"}}`))
	if err != nil || got.Error == nil || got.Error.Error() != "Unknown tool" {
		t.Errorf("an error without a code: %+v, %v", got, err)
	}
	for _, bad := range []string{`{}`, `[]`, `{"id":"3","result":{}}`, `{"id":3}`, `{"result":{}}`, `{"id":1,"method":"x"}`} {
		if r, err := xiaozhi.ParseResponse([]byte(bad)); err == nil {
			t.Errorf("%s is taken for %+v", bad, r)
		}
	}
	want := `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x"}}`
	if text := (xiaozhi.Request{ID: 4, Method: "tools/call", Params: map[string]any{"name": "x"}}).Append(nil); string(text) != want {
		t.Errorf("request %s, want %s", text, want)
	}
	if text := (xiaozhi.Request{Method: "notifications/initialized"}).Append(nil); strings.Contains(string(text), "id") {
		t.Errorf("a notification with an id: %s", text)
	}
}

func FuzzParseFromRobot(f *testing.F) {
	for _, v := range fromRobot {
		f.Add([]byte(v.text))
	}
	for _, text := range badFromRobot {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := xiaozhi.ParseFromRobot(text)
		if err != nil {
			return
		}
		again, err := xiaozhi.ParseFromRobot(xiaozhi.AppendFromRobot(nil, "s", m))
		if err != nil {
			t.Fatalf("%#v, once encoded: %v", m, err)
		}
		if !reflect.DeepEqual(kindOf(again), kindOf(m)) {
			t.Fatalf("%#v became %#v", m, again)
		}
	})
}

func kindOf(v any) reflect.Type { return reflect.TypeOf(v) }

func FuzzParseToRobot(f *testing.F) {
	for _, v := range toRobot {
		f.Add([]byte(v.text))
	}
	for _, text := range badToRobot {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := xiaozhi.ParseToRobot(text); err == nil {
			if _, err := xiaozhi.ParseToRobot(xiaozhi.AppendToRobot(nil, "s", m)); err != nil && !strings.Contains(err.Error(), "no type") {
				t.Fatalf("%#v, once encoded: %v", m, err)
			}
		}
	})
}

func FuzzFraming(f *testing.F) {
	for _, v := range frames {
		f.Add(int(v.framing), v.bytes)
	}
	f.Fuzz(func(t *testing.T, framing int, frame []byte) {
		a, err := xiaozhi.Framing(framing).Parse(frame)
		if err != nil {
			return
		}
		if len(a.Opus) > len(frame) {
			t.Fatal("a packet larger than its frame")
		}
		again, err := xiaozhi.Framing(framing).Parse(xiaozhi.Framing(framing).Append(nil, a))
		if err != nil || again.Timestamp != a.Timestamp || !bytes.Equal(again.Opus, a.Opus) {
			t.Fatalf("%v became %v (%v)", a, again, err)
		}
	})
}
