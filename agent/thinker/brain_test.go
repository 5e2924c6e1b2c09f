package thinker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
)

// noon is the time of the turns in most tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model answers with a script, one entry for each message. The last entry repeats.
type model struct {
	script []message
	asked  []thinker.Prompt
}

type message struct {
	texts []string
	calls []thinker.ToolCall
	stop  thinker.Stop
	err   error
	wait  time.Duration // pause before the end of the message
}

func (*model) Name() string { return "scripted" }

func (m *model) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	p.Messages = slices.Clone(p.Messages)
	m.asked = append(m.asked, p)
	answer := m.script[min(len(m.asked), len(m.script))-1]
	for _, text := range answer.texts {
		if err := out(thinker.Piece{Text: text}); err != nil {
			return "", err
		}
	}
	for _, call := range answer.calls {
		if err := out(thinker.Piece{Call: &call}); err != nil {
			return "", err
		}
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(answer.wait):
	}
	if answer.stop == "" {
		answer.stop = thinker.StopEnd
	}
	return answer.stop, answer.err
}

func call(id, name, args string) thinker.ToolCall {
	return thinker.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}
}

// arm is a robot with one tool, which takes the time wait. A second call at the same time fails.
type arm struct {
	called []string
	busy   bool
	err    error
	wait   time.Duration
}

func (*arm) Tools() []device.Tool {
	return []device.Tool{
		{Name: "self.robot.turn", Description: "Turn.", Schema: device.Schema{Type: "object",
			Properties: map[string]device.Argument{"yaw": {Type: "integer"}}}},
	}
}

func (a *arm) Call(ctx context.Context, name string, args map[string]any) (device.Result, error) {
	if a.busy {
		return device.Result{}, errors.New("two at a time")
	}
	a.busy = true
	defer func() { a.busy = false }()
	select {
	case <-ctx.Done():
		return device.Result{}, ctx.Err()
	case <-time.After(a.wait):
	}
	a.called = append(a.called, fmt.Sprint(name, args["yaw"]))
	return device.Result{Text: "true"}, a.err
}

func (*arm) Reboot(context.Context) error { return nil }

// think lets a new brain answer a turn with the text "Hello" at noon.
func think(t *testing.T, o thinker.Options, turn agent.Turn) ([]agent.Reply, error) {
	t.Helper()
	var replies []agent.Reply
	turn.Now, turn.Text = noon, "Hello"
	err := thinker.New(o).Think(t.Context(), turn, func(r agent.Reply) error {
		replies = append(replies, r)
		return nil
	})
	return replies, err
}

// answered is like think, but the turn must succeed.
func answered(t *testing.T, o thinker.Options, turn agent.Turn) []agent.Reply {
	t.Helper()
	replies, err := think(t, o, turn)
	must.Succeed(t, err)
	return replies
}

// remember adds an entry to a memory.
func remember(t *testing.T, memory *agent.Memory, e agent.Entry, at time.Time) {
	t.Helper()
	_, err := memory.Remember(e, at)
	must.Succeed(t, err)
}

// statuses returns the reported statuses of tools, each as "name status".
func statuses(replies []agent.Reply) (all []string) {
	for _, r := range replies {
		if s, ok := r.(agent.ToolStatus); ok {
			all = append(all, s.Name+" "+s.Status)
		}
	}
	return all
}

func TestTextIsSpokenAsItIsWritten(t *testing.T) {
	m := &model{script: []message{{texts: []string{"😊 Hel", "lo. How", " are you?"}}}}
	got, err := think(t, thinker.Options{Model: m}, agent.Turn{})
	want := []agent.Reply{felt("happy", 1), agent.Say{Text: "Hello."}, agent.Say{Text: "How are you?"}, agent.Done{End: agent.Continue}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestToolsAreRunAndReported(t *testing.T) {
	m := &model{script: []message{
		{texts: []string{"😊 Look."}, stop: thinker.StopTools, calls: []thinker.ToolCall{
			call("1", "self_robot_turn", `{"yaw":5}`), call("2", "self_robot_turn", `{"yaw":6}`), call("3", "nonsense", `{}`),
			call("4", "self_robot_turn", `[`), call("5", "self_robot_turn", ``)}},
		{texts: []string{"I did."}},
	}}
	body := &arm{}
	got, err := think(t, thinker.Options{Model: m}, agent.Turn{Body: body})
	if err != nil || !slices.Equal(body.called, []string{"self.robot.turn5", "self.robot.turn6", "self.robot.turn<nil>"}) {
		t.Errorf("%v, called %v", err, body.called)
	}
	want := strings.Fields(
		"self.robot.turn running self.robot.turn done self.robot.turn running self.robot.turn done nonsense running nonsense failed " +
			"self.robot.turn running self.robot.turn failed self.robot.turn running self.robot.turn done")
	if s := strings.Join(statuses(got), " "); s != strings.Join(want, " ") {
		t.Errorf("reported %s", s)
	}
	if s := says(got); !slices.Equal(s, []string{"Look.", "I did."}) {
		t.Errorf("said %q", s)
	}
	if len(m.asked) != 2 || len(m.asked[0].Tools) != 2 || m.asked[0].Tools[0].Name != "end_talk" || m.asked[0].Tools[1].Name != "self_robot_turn" {
		t.Fatalf("asked %d times, offered %+v", len(m.asked), m.asked[0].Tools)
	}
	given := m.asked[1].Messages
	if len(given) != 7 || given[1].Text != "😊 Look." || len(given[1].Calls) != 5 {
		t.Fatalf("%+v", given)
	}
	for i, failed := range []bool{false, false, true, true, false} {
		if a := given[2+i]; a.Role != thinker.RoleTool || a.CallID != fmt.Sprint(i+1) || a.Failed != failed || a.Text == "" {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
}

// TestWhatToolsWorkOn checks that the arguments of tools are reported for screens, but not keys in them
// and not the arguments of remember, because only the owner may read what is remembered.
func TestWhatToolsWorkOn(t *testing.T) {
	m := &model{script: []message{{calls: []thinker.ToolCall{call("1", "self_robot_turn", `{"yaw":5}`), call("2", "remember", `{"fact":"a secret"}`),
		call("3", "nonsense", `{"command":"curl\n-H api_key=abcdefgh12345678","dirs":["a","b"]}`)}}, {texts: []string{"So."}}}}
	got := answered(t, thinker.Options{Model: m, Memory: agent.NewMemory(&storetest.Table[agent.Entry]{})}, agent.Turn{Body: &arm{}})
	var details []string
	for _, r := range got {
		if s, ok := r.(agent.ToolStatus); ok {
			details = append(details, s.Detail)
		}
	}
	want := []string{"5", "5", "", "", "command: curl -H api_key=***, dirs: [\"a\",\"b\"]", "there is no such tool; use one of those offered"}
	if !slices.Equal(details, want) {
		t.Errorf("it works on %q, want %q", details, want)
	}
}

func TestTheModelReadsAToolsError(t *testing.T) {
	m := &model{script: []message{{calls: []thinker.ToolCall{call("1", "self_robot_turn", `{}`)}}, {texts: []string{"It is stuck."}}}}
	got, err := think(t, thinker.Options{Model: m}, agent.Turn{Body: &arm{err: errors.New("the neck is stuck")}})
	if err != nil || !strings.Contains(m.asked[1].Messages[2].Text, "the neck is stuck") || !slices.Equal(says(got), []string{"It is stuck."}) {
		t.Errorf("%v, %+v", err, m.asked[1].Messages)
	}
}

func TestACharactersBrain(t *testing.T) {
	much := 1.2
	m := &model{script: []message{{texts: []string{"Hi."}}}}
	k := thinker.New(thinker.Options{Model: m, Persona: agent.Persona{Brain: agent.BrainOptions{MaxTokens: 5}}})
	own := agent.BrainOptions{Temperature: &much, MaxTokens: 99}
	for _, persona := range []*agent.Persona{{ID: "leo", Brain: own}, nil} {
		must.Succeed(t, k.Think(t.Context(), agent.Turn{Text: "hi", Persona: persona, Now: noon}, func(agent.Reply) error { return nil }))
	}
	if got := []agent.BrainOptions{m.asked[0].Brain, m.asked[1].Brain}; got[0] != own || got[1] != (agent.BrainOptions{}) {
		t.Errorf("it is asked with %+v", got)
	}
}

func TestToolRoundsAreBounded(t *testing.T) {
	m := &model{script: []message{{texts: []string{"Again."}, calls: []thinker.ToolCall{call("1", "self_robot_turn", `{}`)}}}}
	body := &arm{}
	got, err := think(t, thinker.Options{Model: m}, agent.Turn{Body: body})
	if err != nil || len(body.called) != 8 || len(m.asked) != 9 || m.asked[8].Tools != nil || m.asked[7].Tools == nil {
		t.Errorf("%v, called %d times, asked %d times", err, len(body.called), len(m.asked))
	}
	if got[len(got)-1] != (agent.Done{End: agent.Continue}) {
		t.Errorf("%v", got)
	}
}

func TestHowAnAnswerEnds(t *testing.T) {
	phrases := func(tag, name string) string { return "😢 " + tag + " " + name + "." }
	for stop, want := range map[thinker.Stop]string{thinker.StopLength: "ja cut_off.", thinker.StopRefused: "ja refused."} {
		m := &model{script: []message{{texts: []string{"Well, it"}, stop: stop, calls: []thinker.ToolCall{call("1", "self_robot_turn", `{}`)}}}}
		body := &arm{}
		got, err := think(t, thinker.Options{Model: m, Phrases: phrases}, agent.Turn{Body: body, Language: "ja"})
		if err != nil || !slices.Equal(says(got), []string{"Well, it", want}) || len(body.called) > 0 ||
			got[len(got)-1] != (agent.Done{End: agent.Continue}) {
			t.Errorf("%s: %v, %v", stop, got, err)
		}
	}
	endless := &model{script: []message{{texts: slices.Repeat([]string{strings.Repeat("word ", 200)}, 100)}}}
	if got, err := think(t, thinker.Options{Model: endless}, agent.Turn{}); err != nil || says(got)[len(says(got))-1] != "I was cut off." {
		t.Errorf("a message without end: %v", err)
	}
}

func TestAFailingModel(t *testing.T) {
	away := fmt.Errorf("%w: nothing listens there", agent.ErrAway)
	use := []thinker.ToolCall{call("1", "self_robot_turn", `{}`)}
	for name, c := range map[string]struct {
		script []message
		away   bool
	}{
		"at once":                  {[]message{{err: away}}, true},
		"with a thought alone":     {[]message{{texts: []string{"<think>Hm."}}}, true},
		"after it has spoken":      {[]message{{texts: []string{"Well, it is. A"}, err: away}}, true}, // the caller of the brain knows what was spoken
		"after its tools have run": {[]message{{calls: use}, {err: away}}, false},
	} {
		got, err := think(t, thinker.Options{Model: &model{script: c.script}}, agent.Turn{Body: &arm{}})
		if err == nil || errors.Is(err, agent.ErrAway) != c.away || slices.Contains(got, agent.Reply(agent.Done{End: agent.Continue})) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestATurnIsCancelledAtOnce(t *testing.T) {
	for name, m := range map[string]*model{
		"in the model": {script: []message{{texts: []string{"Well. "}, wait: time.Hour}}},
		"in a tool": {script: []message{{calls: []thinker.ToolCall{call("1", "self_robot_turn", `{}`),
			call("2", "think_hard", `{"question":"x"}`)}}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			began := time.Now()
			deep := &model{script: []message{{wait: time.Hour}}}
			o := thinker.Options{Model: m, Deep: []thinker.Model{deep}}
			err := thinker.New(o).Think(ctx, agent.Turn{Body: &arm{wait: 30 * time.Second}}, func(agent.Reply) error { return nil })
			if !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %s", name, err, time.Since(began))
			}
		})
	}
}

func TestAFailingReceiverEndsTheTurn(t *testing.T) {
	gone := errors.New("gone")
	m := &model{script: []message{{calls: []thinker.ToolCall{call("1", "self_robot_turn", `{}`)}}}}
	body := &arm{}
	err := thinker.New(thinker.Options{Model: m}).Think(t.Context(), agent.Turn{Body: body}, func(agent.Reply) error { return gone })
	if !errors.Is(err, gone) || len(m.asked) != 1 || len(body.called) > 0 {
		t.Errorf("%v, asked %d times, called %v", err, len(m.asked), body.called)
	}
}

// source is a ToolSource made of two functions.
type source struct {
	tools func(context.Context) []thinker.Tool
	call  func(ctx context.Context, name string, args json.RawMessage) (string, error)
}

func (s source) Tools(ctx context.Context) []thinker.Tool { return s.tools(ctx) }

func (s source) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	return s.call(ctx, name, args)
}

// slowSource returns a source whose tools take the time wait. The schema of one tool is invalid.
func slowSource(wait time.Duration) source {
	return source{func(context.Context) []thinker.Tool {
		return []thinker.Tool{
			{Name: "self.robot.turn", Schema: json.RawMessage(`{"type":"object"}`)},
			{Name: "odd", Schema: json.RawMessage(`{`)},
			{Name: strings.Repeat("long", 40), Schema: json.RawMessage(`{"type":"object"}`)},
		}
	}, func(ctx context.Context, name string, args json.RawMessage) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(wait):
			return name + string(args), nil
		}
	}}
}

// TestAnAnswerThatCannotBeSpoken checks that a phrase is spoken if a model writes only code or an unknown
// face.
func TestAnAnswerThatCannotBeSpoken(t *testing.T) {
	for _, text := range []string{"```python\nprint(1)\n```", "👍", "😊 ```\nx\n```", "[Yes]"} {
		got, err := think(t, thinker.Options{Model: &model{script: []message{{texts: []string{text}}}}},
			agent.Turn{Language: "de-AT"})
		aloud := []string{"Ich habe eine Antwort, aber keine, die man laut sagen kann."}
		if err != nil || !slices.Equal(says(got), aloud) || got[len(got)-1] != (agent.Done{End: agent.Continue}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestSilence checks that a turn may end without speech, as when a person speaks to somebody else.
func TestSilence(t *testing.T) {
	for _, text := range []string{"", " ", "...", "[silence]", "*says nothing*", "(no response)"} {
		got, err := think(t, thinker.Options{Model: &model{script: []message{{texts: []string{text}}}}}, agent.Turn{})
		if err != nil || len(says(got)) > 0 || got[len(got)-1] != (agent.Done{End: agent.Continue}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestATurnOfToolsOnlyIsConfirmed checks that a phrase is spoken after a turn in which the model only
// called tools, and that an untrusted turn is not offered the tools for timers.
func TestATurnOfToolsOnlyIsConfirmed(t *testing.T) {
	m := &model{script: []message{{calls: []thinker.ToolCall{call("1", "self_robot_turn", `{"yaw":1}`)}}, {texts: []string{""}}}}
	got, err := think(t, thinker.Options{Model: m, Persona: agent.Persona{Language: "fr"}}, agent.Turn{Body: &arm{}})
	if err != nil || !slices.Equal(says(got), []string{"C'est fait."}) {
		t.Errorf("%v, %v", got, err)
	}
	timers := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil)
	for untrusted, want := range map[bool]int{false: 2, true: 0} {
		m := &model{script: []message{{texts: []string{"Hello."}}}}
		if _, err := think(t, thinker.Options{Model: m, Timers: timers}, agent.Turn{Untrusted: untrusted}); err != nil ||
			len(m.asked[0].Tools) != want {
			t.Errorf("untrusted %t is offered %+v, %v", untrusted, m.asked[0].Tools, err)
		}
	}
}

// TestHangingSources checks that sources that do not answer delay a turn by 300 ms in total, and that
// tools that are left out are logged once.
func TestHangingSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := &model{script: []message{{texts: []string{"One."}}, {texts: []string{"Two."}}, {texts: []string{"Three."}}}}
		hanging := source{tools: func(ctx context.Context) []thinker.Tool { <-ctx.Done(); return nil }}
		large := source{tools: func(context.Context) (all []thinker.Tool) {
			for i := range 160 {
				all = append(all, thinker.Tool{Name: fmt.Sprint("tool", i), Schema: json.RawMessage(`{}`)})
			}
			return all
		}}
		k := thinker.New(thinker.Options{Model: m, Sources: []thinker.ToolSource{hanging, large, hanging, hanging},
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		began := time.Now()
		for range 3 {
			must.Succeed(t, k.Think(t.Context(), agent.Turn{Text: "x"}, func(agent.Reply) error { return nil }))
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("three turns took %s", took)
		}
		if n := len(m.asked[0].Tools); n != 100 {
			t.Errorf("%d tools are offered", n)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &log)
		}
	})
}

// TestAModelEndsTheTalk checks that end_talk sets the end of the turn, and that the model's next text is
// still spoken.
func TestAModelEndsTheTalk(t *testing.T) {
	for args, want := range map[string]agent.End{`{}`: agent.HangUp, `{"asleep":true}`: agent.Sleep, `{"asleep":3}`: agent.Continue} {
		m := &model{script: []message{{calls: []thinker.ToolCall{call("1", "end_talk", args)}}, {texts: []string{"😊 Goodbye."}}}}
		got, err := think(t, thinker.Options{Model: m}, agent.Turn{Body: &arm{}})
		if err != nil || got[len(got)-1] != (agent.Done{End: want}) || !slices.Equal(says(got), []string{"Goodbye."}) {
			t.Errorf("%s: %v, %v", args, got, err)
		}
	}
}

// fakeSenses are the senses of a robot that sees Ann.
type fakeSenses struct{}

func (fakeSenses) Who(device.ID, time.Time) string          { return "in front of you since 12 s:\nAnn" }
func (fakeSenses) Perception(id device.ID, _ time.Time) any { return map[string]any{"robot": id} }

// TestAModelKnowsWhatARobotPerceives checks that the prompt and the tools contain a robot's perception
// only if the turn has a robot's body.
func TestAModelKnowsWhatARobotPerceives(t *testing.T) {
	const who = "in front of you since 12 s: Ann"
	m := &model{script: []message{{calls: []thinker.ToolCall{call("1", "get_perception", `{}`)}}, {texts: []string{"😊 Hello Ann."}}}}
	o := thinker.Options{Model: m, Senses: fakeSenses{}}
	answered(t, o, agent.Turn{Body: &arm{}, Robot: "a0b1c2d3e4f5"})
	if !strings.Contains(m.asked[0].System, who) || m.asked[1].Messages[2].Text != `{"robot":"a0b1c2d3e4f5"}` {
		t.Errorf("given %s\nanswered %+v", m.asked[0].System, m.asked[1].Messages)
	}
	m = &model{script: []message{{texts: []string{"😊 Hello."}}}}
	o.Model = m
	if _, err := think(t, o, agent.Turn{}); err != nil || strings.Contains(m.asked[0].System, who) || len(m.asked[0].Tools) > 0 {
		t.Errorf("without a robot: %v, given %s, offered %+v", err, m.asked[0].System, m.asked[0].Tools)
	}
}

func TestToolsOfSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		use := []thinker.ToolCall{call("1", "self_robot_turn_2", `{"a":1}`), call("2", "self_robot_turn_2", `{"a":2}`),
			call("3", "self_robot_turn", `{"yaw":1}`)}
		m := &model{script: []message{{calls: use}, {texts: []string{"Done."}}}}
		began := time.Now()
		o := thinker.Options{Model: m}
		o.Sources = append(o.Sources, slowSource(10*time.Second))
		answered(t, o, agent.Turn{Body: &arm{wait: 10 * time.Second}})
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("what can run at a time took %s", took)
		}
		if offered := m.asked[0].Tools; len(offered) != 4 || len(offered[3].Name) != 64 {
			t.Errorf("%+v", offered)
		}
		if answers := m.asked[1].Messages[2:]; answers[0].Text != `self.robot.turn{"a":1}` || answers[1].Text != `self.robot.turn{"a":2}` ||
			answers[2].Text != "true" {
			t.Errorf("%+v", answers)
		}
		o.Sources, m.asked = []thinker.ToolSource{slowSource(time.Hour)}, nil
		if _, err := think(t, o, agent.Turn{}); err != nil || !strings.Contains(m.asked[1].Messages[4].Text, "within 1m0s") {
			t.Errorf("a slow tool: %v, %+v", err, m.asked[1].Messages)
		}
	})
}

func TestTheAppliancesOwnTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := agent.NewMemory(&storetest.Table[agent.Entry]{})
		bus := event.NewBus()
		defer bus.Close()
		deep := []thinker.Model{&model{script: []message{{err: agent.ErrAway}}},
			&model{script: []message{{texts: []string{"42"}, wait: 20 * time.Second}}}}
		timers := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil)
		m := &model{script: []message{{calls: []thinker.ToolCall{
			call("1", "remember", `{"fact":"The cat is called Tom."}`), call("2", "recall", `{"query":"name cat"}`),
			call("3", "recall", `{"query":"dog"}`),
			call("4", "set_timer", `{"seconds":"300","text":"Eggs!"}`), call("5", "set_timer", `{"at":"11:30","text":"Tea!"}`),
			call("6", "set_timer", `{"text":"Never"}`),
			call("7", "cancel_timer", `{"id":"nothing"}`), call("8", "notify", `{"text":"Dinner!"}`), call("9", "notify", `{}`),
			call("10", "think_hard", `{"question":"Why?"}`), call("11", "set_timer", `{"at":"07:00","days":"sat, sun","text":"Up!"}`),
			call("12", "set_timer", `{"at":"07:00","days":"always","text":"Up!"}`),
		}}, {texts: []string{"Done."}}}}
		o := thinker.Options{Model: m, Memory: memory, Timers: timers, Deep: deep,
			Notify: notice.New(notice.Options{Store: notice.NewStore(&storetest.Table[notice.Notification]{}), Timers: timers, Bus: bus}).NotifyAll}
		got, err := think(t, o, agent.Turn{})
		must.Succeed(t, err)
		for i, want := range []string{"Remembered.", "Tom", "Nothing", "12:05:00", "11:30:00", "Error: ", "0 cancelled.", "It will be told.",
			"Error: ", "42", "07:00:00 on sat sun", "Error: "} {
			if a := m.asked[1].Messages[2+i]; !strings.Contains(a.Text, want) || a.Failed != strings.HasPrefix(want, "Error") {
				t.Errorf("%s: %q, want %q", m.asked[0].Tools, a.Text, want)
			}
		}
		if !slices.ContainsFunc(got, func(r agent.Reply) bool {
			s, ok := r.(agent.ToolStatus)
			return ok && s.Name == "think_hard" && s.SubAgent
		}) {
			t.Error("think_hard is not shown as an agent")
		}
		if pending := timers.Pending("", noon); len(pending) != 3 || pending[0].Text != "Eggs!" || pending[1].Reminder || !pending[2].Reminder {
			t.Errorf("%+v", pending)
		}
		if _, err := think(t, o, agent.Turn{}); err != nil || !strings.Contains(m.asked[2].System, "Eggs!") || !strings.Contains(m.asked[2].System, "at 07:00:00 on sat sun: Up!") ||
			!strings.Contains(m.asked[2].System, "- The cat is called Tom.") {
			t.Errorf("%v; given: %s", err, m.asked[2].System)
		}
	})
	bare := &model{script: []message{{texts: []string{"Hi."}}}}
	if _, err := think(t, thinker.Options{Model: bare}, agent.Turn{}); err != nil || len(bare.asked[0].Tools) > 0 {
		t.Errorf("%v, offered without anything: %+v", err, bare.asked[0].Tools)
	}
}

// TestACharactersMemory checks that Persona.Memory precedes the remembered facts in the prompt, takes at most half
// of the tokens, and is omitted for strangers.
func TestACharactersMemory(t *testing.T) {
	memory := agent.NewMemory(&storetest.Table[agent.Entry]{})
	remember(t, memory, agent.Entry{Body: "The cat is called Tom."}, noon)
	for own, want := range map[string]string{
		"# Facts\n- Ann likes tea.</memory>":    "orders:\n# Facts\n- Ann likes tea.< /memory>\n- The cat is called Tom.\n</memory>",
		strings.Repeat("Ann likes tea. ", 1000): "Ann likes tea.", // too long, so it is cut
	} {
		m := &model{script: []message{{texts: []string{"Hi."}}}}
		o := thinker.Options{Model: m, Memory: memory, MemoryTokens: 200}
		answered(t, o, agent.Turn{Persona: &agent.Persona{Memory: own}})
		answered(t, o, agent.Turn{Robot: "a0b1c2d3e4f6", Untrusted: true, Persona: &agent.Persona{Memory: own}})
		if p := m.asked[0].System; !strings.Contains(p, want) || !strings.Contains(p, "called Tom") || len(p) > len(m.asked[1].System)+900 {
			t.Errorf("the prompt is %s", p)
		}
		if p := m.asked[1].System; strings.Contains(p, "Ann") {
			t.Errorf("a stranger is told %s", p)
		}
	}
}

func TestThePrompt(t *testing.T) {
	memory := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for i := range 200 {
		e := agent.Entry{Body: fmt.Sprintf("Fact %d is %s.", i, strings.Repeat("long ", 20))}
		remember(t, memory, e, noon.Add(time.Duration(i)*time.Second))
	}
	var history []agent.Exchange
	for i := range 20 {
		history = append(history, agent.Exchange{Heard: fmt.Sprint("question ", i), Said: strings.Repeat("answer ", 20), Emoji: "😂"})
	}
	history[19].Said = ""
	m := &model{script: []message{{texts: []string{"Hi."}}}}
	o := thinker.Options{Model: m, Memory: memory, Persona: agent.Persona{Name: "Rob", Text: "You are grumpy.", Language: "de"},
		HistoryTokens: 200, MemoryTokens: 512}
	answered(t, o, agent.Turn{History: history, Body: &arm{}})
	p := m.asked[0]
	for _, want := range []string{"You are grumpy.", "Your name is Rob.", "robot", "code de", "😊 happy", "😴 sleepy", "Fact 199",
		noon.Format("2 January 2006, 15:04")} {
		if !strings.Contains(p.System, want) {
			t.Errorf("the prompt has no %q", want)
		}
	}
	if at := strings.Index(p.System, "- Fact"); at < 0 || len(p.System)-at > 4*512+200 || strings.Contains(p.System, "Fact 100 ") ||
		strings.Index(p.System, "Fact 198") > strings.Index(p.System, "Fact 199") {
		t.Errorf("memory: %s", p.System)
	}
	n := len(p.Messages)
	if n < 7 || n > 11 || p.Messages[0].Role != thinker.RoleUser || p.Messages[n-1].Text != "Hello" || p.Messages[n-2].Text != "😆 ..." ||
		p.Messages[n-3].Text != "question 19" {
		t.Errorf("%d messages: %+v", n, p.Messages)
	}
}

// TestTheMemoryInThePrompt checks that the prompt contains the facts that rank highest, within a number of
// tokens in Latin and Japanese script, and that a fact that is too long excludes no other fact.
func TestTheMemoryInThePrompt(t *testing.T) {
	for name, text := range map[string]string{"English": "Ann likes the green tea of her uncle best", "Japanese": "アンさんは叔父さんの緑茶がいちばん好きです"} {
		for _, budget := range []int{100, 300} {
			memory := agent.NewMemory(&storetest.Table[agent.Entry]{})
			for i := range 2000 {
				e := agent.Entry{Body: fmt.Sprintf("%d: %s", i, text), Type: agent.MemoryTypes()[i%4], Important: i%500 == 7}
				if i == 1999 {
					e.Body, e.Important = strings.Repeat(text, 40), true
				}
				remember(t, memory, e, noon.Add(time.Duration(i)*time.Minute))
			}
			m := &model{script: []message{{texts: []string{"Hi."}}}}
			turn := agent.Turn{Now: noon.AddDate(0, 0, 3), Persona: &agent.Persona{MemoryTokens: budget}}
			answered(t, thinker.Options{Model: m, Memory: memory, MemoryTokens: 5000}, turn)
			_, block, begun := strings.Cut(m.asked[0].System, "<memory>")
			block, _, ended := strings.Cut(block, "</memory>")
			tokens := 0.0
			for _, r := range "<memory>" + block + "</memory>" {
				if tokens += 0.25; r > 0x2e80 { // a character of Chinese or Japanese is about a token
					tokens += 0.75
				}
			}
			ranked, err := memory.Query(agent.Query{}, turn.Now)
			if !begun || !ended || err != nil || tokens > float64(budget) || tokens < float64(budget)-40 {
				t.Fatalf("%s, %d: %g tokens, %v\n%s", name, budget, tokens, err, m.asked[0].System)
			}
			in := 0
			for _, e := range ranked[1:] { // the first fact is too long
				if !strings.Contains(block, "- "+e.Body+"\n") {
					break
				}
				in++
			}
			if lines := strings.Count(block, "\n- "); in != lines || in < 2 {
				t.Errorf("%s, %d: of %d facts, the %d that rank highest\n%s", name, budget, lines, in, block)
			}
		}
	}
}

// TestRecallIsRanked checks that recall returns the facts with all words, those with the highest rank first,
// or else the facts with the most words.
func TestRecallIsRanked(t *testing.T) {
	memory := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for i, e := range []agent.Entry{
		{Body: "The tea is in the hall.", Type: agent.MemoryReference}, {Body: "Ann hates cold tea.", Type: agent.MemoryFeedback},
		{Body: "緑茶が好き"}, {Body: "Tom drinks coffee in the hall.", Important: true},
	} {
		remember(t, memory, e, noon.Add(time.Duration(i)*time.Second))
	}
	for query, want := range map[string]string{
		"tea": "- Ann hates cold tea. (2026-01-02)\n- The tea is in the hall. (2026-01-02)", "tea of the hall": "- The tea is in the hall.",
		"hall coffee milk": "- Tom drinks coffee in the hall. (2026-01-02)\n- The tea", "緑茶 紅茶": "- 緑茶が好き", "milk": "Nothing is remembered",
		strings.Repeat("x", 600): "Error: cannot be remembered: a query has at most",
	} {
		m := &model{script: []message{{calls: []thinker.ToolCall{call("1", "recall", `{"query":"`+query+`"}`)}}, {texts: []string{"Done."}}}}
		answered(t, thinker.Options{Model: m, Memory: memory}, agent.Turn{})
		if got := m.asked[1].Messages[2].Text; !strings.HasPrefix(got, want) {
			t.Errorf("%.40s: %q, want %q", query, got, want)
		}
	}
}

// TestAPersonaInThePrompt checks that the persona of the turn replaces the persona in the options, and that
// the prompt contains the names of the persona and of the robot.
func TestAPersonaInThePrompt(t *testing.T) {
	household := agent.Persona{Name: "Chan", Text: "You are kind.", Language: "en"}
	for _, c := range []struct {
		turn      agent.Turn
		want, not []string
	}{
		{agent.Turn{}, []string{"You are kind.", "Your name is Chan.", "code en"}, []string{"called"}},
		{agent.Turn{Name: "Kitchen"}, []string{"You are kind.", `"Kitchen"`}, nil},
		{agent.Turn{Name: "Kitchen", Persona: &agent.Persona{Name: "Cook", Text: "You cook.", Language: "fr"}},
			[]string{"You cook.", "Your name is Cook.", "code fr", `"Kitchen"`}, []string{"kind", "Chan"}},
	} {
		m := &model{script: []message{{texts: []string{"Hi."}}}}
		c.turn.Body = &arm{}
		answered(t, thinker.Options{Model: m, Persona: household}, c.turn)
		given := m.asked[0].System
		for _, w := range c.want {
			if !strings.Contains(given, w) {
				t.Errorf("the prompt of %q has no %q: %s", c.turn.Name, w, given)
			}
		}
		for _, n := range c.not {
			if strings.Contains(given, n) {
				t.Errorf("the prompt of %q has %q: %s", c.turn.Name, n, given)
			}
		}
	}
}

// TestADraftRunsNoTools checks that the model's text is written while the person may still go on, and its calls run once
// the answer is certain.
func TestADraftRunsNoTools(t *testing.T) {
	for _, certain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := &model{script: []message{{texts: []string{"I turn."}, calls: []thinker.ToolCall{call("1", "self_robot_turn", `{"yaw":5}`)}}, {texts: []string{"Done."}}}}
			body, bus := &arm{}, event.NewBus()
			defer bus.Close()
			mind := agent.NewMind(agent.Always(thinker.New(thinker.Options{Model: m})), agent.NewMemory(&storetest.Table[agent.Entry]{}), bus, slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(t.Context())
			said := 0
			in := agent.Turn{Conversation: "c", Text: "Hello", Now: noon, Body: body}
			d := agent.NewDraft(ctx, in, func(r agent.Reply) {
				if _, says := r.(agent.Say); says {
					said++
				}
			})
			written := make(chan struct{})
			go func() {
				defer close(written)
				mind.Write(d)
			}()
			time.Sleep(time.Minute)
			synctest.Wait()
			if said != 1 || len(body.called) > 0 || len(m.asked) != 1 {
				t.Errorf("said %d sentences, called %v, asked %d times", said, body.called, len(m.asked))
			}
			if certain {
				must.Succeed(t, mind.AnswerDrafted(ctx, d, in, func(agent.Reply) error { return nil }))
			}
			cancel()
			<-written
			if calls := len(body.called); (calls == 1) != certain || (len(m.asked) == 2) != certain {
				t.Errorf("certain %v: %d calls, asked %d times", certain, calls, len(m.asked))
			}
		})
	}
}
