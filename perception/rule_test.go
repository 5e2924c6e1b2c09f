package perception

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perch/event"
	"perch/must"
)

func number(f float64) *float64 { return &f }

func TestRules(t *testing.T) {
	say := []Act{Say{Text: "yes"}}
	when := func(event string, data map[string]Compare) When { return When{Event: event, If: data} }
	for name, c := range map[string]struct {
		rule   Rule
		begin  string
		script string
		want   string
	}{
		"its event": {Rule{When: when("battery_low", nil), Do: say}, "", "1s battery_low {}; 2s battery_high {}", "1s say yes"},
		"too soon again": {Rule{When: when("x", nil), Every: minute, Do: say}, "", "0s x {}; 59s x {}; 60s x {}",
			"0s say yes; 1m0s say yes"},
		"what does not hold rests not": {Rule{When: when("x", map[string]Compare{"n": {Is: 1}}), Every: minute, Do: say}, "",
			`0s x {"n":2}; 1s x {"n":1}`, "1s say yes"},
		"out of its hours": {Rule{When: when("x", nil), Hours: Hours{From: 13 * hour, To: 14 * hour}, Do: say}, "",
			"0s x {}; 1h x {}; 2h x {}", "1h0m0s say yes"},
		"another robot": {Rule{When: When{Event: "x", Robot: chan2}, Do: say}, "", "0s x {}", ""},
		"this robot":    {Rule{When: When{Event: "x", Robot: chan1}, Do: say}, "", "0s x {}", "0s say yes"},
		"in a talk":     {Rule{When: when("x", nil), Do: say}, "", "0s heard x; 1s x {}; 2s ends; 3s x {}", "3s say yes"},
		"in a talk too": {Rule{When: when("x", nil), InTalk: true, Do: say}, "", "0s heard x; 1s x {}", "1s say yes"},
		"in the quiet hours": {Rule{When: when("x", nil),
			Do: append([]Act{Notify{Text: "n"}, Publish{"t", "p"}, TurnHead{Speed: 100}, Lights{}}, say...)}, "23:00", "0s x {}",
			"0s perception.Notify; 0s perception.Publish"},
		"the channel is closed": {Rule{When: when("x", nil), Do: append([]Act{Notify{Text: "n"}}, say...)}, "", "0s offline; 1s x {}",
			"1s perception.Notify"},
		"in order": {Rule{When: when("x", nil), Do: []Act{Lights{1, 2, 3}, Play{"chime"}, TurnHead{Yaw: 10, Speed: 100}}}, "",
			"0s x {}", "0s lights 1 2 3; 0s play chime; 0s turn 10"},
		"a text": {Rule{When: when("x", map[string]Compare{"s": {Is: "on"}}), Do: say}, "",
			`0s x {"s":"off"}; 1s x {"s":"on"}; 2s x {"s":1}`, "1s say yes"},
		"a truth": {Rule{When: when("x", map[string]Compare{"s": {Is: true}}), Do: say}, "",
			`0s x {"s":"true"}; 1s x {"s":true}`, "1s say yes"},
		"anything but": {Rule{When: when("x", map[string]Compare{"s": {Not: "on"}}), Do: say}, "",
			`0s x {"s":"on"}; 1s x {"s":"off"}; 2s x {}`, "1s say yes; 2s say yes"},
		"one of": {Rule{When: when("x", map[string]Compare{"s": {OneOf: []any{"a", 2}}}), Do: say}, "",
			`0s x {"s":"b"}; 1s x {"s":2}; 2s x {"s":"a"}; 3s x {"s":[2]}`, "1s say yes; 2s say yes"},
		"above": {Rule{When: when("x", map[string]Compare{"n": {Above: number(5)}}), Do: say}, "",
			`0s x {"n":5}; 1s x {"n":5.1}; 2s x {"n":"9"}; 3s x {}`, "1s say yes"},
		"between": {Rule{When: when("x", map[string]Compare{"n": {Above: number(5), Below: number(7)}}), Do: say}, "",
			`0s x {"n":5}; 1s x {"n":6}; 2s x {"n":7}`, "1s say yes"},
		"both": {Rule{When: when("x", map[string]Compare{"a": {Is: 1}, "b": {Is: 2}}), Do: say}, "",
			`0s x {"a":1}; 1s x {"a":1,"b":2}`, "1s say yes"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.rule.Every == 0 {
				c.rule.Every = time.Second
			}
			must.Succeed(t, CheckRules([]Rule{c.rule}))
			tuning := Tuning{}
			nightly(&tuning)
			reactor := newReactor(Options{Tuning: tuning, Zone: time.UTC, Rules: []Rule{c.rule}})
			if got := play(t, reactor, c.begin, c.script); got != c.want {
				t.Errorf("%s\n     done: %s\nshould be: %s", c.script, got, c.want)
			}
		})
	}
}

// TestRulesHavePrecedence checks that the turns of rules have precedence over those of other behaviours.
func TestRulesHavePrecedence(t *testing.T) {
	rules := []Rule{{When: When{Event: "sound_event"}, Every: time.Second, Do: []Act{TurnHead{Yaw: 7, Speed: 100}}}}
	c := newReactor(Options{Tuning: DefaultTuning(), Zone: time.UTC, Rules: rules})
	if got, want := play(t, c, "", "0s sound left; 4s sound right; 20s sound right"), "0s turn -45; 0s turn 7; 20s turn 45; 20s turn 7"; got != want {
		t.Errorf("done: %s", got)
	}
}

// TestNotifiedInTheQuietHours checks that a notification in the quiet hours is shown, but not spoken.
func TestNotifiedInTheQuietHours(t *testing.T) {
	withBehaviours(t, func(o *Options) {
		o.Tuning.Quiet.Hours = Hours{To: 24 * time.Hour}
		o.Rules = []Rule{{When: When{Event: "doorbell"}, Every: time.Second, Do: []Act{Notify{Text: "The bell"}, Say{Text: "The bell!"}}}}
	}, func(t *testing.T, h *running) {
		h.play(t, "1s doorbell {}; 2s .")
		if got := h.all(); got != "1s show The bell" {
			t.Errorf("done: %s", got)
		}
	})
}

// TestRulesAct checks that all kinds of acts are executed in order.
func TestRulesAct(t *testing.T) {
	withBehaviours(t, func(o *Options) {
		o.Rules = []Rule{{Name: "door", When: When{Event: "doorbell"}, Every: time.Second, Do: []Act{
			Feel{"surprised"}, CallTool{stateTool, map[string]any{"state": "talk"}}, CallTool{"self.none", nil}, Publish{"door/bell", "ON"},
			Notify{Text: "The bell"}, Say{Text: "The bell!"},
		}}}
	}, func(t *testing.T, h *running) {
		h.slow = 5 * time.Second
		h.play(t, "1s doorbell {}; 20s .")
		want := "1s feel surprised; 1s set_state map[state:talk]; 6s publish door/bell ON; 6s notify The bell; 6s say The bell!"
		if got := h.all(); got != want {
			t.Errorf("done: %s", got)
		}
	})
}

func TestCheckRules(t *testing.T) {
	good := Rule{When: When{Event: "x"}, Every: time.Second, Do: []Act{Abort{}, RefreshFace{}}}
	must.Succeed(t, CheckRules([]Rule{good, good}))
	pitch := 91
	for want, spoil := range map[string]func(*Rule){
		"rules[1].when.event: ":                      func(r *Rule) { r.When.Event = "a\tb" },
		"rules[1].when.robot: ":                      func(r *Rule) { r.When.Robot = "kitchen" },
		"rules[1].when.if.n: the condition is empty": func(r *Rule) { r.When.If = map[string]Compare{"n": {}} },
		"rules[1].when.if.n: [1]":                    func(r *Rule) { r.When.If = map[string]Compare{"n": {Is: []any{1}}} },
		"rules[1].every: ":                           func(r *Rule) { r.Every = 0 },
		"rules[1].do: it has 0 acts":                 func(r *Rule) { r.Do = nil },
		"rules[1].do: it has 21 acts":                func(r *Rule) { r.Do = make([]Act, 21) },
		"rules[1].do[0]: it has no act":              func(r *Rule) { r.Do = []Act{nil} },
		"rules[1].do[1].say: it is empty":            func(r *Rule) { r.Do = []Act{Abort{}, Say{Text: " "}} },
		"rules[1].do[0].notify: ":                    func(r *Rule) { r.Do = []Act{Notify{Text: strings.Repeat("x", 501)}} },
		"rules[1].do[0].head.pitch: ":                func(r *Rule) { r.Do = []Act{TurnHead{Pitch: &pitch, Speed: 100}} },
		"rules[1].do[0].lights: ":                    func(r *Rule) { r.Do = []Act{Lights{0, 256, 0}} },
		"rules[1].do[0].play: ":                      func(r *Rule) { r.Do = []Act{Play{"a/b"}} },
		"rules[1].do[0].tool: ":                      func(r *Rule) { r.Do = []Act{CallTool{}} },
		"rules[1].do[0].emotion: ":                   func(r *Rule) { r.Do = []Act{Feel{}} },
		"rules[1].do[0].state: ":                     func(r *Rule) { r.Do = []Act{SetState{}} },
		"rules[1].do[0].publish: ":                   func(r *Rule) { r.Do = []Act{Publish{"a/#", ""}} },
		"rules[1].do[0].publish.topic: ":             func(r *Rule) { r.Do = []Act{Publish{}} },
	} {
		r := good
		spoil(&r)
		if err := CheckRules([]Rule{good, r}); !errors.Is(err, ErrRule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v", want, err)
		}
	}
	if err := CheckRules(make([]Rule, 101)); err == nil {
		t.Error("101 rules")
	}
	bus := event.NewBus()
	defer bus.Close()
	if _, err := NewBehaviours(Options{Tuning: DefaultTuning(), Bus: bus, Rules: []Rule{{}}}); !errors.Is(err, ErrRule) {
		t.Errorf("behaviours begin with %v", err)
	}
}
