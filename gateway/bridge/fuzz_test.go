package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
)

// clientsFault checks that an error has an HTTP status for a fault of the client or 503, and a short sentence.
func clientsFault(t *testing.T, err error) {
	t.Helper()
	var f *httpserver.Fault
	if !errors.As(fault(err), &f) || f.HTTP < 400 || f.HTTP >= 500 && f.HTTP != http.StatusServiceUnavailable || len(f.Sentence) > 500 {
		t.Fatalf("refused with %v", err)
	}
}

// oneLine reports whether a text may be passed to a robot or to the agent: one line of 1 to most bytes.
func oneLine(text string, most int) bool {
	return text != "" && len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// FuzzMessage tests that the text that the agent gets is one bounded line.
func FuzzMessage(f *testing.F) {
	for _, body := range []string{
		`{"content":"hi","channel":"stackchan","session_id":"s1"}`, `{"content":"\u0000\ud800"}`, `{"content":7}`, `{"CONTENT":"x","content":"y"}`,
		`[]`, `null`, ``,
		"{\"content\":\"\xff\"}", `{"content":"x","session_id":{}}`,
	} {
		f.Add([]byte(body))
	}
	h := newHarness(f)
	var asked []agent.Turn
	h.brain.think = func(_ context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		asked = append(asked, turn)
		return out(agent.Say{Text: "Yes."})
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		asked = nil
		got, err := h.api.message(t.Context(), body)
		if err != nil {
			clientsFault(t, err)
			if len(asked) > 0 {
				t.Fatalf("%v, but asked is %+v", err, asked)
			}
			return
		}
		if len(asked) != 1 || !oneLine(asked[0].Text, limit.Question) || len(asked[0].Conversation) > 80 || asked[0].Robot != "" ||
			!strings.HasSuffix(got.Response, "Yes.") {
			t.Fatalf("asked is %+v, the answer %q", asked, got)
		}
	})
}

// FuzzEscalation tests that any tool call has a short result, and that a robot only gets commands to take a picture or to
// play an existing sound.
func FuzzEscalation(f *testing.F) {
	for _, body := range []string{
		`{"tool":"memory_lookup","args":{"query":"blue"}}`, `{"tool":"think_hard","args":{"question":"why?"}}`,
		`{"tool":"take_photo","args":{"question":"\u0000"}}`,
		`{"tool":"play_song","args":{"name":"purr"},"session_id":"s1"}`, `{"tool":"play_song","args":{"name":"../purr"}}`, `{"tool":"x"}`,
		`{"args":[]}`, `{"tool":{}}`,
	} {
		f.Add([]byte(body))
	}
	h := newHarness(f)
	if _, err := h.memory.Remember(agent.Entry{Body: strings.Repeat("blue and long ", 200)}, noon); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := h.api.escalate(t.Context(), body)
		for _, asked := range h.robots.requests() {
			if !strings.HasPrefix(asked, "call a0b1c2d3e4f5 self.camera.take_photo {\"question\":\"") && asked != "play a0b1c2d3e4f5 purr" &&
				asked != "play a0b1c2d3e4f5 Happy Birthday.wav" {
				t.Fatalf("%s asks %q", body, asked)
			}
		}
		if err != nil {
			clientsFault(t, err)
		} else if got.Result == "" || utf8.RuneCountInString(got.Result) > limit.Line || !utf8.ValidString(got.Result) {
			t.Fatalf("%s gives %q", body, got.Result)
		}
	})
}

// FuzzOrder tests that every command that a robot gets is valid, and that a robot gets no rejected command.
func FuzzOrder(f *testing.F) {
	for _, body := range []string{
		`{"text":"hi","device_id":"A0:B1:C2:D3:E4:F6"}`, `{"yaw":-45,"pitch":0,"speed":250}`, `{"yaw":1e308,"pitch":-0.1}`, `{"state":"dance"}`,
		`{"name":"kid_mode","enabled":true}`, `{"asset":"purr","question":"?"}`, `{"device_id":7}`, ``, `null`,
	} {
		f.Add([]byte(body))
	}
	h := newHarness(f)
	d := h.api
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, o := range []struct {
			check func(*command) error
			do    action
		}{{checkText, d.speak}, {checkText, d.injectText}, {noCheck, d.abort}, {checkAngles, d.turnHead}, {checkState, d.setState}, {checkToggle, d.setToggle},
			{noCheck, d.setFaceIdentified}, {checkQuestion, d.takePicture}, {d.checkAsset, d.playAsset}} {
			got, err := d.runCommand(t.Context(), body, o.check, o.do)
			asked := h.robots.requests()
			switch {
			case err != nil:
				clientsFault(t, err)
				if len(asked) > 0 {
					t.Fatalf("%v, but asked is %q", err, asked)
				}
			case len(asked) != 1 || !oneLine(asked[0], limit.Said+100) || !got.OK || got.DeviceID != macA && got.DeviceID != macB:
				t.Fatalf("asked is %q, the answer %+v", asked, got)
			case got.Yaw != nil && (*got.Yaw < -360 || *got.Yaw > 360) || got.Speed != nil && (*got.Speed < 1 || *got.Speed > 1000):
				t.Fatalf("the answer is %+v", got)
			}
		}
	})
}

// FuzzKept tests that facts, turns and events that are accepted are bounded and valid.
func FuzzKept(f *testing.F) {
	for _, body := range []string{
		`{"fact":"tea is at four"}`, `{"user":"hi","assistant":"Hello."}`,
		`{"name":"face_lost","data":{"x":[1]},"device_id":"a0b1c2d3e4f5","ts":1.5}`,
		`{"name":"x","data":{}}`, `{"name":"x","data":{"a":1,"a":2}}`, "{\"name\":\"\xff\",\"user\":\"\xff\",\"fact\":\"\xff\"}",
		`{"name":"\u2028","data": {} }`, `null`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h := newHarness(t)
		_, err := h.api.remember(t.Context(), body)
		facts := h.memory.Search("", time.Now())
		if err != nil {
			clientsFault(t, err)
		}
		if (err == nil) != (len(facts) == 1) || err == nil && !oneLine(facts[0].Body, limit.Line) {
			t.Fatalf("%v, kept is %+v", err, facts)
		}
		_, err = h.api.memoryLog(t.Context(), body)
		turns := h.api.o.Log.all()
		if err != nil {
			clientsFault(t, err)
		}
		if (err == nil) != (len(turns) == 1) || err == nil && (utf8.RuneCountInString(turns[0].User) > maxUserText ||
			utf8.RuneCountInString(turns[0].Assistant) > limit.Line) {
			t.Fatalf("%v, kept is %+v", err, turns)
		}
		var s sensation
		if err := s.read(body); err != nil {
			clientsFault(t, err)
		} else if !oneLine(s.Name, limit.Word) || !json.Valid(s.Data) || s.Data[0] != '{' {
			t.Fatalf("taken is %+v", s)
		}
	})
}

// FuzzLookUp tests that lookUp returns a bounded text for any query.
func FuzzLookUp(f *testing.F) {
	for _, query := range []string{"what colour?", "喝绿茶", "\xff\xfe", "ﷺ", "İ", strings.Repeat("a ", 100), ""} {
		f.Add(query, query)
	}
	f.Fuzz(func(t *testing.T, query, kept string) {
		h := newHarness(t)
		h.api.o.Log.add(Turn{At: noon, User: kept, Assistant: kept})
		if got := h.api.lookUp(query); got == "" || len(got) > 10*(len(kept)+100) {
			t.Fatalf("%q of %q is %q", query, kept, got)
		}
	})
}
