package reflex

import (
	"context"
	"fmt"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
)

// memory finds the one that a turn reads and writes.
type memory interface {
	Of(t agent.Turn) *agent.Memory
}

// timers is what the brain uses of the house's timers.
type timers interface {
	Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error)
	Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error)
	Pending(robot device.ID, now time.Time) []agent.Timer
}

// Brain answers from a book.
type Brain struct {
	book   *Book
	name   string // what it calls itself
	memory memory
	timers timers // nil where there are none
}

// New returns a brain that calls itself name. Without timers, the sentences
// about them are answered by saying so.
func New(book *Book, name string, m memory, t timers) *Brain {
	return &Brain{book: book, name: name, memory: m, timers: t}
}

// Name is "reflex".
func (*Brain) Name() string { return "reflex" }

// understood is an utterance that is one of the sentences.
type understood struct {
	intent intent
	taken  map[string]item
}

// understand finds the first intent one of whose sentences is the text.
func (b *Book) understand(text string) (understood, bool) {
	m := &matcher{words: normal(text), lists: b.lists, numbers: b.lists[b.numbers]}
	if len(m.words) == 0 || len(m.words) > mostWords {
		return understood{}, false
	}
	for _, in := range b.intents {
		for _, s := range in.sentences {
			if m.matches(s.tree) {
				return understood{in, m.taken}, true
			}
		}
	}
	return understood{}, false
}

// Understands reports whether a text is one of the book's sentences.
func (b *Book) Understands(text string) bool {
	_, ok := b.understand(text)
	return ok
}

// Think answers one turn.
func (b *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	u, ok := b.book.understand(t.Text)
	if !ok {
		return say(out, b.book.phrases["unknown"], agent.Continue)
	}
	d := &deed{brain: b, turn: t, out: out, understood: u}
	answer, err := actions()[u.intent.action](ctx, d)
	if err != nil {
		return err
	}
	end := agent.Continue
	if u.intent.end != "" {
		end = agent.End(u.intent.end)
	}
	return say(out, d.fill(answer), end)
}

// say gives an answer: its face, its sentences, and the end.
func say(out func(agent.Reply) error, answer string, end agent.End) error {
	face, text := agent.SplitEmotion(answer)
	replies := []agent.Reply{agent.Felt{Emotion: face}}
	for _, s := range thinker.Sentences(text) {
		replies = append(replies, agent.Say{Text: s})
	}
	for _, r := range append(replies, agent.Done{End: end}) {
		if err := out(r); err != nil {
			return err
		}
	}
	return nil
}

// deed is an utterance being acted upon.
type deed struct {
	understood
	brain *Brain
	turn  agent.Turn
	out   func(agent.Reply) error
	body  string // what was recalled, seen, or is to be told later
	left  string // what a timer still has
	calls int
}

// fill puts into a text what was said in the slots and what is asked for.
func (d *deed) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		switch name := strings.Trim(p, "{}"); name {
		case "time":
			return d.turn.Now.Format(d.brain.book.timeFormat)
		case "date":
			return d.date()
		case "name":
			if own := d.turn.Persona; own != nil && own.Name != "" {
				return own.Name
			}
			return d.brain.name
		case "body":
			return d.body
		case "left":
			return d.left
		default:
			if d.brain.book.lists[name].numbers {
				return d.taken[name].value
			}
			return d.taken[name].spoken
		}
	})
}

func (d *deed) date() string {
	b, now := d.brain.book, d.turn.Now
	return strings.NewReplacer("{weekday}", b.weekdays[now.Weekday()], "{month}", b.months[now.Month()-1],
		"{day}", itoa(now.Day())).Replace(b.dateFormat)
}

// value is what the action is given: what was said in the slot, or what the
// intent says.
func (d *deed) value() string {
	if d.intent.value != "" {
		return d.intent.value
	}
	for name, it := range d.taken {
		if d.brain.book.lists[name].numbers || it.value != it.spoken {
			return it.value
		}
	}
	return ""
}

// call runs a tool of the robot, tells of it, and returns its answer in words.
func (d *deed) call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	result, err := showing{d.turn.Body, d}.Call(ctx, tool, arguments)
	return result.Text, err
}

// showing is the turn's robot, with every call shown as a tool at work.
type showing struct {
	agent.Body
	deed *deed
}

// Call runs a tool and tells of it.
func (s showing) Call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	d := s.deed
	d.calls++
	status := event.ToolStatus{ID: fmt.Sprintf("%s-%d", d.turn.Session, d.calls), Name: tool, Status: event.ToolRunning}
	if err := d.out(agent.ToolStatus{ToolStatus: status}); err != nil {
		return device.Result{}, err
	}
	result, failure := s.Body.Call(ctx, tool, arguments)
	status.Status = event.ToolDone
	if failure != nil {
		status.Status, status.Detail = event.ToolFailed, failure.Error()
	}
	if err := d.out(agent.ToolStatus{ToolStatus: status}); err != nil {
		return device.Result{}, err
	}
	return result, failure
}
