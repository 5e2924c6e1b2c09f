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

// Rule is the owner's reaction to an event of a robot.
type Rule struct {
	Name string // for the log; empty means its number
	When When
	// Every is the shortest interval between two executions.
	Every time.Duration
	Hours Hours // when it applies; zero means all day
	// InTalk also executes the rule during a talk with a person.
	InTalk bool
	Do     []Act // in order
}

// When is the condition of a rule.
type When struct {
	Event string             // its name, as sent by the robot
	Robot device.ID          // empty means every robot
	If    map[string]Compare // on the event's data, by key; all must hold
}

// Compare is a condition on a value. Nil or empty fields are ignored.
type Compare struct {
	Is    any      // equal to this text, number or boolean
	Not   any      // anything else, including no value
	OneOf []any    // one of these
	Above *float64 // a number above this
	Below *float64 // a number below this
}

// Acts of rules only.
type (
	// CallTool calls one of the robot's tools. Robots without the tool are skipped.
	CallTool struct {
		Name      string
		Arguments map[string]any
	}
	// Feel shows a face on the robot.
	Feel struct{ Emotion string }
	// Publish publishes on a topic of the MQTT broker.
	Publish struct{ Topic, Payload string }
	// Notify sends a notification, which is not spoken in the quiet hours.
	Notify struct {
		Text   string
		Silent bool
	}
)

func (CallTool) isAct() {}
func (Feel) isAct()     {}
func (Publish) isAct()  {}
func (Notify) isAct()   {}

// outside executes the acts that do not use the robot's tools.
type outside interface {
	Feel(ctx context.Context, id device.ID, emotion string) error
	Publish(ctx context.Context, topic, payload string) error
	Notify(ctx context.Context, id device.ID, text string, aloud bool) error
}

// Bounds of the rules.
const (
	mostRules = 100
	mostDo    = 20
	mostTopic = 256 // bytes
)

// CheckRules returns all faults of the rules, each with its key, such as
// "rules[2].do[0].say". It wraps ErrRule.
func CheckRules(rules []Rule) error {
	var c checker
	if len(rules) > mostRules {
		c.fault("rules", fmt.Errorf("there are %d, more than %d", len(rules), mostRules))
	}
	for i, r := range rules {
		r.check(&c, fmt.Sprintf("rules[%d]", i))
	}
	if err := errors.Join(c.faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrRule, err)
	}
	return nil
}

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
	if len(r.Do) == 0 || len(r.Do) > mostDo {
		c.fault(key+".do", fmt.Errorf("it does %d things; a rule does 1 to %d", len(r.Do), mostDo))
	}
	for i, a := range r.Do {
		checkAct(c, fmt.Sprintf("%s.do[%d]", key, i), a)
	}
}

func (q Compare) check(c *checker, key string) {
	if q.Is == nil && q.Not == nil && q.OneOf == nil && q.Above == nil && q.Below == nil {
		c.fault(key, errors.New("it asks nothing; give is, not, one_of, above or below"))
	}
	for _, v := range append([]any{q.Is, q.Not}, q.OneOf...) {
		switch v.(type) {
		case nil, string, bool, int, float64:
		default:
			c.fault(key, fmt.Errorf("%s is no text, number or truth", plain.Clip(fmt.Sprint(v), 40)))
		}
	}
}

func checkAct(c *checker, key string, a Act) {
	switch a := a.(type) {
	case Say:
		c.words(key+".say", a.Text)
	case Notify:
		c.words(key+".notify", a.Text)
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
		if len(a.Topic) > mostTopic || strings.ContainsAny(a.Topic, "+#\x00") || len(a.Payload) > limit.Data {
			c.fault(key+".publish", fmt.Errorf("a topic has no + and no #, at most %d bytes and %d of payload", mostTopic, limit.Data))
		}
	case Abort, RefreshFace:
	default:
		c.fault(key, errors.New("it does nothing"))
	}
}

func (c *checker) words(key, s string) {
	c.text(key, s)
	c.required(key, strings.TrimSpace(s))
}

func (c *checker) required(key, s string) {
	if s == "" {
		c.fault(key, errors.New("it is empty"))
	}
}

// ruleHolds is how long a rule's turn reserves the head.
const ruleHolds = 5 * time.Second

// rule executes one rule for one robot.
type rule struct {
	Rule
	noTimer
	executed time.Time
}

// ruleBehaviours returns rules as behaviours.
func ruleBehaviours(rules []Rule) []behaviour {
	all := make([]behaviour, 0, len(rules))
	for i, r := range rules {
		if r.Name == "" {
			r.Name = fmt.Sprintf("rules[%d]", i)
		}
		r.Do = slices.Clone(r.Do)
		for i, a := range r.Do {
			if turn, ok := a.(TurnHead); ok {
				turn.Priority, turn.Hold = PriorityRule, ruleHolds
				r.Do[i] = turn
			}
		}
		all = append(all, &rule{Rule: r})
	}
	return all
}

func (r *rule) name() string { return r.Name }

func (r *rule) step(m moment) []Act {
	p, sensed := m.event.(event.Perceived)
	if !sensed || p.Name != r.When.Event || r.When.Robot != "" && r.When.Robot != m.state.Robot ||
		r.Hours != (Hours{}) && !r.Hours.Contains(m.local) || !r.InTalk && m.state.talk.person || !m.passed(r.executed, r.Every) ||
		!r.When.matches(p.Data) {
		return nil
	}
	r.executed = m.now
	return r.Do
}

// matches reports whether an event's data meets the rule's conditions.
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

func (q Compare) matches(v any) bool {
	n, number := v.(float64)
	return (q.Is == nil || same(v, q.Is)) &&
		(q.Not == nil || !same(v, q.Not)) &&
		(q.OneOf == nil || slices.ContainsFunc(q.OneOf, func(one any) bool { return same(v, one) })) &&
		(q.Above == nil || number && n > *q.Above) &&
		(q.Below == nil || number && n < *q.Below)
}

// same compares a value of JSON with one of the configuration.
func same(v, want any) bool {
	if n, whole := want.(int); whole {
		want = float64(n)
	}
	switch want.(type) {
	case string, bool, float64:
		return v == want
	}
	return false
}
