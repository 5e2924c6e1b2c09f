package skin

import (
	"strings"
	"testing"
	"time"

	"perch/device"
)

var noon = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

func FuzzCommand(f *testing.F) {
	for _, seed := range []string{`{"type":"ping"}`, `{"type":"ack","id":"x"}`,
		`{"type":"subscribe","events":["emotion","x"],"states":"all","session_ids":["s","robot:a0b1c2d3e4f5"],"vocabulary":"vrm"}`, `[`} {
		f.Add([]byte(seed))
	}
	words := stockWords()
	f.Fuzz(func(t *testing.T, text []byte) {
		c, bad := parseCommand(text, "rfc", words, device.ParseID)
		if c == nil && bad == nil {
			t.Fatal("nothing comes of it, and nothing is wrong")
		}
		if bad != nil {
			made := newErrorFrame(noon, bad)
			if valid(t, "event", made.Data); len(made.Data) > 4000 {
				t.Errorf("%d bytes", len(made.Data))
			}
		}
		if s, is := c.(subscribe); is && (len(s.filter.Kinds) > 5 || len(s.filter.Sessions) > mostSessions || !words.Knows(s.filter.Words)) {
			t.Errorf("%+v", s)
		}
		// What the schema allows is obeyed.
		if bad != nil && validate("command", text) == nil && !strings.Contains(string(text), "vocabulary") &&
			!strings.Contains(string(text), "robot:") &&
			len(text) < 50 {
			t.Errorf("%s: %+v", text, bad)
		}
	})
}
