package perception

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// ErrRule is wrapped by the errors for an invalid rule.
var ErrRule = errors.New("not a rule")

// Rule is an owner's rule: acts to execute after a perception.
type Rule struct {
	Name  string // for the log; if empty, "rules[N]" is logged
	When  When
	Every time.Duration // shortest interval between two executions
	Hours Hours         // when the rule applies; zero means all day
	// InTalk is whether the rule is also executed during a person's turn.
	InTalk bool
	Do     []Act // executed in order
}

// When is the condition of a rule.
type When struct {
	Event string             // name of the perception, such as "sound_event"
	Robot device.ID          // empty means every robot
	If    map[string]Compare // conditions on the fields of the perception's data, by key; all must hold
}

// Compare is a condition on a value. All conditions that are set must hold.
type Compare struct {
	Is    any      // the value equals this text, number or boolean
	Not   any      // the value differs from this text, number or boolean, or is missing
	OneOf []any    // the value equals one of these texts, numbers and booleans
	Above *float64 // the value is a number greater than Above
	Below *float64 // the value is a number less than Below
}

// Acts that only rules request, except Feel, which other behaviours request too.
type (
	// CallTool calls one of the robot's tools. It does nothing if the robot does not have the tool.
	CallTool struct {
		Name      string
		Arguments map[string]any
	}
	// Feel shows an emotion on the robot's face.
	Feel struct{ Emotion string }
	// Publish publishes a message on the MQTT broker.
	Publish struct{ Topic, Payload string }
	// Notify sends a notification to the robot's owner. The notification is not spoken in the
	// quiet hours, or if Silent is true.
	Notify struct {
		Text   string
		Silent bool
	}
)

func (CallTool) isAct() {}
func (Feel) isAct()     {}
func (Publish) isAct()  {}
func (Notify) isAct()   {}

// services execute the acts that do not use the robot's tools.
type services interface {
	Feel(ctx context.Context, id device.ID, emotion string) error
	Publish(ctx context.Context, topic, payload string) error
	Notify(ctx context.Context, id device.ID, text string, aloud bool) error
}

// Limits of the rules.
const (
	maxRules      = 100
	maxActs       = 20  // of one rule
	maxTopicBytes = 256 // bytes
)

// CheckRules returns an error with all faults of the rules, each with its configuration
// key, such as "rules[2].do[0].say". The error wraps ErrRule.
func CheckRules(rules []Rule) error {
	var c checker
	if len(rules) > maxRules {
		c.fault("rules", fmt.Errorf("there are %d, more than %d", len(rules), maxRules))
	}
	for i, r := range rules {
		r.check(&c, fmt.Sprintf("rules[%d]", i))
	}
	if err := errors.Join(c.faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrRule, err)
	}
	return nil
}

// check adds the faults of a rule to c.
func (r Rule) check(c *checker, key string) {
	if err := checkName(r.When.Event); err != nil {
		c.fault(key+".when.event", err)
	}
	if r.When.Robot != "" {
		if _, err := device.ParseID(string(r.When.Robot)); err != nil {
			c.fault(key+".when.robot", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.When.If)) {
		r.When.If[name].check(c, key+".when.if."+name)
	}
	c.every(key+".every", r.Every)
	c.hours(key+".hours", r.Hours)
	if len(r.Do) == 0 || len(r.Do) > maxActs {
		c.fault(key+".do", fmt.Errorf("it has %d acts; a rule has 1 to %d", len(r.Do), maxActs))
	}
	for i, a := range r.Do {
		checkAct(c, fmt.Sprintf("%s.do[%d]", key, i), a)
	}
}

// check adds the faults of a condition to c.
func (q Compare) check(c *checker, key string) {
	if q.Is == nil && q.Not == nil && q.OneOf == nil && q.Above == nil && q.Below == nil {
		c.fault(key, errors.New("the condition is empty; give is, not, one_of, above or below"))
	}
	for _, v := range append([]any{q.Is, q.Not}, q.OneOf...) {
		switch v.(type) {
		case nil, string, bool, int, float64:
		default:
			c.fault(key, fmt.Errorf("%s is not a text, number or boolean", plain.Clip(fmt.Sprint(v), 40)))
		}
	}
}

// checkAct adds the faults of a rule's act to c.
func checkAct(c *checker, key string, a Act) {
	switch a := a.(type) {
	case Say:
		c.spokenText(key+".say", a.Text)
	case Notify:
		c.spokenText(key+".notify", a.Text)
	case TurnHead:
		pitch := 0
		if a.Pitch != nil {
			pitch = *a.Pitch
		}
		c.head(key+".head", a.Yaw, pitch, a.Speed)
	case Lights:
		if min(a.Red, a.Green, a.Blue) < 0 || max(a.Red, a.Green, a.Blue) > 255 {
			c.fault(key+".lights", errors.New("a colour is from 0 to 255"))
		}
	case Play:
		c.sound(key+".play", a.Sound)
	case CallTool:
		c.required(key+".tool", a.Name)
	case Feel:
		c.required(key+".emotion", a.Emotion)
	case SetState:
		c.required(key+".state", a.State)
	case Publish:
		c.required(key+".publish.topic", a.Topic)
		if len(a.Topic) > maxTopicBytes || strings.ContainsAny(a.Topic, "+#\x00") || len(a.Payload) > limit.Data {
			c.fault(key+".publish", fmt.Errorf("a topic has at most %d bytes, without + and #, and its payload at most %d bytes", maxTopicBytes, limit.Data))
		}
	case Abort, RefreshFace:
	default:
		c.fault(key, errors.New("it has no act"))
	}
}

// spokenText checks a text that must not be empty.
func (c *checker) spokenText(key, s string) {
	c.text(key, s)
	c.required(key, strings.TrimSpace(s))
}

// required checks that s is not empty.
func (c *checker) required(key, s string) {
	if s == "" {
		c.fault(key, errors.New("it is empty"))
	}
}

// ruleHold is how long the head stays reserved after a turn by a rule.
const ruleHold = 5 * time.Second

// rule is the behaviour that executes one rule.
type rule struct {
	Rule
	noTimer
	executed time.Time // when the rule was last executed
}

// ruleBehaviours returns a behaviour for each rule.
func ruleBehaviours(rules []Rule) []behaviour {
	result := make([]behaviour, 0, len(rules))
	for i, r := range rules {
		if r.Name == "" {
			r.Name = fmt.Sprintf("rules[%d]", i)
		}
		r.Do = slices.Clone(r.Do)
		for i, a := range r.Do {
			if turn, ok := a.(TurnHead); ok {
				turn.Priority, turn.Hold = PriorityRule, ruleHold
				r.Do[i] = turn
			}
		}
		result = append(result, &rule{Rule: r})
	}
	return result
}

func (r *rule) name() string { return r.Name }

func (r *rule) step(m moment) []Act {
	p, ok := m.event.(event.Perceived)
	if !ok || p.Name != r.When.Event || r.When.Robot != "" && r.When.Robot != m.state.Robot ||
		r.Hours != (Hours{}) && !r.Hours.Contains(m.local) || !r.InTalk && m.state.conversation.person || !m.hasPassed(r.executed, r.Every) ||
		!r.When.matches(p.Data) {
		return nil
	}
	r.executed = m.now
	return r.Do
}

// matches reports whether the data of a perception meets the conditions w.If.
func (w When) matches(data json.RawMessage) bool {
	if len(w.If) == 0 {
		return true
	}
	var values map[string]any
	if json.Unmarshal(data, &values) != nil {
		return false
	}
	for name, q := range w.If {
		if !q.matches(values[name]) {
			return false
		}
	}
	return true
}

// matches reports whether a decoded JSON value meets the condition.
func (q Compare) matches(v any) bool {
	n, isNumber := v.(float64)
	return (q.Is == nil || isEqual(v, q.Is)) &&
		(q.Not == nil || !isEqual(v, q.Not)) &&
		(q.OneOf == nil || slices.ContainsFunc(q.OneOf, func(want any) bool { return isEqual(v, want) })) &&
		(q.Above == nil || isNumber && n > *q.Above) &&
		(q.Below == nil || isNumber && n < *q.Below)
}

// isEqual reports whether a decoded JSON value equals a value of the configuration.
func isEqual(v, want any) bool {
	if n, isInt := want.(int); isInt {
		want = float64(n)
	}
	switch want.(type) {
	case string, bool, float64:
		return v == want
	}
	return false
}
