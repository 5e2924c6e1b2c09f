package reflex_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/reflex"
	"perch/device"
	"perch/must"
	"perch/store/storetest"
)

var noon = time.Date(2026, 11, 20, 12, 5, 0, 0, time.UTC)

func book(t testing.TB) *reflex.Book {
	t.Helper()
	return must.Value(reflex.Load("en-GB", ""))(t)
}

func newMemory() *agent.Memory { return agent.NewMemory(&storetest.Table[agent.Entry]{}) }

// newBrain returns a brain with the English book. m and timers may be nil.
func newBrain(t testing.TB, m *agent.Memory, timers *notice.Timers) *reflex.Brain {
	t.Helper()
	if timers == nil {
		return reflex.New([]*reflex.Book{book(t)}, "Chan", m, nil, nil)
	}
	return reflex.New([]*reflex.Book{book(t)}, "Chan", m, timers, nil)
}

// answer contains the replies of a brain to a turn.
type answer struct {
	said, face string
	end        agent.End
	tools      []string // reported tool calls: name and status
}

// think lets a brain answer a turn. The time is noon unless the turn has a time.
func think(t testing.TB, b *reflex.Brain, turn agent.Turn) (a answer) {
	t.Helper()
	if turn.Now.IsZero() {
		turn.Now = noon
	}
	var sentences []string
	must.Succeed(t, b.Think(t.Context(), turn, func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Felt:
			a.face = r.Emotion.Name
		case agent.Say:
			sentences = append(sentences, r.Text)
		case agent.ToolStatus:
			a.tools = append(a.tools, r.Name+" "+r.Status)
		case agent.Done:
			a.end = r.End
		}
		return nil
	}))
	a.said = strings.Join(sentences, " ")
	return a
}

// called is a call of a tool.
type called struct {
	tool      string
	arguments map[string]any
}

// robot is a body that lists tools and records the calls.
type robot struct {
	tools    []device.Tool
	calls    []called
	fails    error
	status   string
	answer   string // result of the tools for photos and reminders
	pictures []device.Picture
	rebooted bool
}

func (r *robot) Tools() []device.Tool { return r.tools }

func (r *robot) Call(_ context.Context, name string, arguments map[string]any) (device.Result, error) {
	r.calls = append(r.calls, called{name, arguments})
	if strings.HasSuffix(name, "status") {
		return device.Result{Text: r.status}, nil
	}
	if strings.Contains(name, "photo") || strings.Contains(name, "reminder") {
		return device.Result{Text: r.answer, Pictures: r.pictures}, r.fails
	}
	return device.Result{Text: "true"}, r.fails
}

func (r *robot) Reboot(context.Context) error { r.rebooted = true; return nil }

func number(most int) device.Argument {
	least := 0
	return device.Argument{Type: "integer", Minimum: &least, Maximum: &most}
}

func tool(name string, arguments map[string]device.Argument, required ...string) device.Tool {
	return device.Tool{Name: name, Schema: device.Schema{Properties: arguments, Required: required}}
}

// stackChan returns a robot with tools of M5Stack's Stack-chan firmware.
func stackChan() *robot {
	least := -9999
	angle := func(most int) device.Argument {
		return device.Argument{Type: "integer", Minimum: &least, Maximum: &most}
	}
	slow, fast := 100, 1000
	return &robot{status: `{"audio_speaker":{"volume":70},"screen":{"brightness":30,"theme":"light"}}`, tools: []device.Tool{
		tool("self.get_device_status", nil),
		tool("self.audio_speaker.set_volume", map[string]device.Argument{"volume": number(100)}, "volume"),
		tool("self.screen.set_brightness", map[string]device.Argument{"brightness": number(100)}, "brightness"),
		tool("self.robot.set_head_angles", map[string]device.Argument{"yaw": angle(128), "pitch": angle(90),
			"speed": {Type: "integer", Minimum: &slow, Maximum: &fast}}),
		tool("self.robot.set_led_multi", map[string]device.Argument{"index": number(11), "red": number(168), "green": number(168),
			"blue": number(168)}, "index", "red", "green", "blue"),
		tool("self.robot.set_led_color", map[string]device.Argument{"red": number(168), "green": number(168), "blue": number(168)}),
	}}
}

// turn lets a new brain answer a text. r may be nil.
func turn(t testing.TB, m *agent.Memory, r *robot, text string) answer {
	t.Helper()
	asked := agent.Turn{Text: text}
	if r != nil {
		asked.Body = r
	}
	return think(t, newBrain(t, m, nil), asked)
}

func TestAnswers(t *testing.T) {
	for text, want := range map[string]struct {
		said, face string
		end        agent.End
	}{
		"What time is it?":           {"It is 12:05 PM.", "happy", agent.Continue},
		"tell me the date":           {"Today is Friday, November 20.", "happy", agent.Continue},
		"who are you":                {"My name is Chan.", "happy", agent.Continue},
		"I love you!":                {"I like you too.", "loving", agent.Continue},
		"you are a bad robot":        {"That was not nice.", "angry", agent.Continue},
		"good night":                 {"Good night.", "sleepy", agent.Sleep},
		"Stop.":                      {"Goodbye.", "happy", agent.HangUp},
		"where is my umbrella":       {"I do not know where your umbrella is.", "sad", agent.Continue},
		"what is the airspeed":       {"I do not know what to say to that. Say help to hear what I can do.", "thinking", agent.Continue},
		"":                           {"I do not know what to say to that. Say help to hear what I can do.", "thinking", agent.Continue},
		"turn the lights blue":       {"I have nothing to do that with.", "neutral", agent.Continue},
		strings.Repeat("stop ", 500): {"I do not know what to say to that. Say help to hear what I can do.", "thinking", agent.Continue},
	} {
		if a := turn(t, newMemory(), nil, text); a.said != want.said || a.face != want.face || a.end != want.end {
			t.Errorf("%.40q: %+v; want %+v", text, a, want)
		}
	}
}

func TestTools(t *testing.T) {
	for text, want := range map[string][]called{
		"set the volume to forty percent":           {{"self.audio_speaker.set_volume", map[string]any{"volume": 40}}},
		"set the volume to 40%":                     {{"self.audio_speaker.set_volume", map[string]any{"volume": 40}}},
		"Set the volume to twenty-one.":             {{"self.audio_speaker.set_volume", map[string]any{"volume": 21}}},
		"turn the volume up":                        {{"self.get_device_status", nil}, {"self.audio_speaker.set_volume", map[string]any{"volume": 80}}},
		"turn down the volume":                      {{"self.get_device_status", nil}, {"self.audio_speaker.set_volume", map[string]any{"volume": 60}}},
		"set the brightness to one hundred percent": {{"self.screen.set_brightness", map[string]any{"brightness": 100}}},
		"look left":            {{"self.robot.set_head_angles", map[string]any{"yaw": -45}}},
		"look to the right":    {{"self.robot.set_head_angles", map[string]any{"yaw": 45}}},
		"look up":              {{"self.robot.set_head_angles", map[string]any{"yaw": 0, "pitch": 60}}},
		"look down":            {{"self.robot.set_head_angles", map[string]any{"yaw": 0, "pitch": 5}}},
		"turn the lights blue": {{"self.robot.set_led_color", map[string]any{"red": 0, "green": 0, "blue": 168}}},
		"turn off the lights":  {{"self.robot.set_led_color", map[string]any{"red": 0, "green": 0, "blue": 0}}},
	} {
		r := stackChan()
		turn(t, nil, r, text)
		if !reflect.DeepEqual(r.calls, want) {
			t.Errorf("%q: %v, want %v", text, r.calls, want)
		}
	}
}

// TestOtherBuilds checks that tools are found in the robot's list although their names and arguments
// differ from those of stackChan.
func TestOtherBuilds(t *testing.T) {
	r := &robot{tools: []device.Tool{
		tool("self.speaker.set_volume", map[string]device.Argument{"level": number(20)}, "level"),
		tool("self.head.set", map[string]device.Argument{"pan": number(30)}),
		tool("self.light.set_rgb", map[string]device.Argument{"r": number(255), "g": number(255), "b": number(255)}, "r", "g", "b"),
	}}
	for _, text := range []string{"set the volume to ninety percent", "look right", "turn the lights red", "nod your head"} {
		turn(t, nil, r, text)
	}
	want := []called{
		{"self.speaker.set_volume", map[string]any{"level": 20}},
		{"self.head.set", map[string]any{"pan": 30}},
		{"self.light.set_rgb", map[string]any{"r": 168, "g": 0, "b": 0}},
	}
	if !reflect.DeepEqual(r.calls, want) {
		t.Errorf("%v, want %v", r.calls, want)
	}
}

func TestGestures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stackChan()
		began := time.Now()
		turn(t, nil, r, "nod your head")
		if len(r.calls) != 4 || time.Since(began) < time.Second {
			t.Errorf("a nod of %d moves in %s", len(r.calls), time.Since(began))
		}
		for _, c := range r.calls {
			if pitch := c.arguments["pitch"].(int); pitch < 5 || pitch > 85 || c.arguments["speed"] != 400 {
				t.Errorf("a nod to %v", c.arguments)
			}
		}
		turn(t, nil, r, "shake your head")
		if last := r.calls[len(r.calls)-1]; last.arguments["yaw"] != 0 {
			t.Errorf("after shaking, the head is at %v", last.arguments)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := newBrain(t, nil, nil).Think(ctx, agent.Turn{Text: "nod your head", Body: r},
			func(agent.Reply) error { return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled nod: %v", err)
		}
	})
}

func TestRemembering(t *testing.T) {
	m := newMemory()
	for _, c := range []struct{ text, want string }{
		{"remember that my keys are in the kitchen", "I will remember. Your keys are in the kitchen."},
		{"where are my keys", "Your keys are in the kitchen."},
		{"remember my keys are on the table", "I will remember. Your keys are on the table."},
		{"do you know where my keys are", "Your keys are on the table."},
		{"remember that anna is my sister", "I will remember. Anna is your sister."},
		{"who is anna", "Anna is your sister."},
	} {
		if got := turn(t, m, nil, c.text).said; got != c.want {
			t.Errorf("%s: %q", c.text, got)
		}
	}
	if e, _ := m.Recall("place keys", noon); e.Type != agent.MemoryReference || e.Source != "reflex" {
		t.Errorf("kept as %+v", e)
	}
}

func TestWhatARobotCannotDo(t *testing.T) {
	r := stackChan()
	r.fails = errors.New("Missing valid argument: volume")
	if a := turn(t, nil, r, "set the volume to forty percent"); a.said != "That did not work." || a.face != "sad" {
		t.Errorf("a failing tool: %+v", a)
	}
	if a := turn(t, nil, &robot{}, "look left"); a.said != "I have nothing to do that with." {
		t.Errorf("no tool: %+v", a)
	}
	if turn(t, nil, r, "reboot yourself"); !r.rebooted {
		t.Error("it was not rebooted")
	}
}

func TestFaultsNameFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"intents:\n  a:\n    sentences: [\"x (y\"]\n    answer: z":                             `own.yaml:3: sentence "x (y": a ")" is missing`,
		"intents:\n  a:\n    sentences: [\"go {nowhere}\"]\n    answer: z":                     `own.yaml:3: there is no list "nowhere"`,
		"intents:\n  a:\n    sentences: [go]\n    answer: \"{thing}\"":                         `own.yaml:2: intent "a": {thing} is not in every one of its sentences`,
		"intents:\n  a:\n    sentences: [go]\n    answer: z\n    action: fly":                  `own.yaml:2: intent "a": there is no action "fly"`,
		"intents:\n  a:\n    sentences: [go]":                                                  `own.yaml:2: intent "a": it has no answer`,
		"intents:\n  a:\n    answer: z":                                                        `own.yaml:2: intent "a": it has no sentences`,
		"intents:\n  a:\n    sentences: [go]\n    answers: z":                                  `line 4: an intent has no "answers"`,
		"intents:\n  a:\n    sentences: [go]\n    answer: z\n    end: now":                     `end is hang_up or sleep, not "now"`,
		"intents:\n  a:\n    sentences: [\"[go]\"]\n    answer: z":                             `a sentence of no words`,
		"intents:\n  a:\n    sentences: [\"at 5\"]\n    answer: z":                             `"5" is not a word`,
		"intents:\n  a:\n    sentences: [go]\n    answer: z\n    action: look\n    value: far": `action "look" needs a value of 2 numbers`,
		"intents:\n  a:\n    sentences: [\"in {number}\"]\n    answer: z\n" +
			"    body: y\n    action: timer": `own.yaml:3: action "timer" needs the slots {number} and {units}`,
		"intents:\n  a:\n    sentences: [\"in {number} {units}\"]\n    answer: z\n    action: reminder": `action "reminder" needs a body`,
		"lists: {units: {weeks: many}}": `list "units": "weeks" stands for a number of seconds, not for "many"`,
		"intents: [a]":                  "line 1: intents must be a map",
		"colours: [red]":                "line 1: field colours not found",
		"lists: {thing: 5}":             "line 1: a list must be a sequence or a map",
		"lists: {thing: [\"r2 d2\"]}":   `"r2 d2" is not words`,
		"weekdays: [Sunday]":            "field weekdays not found",
		"{":                             "own.yaml",
		"intents:\n  a:\n    sentences: [\"" + strings.Repeat("(", 40) + "x" + strings.Repeat(")", 40) + "\"]\n    answer: z": "nested more than 15 deep",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngave  %v\nwant  %s", text, err, want)
		}
	}
	if _, err := reflex.Load("pt", ""); err == nil || !strings.Contains(err.Error(), "it speaks en") {
		t.Errorf("an unknown language: %v", err)
	}
}

// TestTheBrainUnderstandsItsGrammar checks for each sentence of the grammar that the brain understands
// one of its forms.
func TestTheBrainUnderstandsItsGrammar(t *testing.T) {
	b := book(t)
	bodies := map[string]string{}
	for _, r := range b.Rules() {
		bodies[r.Name] = r.Body
	}
	for _, r := range b.Rules() {
		if !r.Top {
			continue
		}
		text := r.Body
		for name, body := range bodies {
			first, _, _ := strings.Cut(body, " | ")
			text = strings.ReplaceAll(text, "<"+name+">", first)
		}
		text = strings.NewReplacer("[", "", "]", "").Replace(text)
		for strings.Contains(text, "(") { // replace each choice by its last alternative
			from := strings.LastIndex(text, "(")
			to := from + strings.Index(text[from:], ")")
			choices := strings.Split(text[from+1:to], " | ")
			text = text[:from] + choices[len(choices)-1] + text[to+1:]
		}
		if !b.Understands(text) {
			t.Errorf("%s: %q is in the grammar and not in the book", r.Source, text)
		}
		if !strings.HasPrefix(r.Source, "en.yaml:") {
			t.Errorf("%q has no source: %s", r.Body, r.Source)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("intents:\n  a:\n    sentences: [\"x (y|z) [{thing}]\"]\n    answer: z", "x y keys")
	f.Add("lists: {thing: [a b, c]}", "where are my a b")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, said string) {
		own := filepath.Join(dir, "own.yaml")
		must.Succeed(t, os.WriteFile(own, []byte(text), 0o600))
		if b, err := reflex.Load("en", own); err == nil {
			b.Understands(said)
			b.Rules()
		}
	})
}
