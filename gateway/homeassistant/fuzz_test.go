package homeassistant

import (
	"testing"
	"unicode/utf8"

	"perch/device"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
)

func things() []string {
	return []string{"say", "notify", "emotion", "volume", "brightness", "led", "head", "head_yaw", "head_pitch", "mute", "stop", "reboot", "identify",
		"perception", "firmware", "x"}
}

// FuzzCommand: whatever is published under a robot's topics is a command that
// can be carried out, or an error.
func FuzzCommand(f *testing.F) {
	for i, payload := range []string{"hello", `{"text":"x","urgency":"low"}`, "happy", "50", "1e9", `{"state":"ON","color":{"r":1,"g":2,"b":3}}`,
		`{"yaw":1,"pitch":-9999}`, "NaN", "0x1p4", "OFF", "", "\xff"} {
		f.Add(uint8(i), []byte(payload))
	}
	f.Fuzz(func(t *testing.T, thing uint8, payload []byte) {
		c, err := parseCommand(chan1, things()[int(thing)%len(things())], payload, device.ParseID)
		if err != nil {
			return
		}
		switch c := c.(type) {
		case say:
			if c.text == "" || len(c.text) > limit.Said || !utf8.ValidString(c.text) {
				t.Errorf("%q is to be said", c.text)
			}
		case notify:
			if c.notice.Robot != chan1 || c.notice.Text == "" {
				t.Errorf("%+v", c.notice)
			}
		case lamp:
			for _, level := range c.light.levels() {
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

func FuzzRequest(f *testing.F) {
	for _, payload := range []string{`{"transaction":7,"robot":"a0b1c2d3e4f4"}`, `{"code":"123456"}`, "a0b1c2d3e4f4", "{",
		`{"text":"x","transaction":{"a":[1]}}`, ""} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, text, err := parseRequest(payload)
		if err != nil {
			return
		}
		_, _ = parseNotify("", text, device.ParseID)
		_, _ = device.ParseID(r.names(text))
		encode(response{Transaction: r.Transaction, Status: "ok"}) // panics where it cannot be written
	})
}

func FuzzStatus(f *testing.F) {
	f.Add(`{"audio_speaker":{"volume":70},"screen":{"brightness":75},"battery":{"level":82,"charging":false},"network":{"signal":"strong"},"chip":{"temperature":41.5}}`, `{"yaw":1,"pitch":2}`)
	f.Add(`{"audio_speaker":{"volume":1e300},"battery":null}`, `[]`)
	f.Fuzz(func(t *testing.T, status, head string) {
		var v view
		v.senses = discovery.Senses{}
		var r readings
		if parseStatus(status, &r) == nil {
			parseHead(head, &r)
			v.take(r)
		}
		d := v.document()
		encode(d)
		for _, n := range []*int{d.Volume, d.Brightness, d.Battery} {
			if n != nil && (*n < 0 || *n > 100) {
				t.Errorf("%d per cent", *n)
			}
		}
	})
}
