package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/limit"
)

// model is a fake model for Options.Deep.
type model struct {
	replying string
	err      error
	wait     bool // Continue waits until ctx ends
	got      *string
}

func (m model) Name() string { return "model" }
func (m model) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	if m.got != nil {
		*m.got = p.Messages[0].Text
	}
	if m.wait {
		<-ctx.Done()
		return "", ctx.Err()
	}
	for piece := range slices.Chunk([]byte(m.replying), 100) {
		if err := out(thinker.Piece{Text: string(piece)}); err != nil {
			return "", err
		}
	}
	return thinker.StopEnd, m.err
}

func TestEscalations(t *testing.T) {
	h := newHarness(t)
	for _, text := range []string{"Anna's favourite colour is blue", "the key is under the pot"} {
		if _, err := h.memory.Remember(agent.Entry{Body: text}, noon); err != nil {
			t.Fatal(err)
		}
	}
	h.brain.think = replying(agent.Felt{Emotion: agent.Neutral}, agent.Say{Text: "It is 42."}, agent.Say{Text: "I am sure."})
	h.speaks(robotB, "s2")
	server := h.local(t)
	for _, c := range []struct{ body, result, asked string }{
		{`{"tool":"memory_lookup","args":{"query":"what is her favourite colour?"},"session_id":"x"}`,
			"- Anna's favourite colour is blue (2026-07-27)", ""},
		{`{"tool":"memory_lookup","args":{"query":"weather"}}`, "Nothing is remembered about that.", ""},
		{`{"tool":"think_hard","args":{"question":"why?"}}`, "It is 42. I am sure.", ""},
		{`{"tool":"think_hard","args":{"query":"why?"}}`, "It is 42. I am sure.", ""},
		{`{"tool":"take_photo"}`, "a cat", `call a0b1c2d3e4f5 self.camera.take_photo {"question":"What do you see?"}`},
		{`{"tool":"take_photo","args":{"question":"who?"},"session_id":"s2"}`, "a cat",
			`call a0b1c2d3e4f6 self.camera.take_photo {"question":"who?"}`},
		{`{"tool":"take_photo","args":null,"session_id":"of another server"}`, "a cat",
			`call a0b1c2d3e4f5 self.camera.take_photo {"question":"What do you see?"}`},
		{`{"tool":"play_song","args":{"name":"happy birthday"}}`, "Playing Happy Birthday.wav.", "play a0b1c2d3e4f5 Happy Birthday.wav"},
		{`{"tool":"play_song","args":{"name":"Birthday"}}`, "Playing Happy Birthday.wav.", "play a0b1c2d3e4f5 Happy Birthday.wav"},
		{`{"tool":"play_song","args":{"name":"happy_birthday.wav"}}`, "Playing Happy Birthday.wav.", "play a0b1c2d3e4f5 Happy Birthday.wav"},
		{`{"tool":"play_song","args":{"query":"happy birthday"}}`, "Playing Happy Birthday.wav.", "play a0b1c2d3e4f5 Happy Birthday.wav"},
		{`{"tool":"play_song","args":{"name":"purr","query":"happy birthday"}}`, "Playing purr.", "play a0b1c2d3e4f5 purr"},
		{`{"tool":"take_photo","args":{"query":"who?"}}`, "a cat", `call a0b1c2d3e4f5 self.camera.take_photo {"question":"who?"}`},
		{`{"tool":"play_song","args":{"name":"../../etc/passwd"}}`, "There is no such song. There are: Happy Birthday.wav, purr", ""},
		{`{"tool":"play_song","args":{"name":"..."}}`, "There is no such song. There are: Happy Birthday.wav, purr", ""},
	} {
		h.robots.answer = func(context.Context, string) (device.Result, error) {
			return device.Result{Text: `{"success":true,"action":"RESPONSE","response":"a cat"}`}, nil
		}
		status, body := ask(t, server, http.MethodPost, "/api/voice/escalate", c.body)
		if asked := strings.Join(h.robots.requests(), "; "); status != 200 || body != fmt.Sprintf(`{"result":%q}`, c.result) || asked != c.asked {
			t.Errorf("%s: %d %s, asked %q", c.body, status, body, asked)
		}
	}
}

// TestWhatACameraAnswers tests that the description is found in each form of result that servers return for a picture.
func TestWhatACameraAnswers(t *testing.T) {
	for text, want := range map[string]string{
		`{"success":true,"response":"a cat"}`: "a cat", `{"description":"a dog"}`: "a dog", " a bird ": "a bird", `{"x":1}`: `{"x":1}`,
		`{half`: `{half`, "": "",
	} {
		if got := photoText(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestPictureWithoutDescription tests the result for a picture that was not described.
func TestPictureWithoutDescription(t *testing.T) {
	h := newHarness(t)
	h.robots.answer = func(context.Context, string) (device.Result, error) {
		return device.Result{Pictures: []device.Picture{{Type: "image/jpeg", Data: []byte{1}}}}, nil
	}
	if said, err := h.api.describePicture(t.Context(), robotA, "?"); err != nil || said != "A picture was taken, but no model has described it." {
		t.Errorf("%q, %v", said, err)
	}
}

// TestResultsAreCut tests that results are shortened to 1000 characters, whatever their length in bytes.
func TestResultsAreCut(t *testing.T) {
	for _, letter := range []string{"x", "é", "語", "😀"} {
		h := newHarness(t, func(o *Options) { o.Deep = []thinker.Model{model{replying: strings.Repeat(letter, 1<<20)}} })
		said, err := h.api.escalate(t.Context(), []byte(`{"tool":"think_hard","args":{"question":"why?"}}`))
		if n := utf8.RuneCountInString(said.Result); err != nil || n != 1000 || strings.Trim(said.Result, letter) != "" {
			t.Errorf("%s: %d characters, %v", letter, n, err)
		}
	}
}

// TestThinkHard tests that the reply of the first model that works is used, and that a question contains no earlier
// exchanges.
func TestThinkHard(t *testing.T) {
	var got string
	for name, c := range map[string]struct {
		deep   []thinker.Model
		result string
		code   string
	}{
		"one":                {[]thinker.Model{model{replying: " Because. ", got: &got}}, "Because.", ""},
		"the next":           {[]thinker.Model{model{err: errors.New("off, at 10.0.0.1")}, model{replying: "Because.", got: &got}}, "Because.", ""},
		"one that is silent": {[]thinker.Model{model{replying: " "}, model{replying: "Because.", got: &got}}, "Because.", ""},
		"one that broke off": {[]thinker.Model{model{replying: "Bec", err: errors.New("off")}, model{replying: "Because.", got: &got}}, "Because.",
			""},
		"none that is there":  {[]thinker.Model{model{err: errors.New("off, at 10.0.0.1")}, model{replying: ""}}, "", "no_brain"},
		"one of only blanks ": {[]thinker.Model{model{replying: "\n"}}, "", "no_brain"},
	} {
		got = ""
		h := newHarness(t, func(o *Options) { o.Deep = c.deep })
		status, body := ask(t, h.local(t), http.MethodPost, "/api/voice/escalate", `{"tool":"think_hard","args":{"question":"why\nnot?"}}`)
		switch {
		case c.code != "" && (status != 503 || refused(t, body) != c.code || strings.Contains(body, "10.0.0.1")):
			t.Errorf("%s: %d %s", name, status, body)
		case c.code == "" && (status != 200 || body != `{"result":"`+c.result+`"}` || got != "why not?"):
			t.Errorf("%s: %d %s, asked %q", name, status, body, got)
		}
	}
	h := newHarness(t)
	h.brain.think = func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		return replying(agent.Say{Text: fmt.Sprint(len(turn.History))})(ctx, turn, out)
	}
	server := h.local(t)
	for range 2 {
		if _, body := ask(t, server, http.MethodPost, "/api/voice/escalate",
			`{"tool":"think_hard","args":{"question":"why?"}}`); body != `{"result":"0"}` {
			t.Errorf("the mind knows of another question: %s", body)
		}
	}
}

func TestRefusedEscalations(t *testing.T) {
	h := newHarness(t)
	server := h.local(t)
	refuses(t, server, "/api/voice/escalate", map[string]refusal{
		"nothing":               {``, 400, "bad_body"},
		"a list":                {`[]`, 400, "bad_body"},
		"no tool":               {`{"args":{"query":"x"}}`, 400, "bad_body"},
		"a number for a tool":   {`{"tool":7}`, 400, "bad_body"},
		"an unknown tool":       {`{"tool":"self_destruct","args":{}}`, 400, "unknown_tool"},
		"a tool of the robot's": {`{"tool":"self.reboot"}`, 400, "unknown_tool"},
		"args of a list":        {`{"tool":"memory_lookup","args":["x"]}`, 400, "bad_body"},
		"args in a text":        {`{"tool":"memory_lookup","args":"{\"query\":\"x\"}"}`, 400, "bad_body"},
		"no query":              {`{"tool":"memory_lookup","args":{}}`, 400, "bad_body"},
		"no args":               {`{"tool":"memory_lookup"}`, 400, "bad_body"},
		"a number for a query":  {`{"tool":"memory_lookup","args":{"query":5}}`, 400, "bad_body"},
		"no question":           {`{"tool":"think_hard","args":{"question":" "}}`, 400, "bad_body"},
		"no name":               {`{"tool":"play_song","args":{}}`, 400, "bad_body"},
		"too long":              {`{"tool":"think_hard","args":{"question":"` + strings.Repeat("x", limit.Question+1) + `"}}`, 400, "bad_body"},
		"more than is taken":    {`{"tool":"think_hard","args":{"question":"` + strings.Repeat("x", 64<<10) + `"}}`, 413, "body_too_large"},
	})
	if asked := h.robots.requests(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}

// TestConfiguredTimeLimits tests that a tool that never answers fails after the configured time.
func TestConfiguredTimeLimits(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.ShortTimeout, o.LongTimeout = 20*time.Millisecond, 30*time.Millisecond
		o.Deep = []thinker.Model{model{wait: true}}
	})
	h.robots.answer = func(ctx context.Context, _ string) (device.Result, error) {
		<-ctx.Done()
		return device.Result{}, ctx.Err()
	}
	server := h.local(t)
	for _, c := range []struct{ path, body, within string }{
		{"/api/voice/escalate", `{"tool":"take_photo"}`, "20ms"},
		{"/api/voice/escalate", `{"tool":"think_hard","args":{"question":"why?"}}`, "30ms"},
		{"/admin/set-head-angles", `{"yaw":1}`, "20ms"},
		{"/admin/take-photo", `{"question":"who?"}`, "30ms"},
	} {
		status, body := ask(t, server, http.MethodPost, c.path, c.body)
		if code := refused(t, body); status != 504 || code != "tool_timeout" || !strings.Contains(body, c.within) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
}
