package command

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"perch/device"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
)

// things returns the things that FuzzCommand sets; "x" does not exist.
func things() []string {
	return []string{"say", "notify", "emotion", "volume", "brightness", "led", "head", "head_yaw", "head_pitch", "mute", "stop", "reboot", "identify",
		"perception", "firmware", "x"}
}

// FuzzCommand tests that each payload on a command topic of a robot is parsed into a valid command or an error.
func FuzzCommand(f *testing.F) {
	for i, payload := range []string{"hello", `{"text":"x","urgency":"low"}`, "happy", "50", "1e9", `{"state":"ON","color":{"r":1,"g":2,"b":3}}`,
		`{"yaw":1,"pitch":-9999}`, "NaN", "0x1p4", "OFF", "", "\xff"} {
		f.Add(uint8(i), []byte(payload))
	}
	f.Fuzz(func(t *testing.T, thing uint8, payload []byte) {
		c, err := Parse("a0b1c2d3e4f4", things()[int(thing)%len(things())], payload, device.ParseID)
		if err != nil {
			return
		}
		switch c := c.(type) {
		case say:
			if c.text == "" || len(c.text) > limit.Said || !utf8.ValidString(c.text) {
				t.Errorf("%q is to be said", c.text)
			}
		case notify:
			if c.notice.Robot != "a0b1c2d3e4f4" || c.notice.Text == "" {
				t.Errorf("%+v", c.notice)
			}
		case light:
			for _, level := range c.state.RGB() {
				if level < 0 || level > 255 {
					t.Errorf("a light of %d", level)
				}
			}
		case turn:
			if c.yaw == nil && c.pitch == nil {
				t.Error("a turn to nowhere")
			}
		}
	})
}

// FuzzRequest tests that the transaction of each request that ParseRequest accepts can be encoded in the response.
func FuzzRequest(f *testing.F) {
	for _, payload := range []string{`{"transaction":7,"robot":"a0b1c2d3e4f4"}`, `{"code":"123456"}`, "a0b1c2d3e4f4", "{",
		`{"text":"x","transaction":{"a":[1]}}`, ""} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, verb := range discovery.RequestVerbs() {
			r, err := ParseRequest(verb, payload, device.ParseID)
			if err != nil {
				continue
			}
			_, _ = device.ParseID(r.subject())
			if _, err := json.Marshal(Response{Transaction: r.Transaction, Status: "ok"}); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzParseAnswer tests that ParseAnswer accepts only the words "allow" and "deny" and JSON objects with an ID.
func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{"allow", "deny", `{"id":"q","allow":true}`, `{"id":"","allow":false}`, `{"id":"q","allow":null}`, "", "{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		id, allow, err := ParseAnswer(payload)
		if err != nil {
			if allow || id != "" {
				t.Fatalf("%q is an error and an answer", payload)
			}
			return
		}
		if word := strings.TrimSpace(string(payload)); id == "" && word != discovery.Allow && word != discovery.Deny {
			t.Fatalf("%q is an answer", payload)
		}
		if id != "" && !json.Valid(payload) {
			t.Fatalf("%q names a question", payload)
		}
	})
}
