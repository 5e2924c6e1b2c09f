package reflex

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/language"
)

// timers sets, cancels and lists timers and reminders. It is implemented by notice.Timers, where
// the methods are documented.
type timers interface {
	Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error)
	// Cancel cancels timers and returns their number.
	Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error)
	// Pending returns the timers of a robot that have not rung, the next one first.
	Pending(robot device.ID, now time.Time) []agent.Timer
}

// Brain is a reflex brain with one book for each of its languages. It implements
// agent.Brain.
type Brain struct {
	books  []*Book                       // books for the configured languages
	others map[language.Tag]func() *Book // functions that load the books for other languages
	name   string                        // name of the robot in answers, unless the persona has one
	memory *agent.Memory
	timers timers // may be nil
	skills skills // may be nil
}

// New returns a brain with these books; at least one is required, and the first is used for
// turns without a language. name is the robot's name in answers to turns without a persona's name.
// If t is nil, the brain answers sentences about timers with the phrase "no_tool"; if s is nil, it
// does not perform skills.
func New(books []*Book, name string, m *agent.Memory, t timers, s skills) *Brain {
	return &Brain{books: books, name: name, memory: m, timers: t, skills: s}
}

// LoadOthers sets a function that loads the book for another language. The function is called at
// the first turn in that language. LoadOthers must be called before the first turn.
func (b *Brain) LoadOthers(load func(tag string) (*Book, error)) {
	b.others = map[language.Tag]func() *Book{}
	for _, tag := range language.All() {
		b.others[tag] = sync.OnceValue(func() *Book {
			book, err := load(string(tag))
			if err != nil {
				return b.books[0] // tests ensure that the embedded books load
			}
			return book
		})
	}
}

// bookFor returns the book for a language tag: the first book for "", and the English book for a
// language that is not supported. Without LoadOthers it returns the first book if b.books has no
// book for the language.
func (b *Brain) bookFor(tag string) *Book {
	matched, ok := language.Match(tag)
	if !ok {
		matched = language.English
	}
	i := slices.IndexFunc(b.books, func(book *Book) bool { return book.language == matched })
	switch {
	case tag == "":
		return b.books[0]
	case i >= 0:
		return b.books[i]
	case b.others[matched] == nil:
		return b.books[0]
	}
	return b.others[matched]()
}

// Name returns "reflex".
func (*Brain) Name() string { return "reflex" }

// Drafts implements agent.Drafter.
func (*Brain) Drafts() bool { return true }

// match is the intent that an utterance has matched.
type match struct {
	intent intent
	filled map[string]item // the slots that the utterance has filled; key: name of the slot
}

// match returns the first intent with a sentence that matches the text.
func (b *Book) match(text string) (m match, ok bool) {
	return b.newMatcher(text).match(b.intents)
}

// booksFor returns the books to search for a turn with this language tag: the book for the
// language, and then the books for the configured languages, because people mix languages.
func (b *Brain) booksFor(tag string) []*Book {
	first := b.bookFor(tag)
	others := slices.DeleteFunc(slices.Clone(b.books), func(other *Book) bool { return other == first })
	return append([]*Book{first}, others...)
}

// Think implements agent.Brain. It answers in the language of the book that matches. If none
// matches, it says in the turn's language that it has not understood.
func (b *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	c := &command{brain: b, turn: t, out: out}
	books := b.booksFor(t.Language)
	for _, c.book = range books {
		if m, ok := c.book.match(t.Text); ok {
			return c.run(ctx, m)
		}
	}
	return sendAnswer(out, books[0].Phrase("unknown"), agent.Continue)
}

// run carries out the command and sends its answer.
func (c *command) run(ctx context.Context, m match) error {
	c.match = m
	if m.intent.Action != "" {
		if err := c.turn.Settle(ctx); err != nil {
			return err
		}
	}
	answer, err := actions()[m.intent.Action](ctx, c)
	if err != nil {
		return err
	}
	return sendAnswer(c.out, c.fill(answer), cmp.Or(agent.End(m.intent.End), agent.Continue))
}

// sendAnswer sends the replies of an answer: its face, its sentences, and Done.
func sendAnswer(out func(agent.Reply) error, answer string, end agent.End) error {
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

// command is a command that is being carried out.
type command struct {
	match
	brain *Brain
	book  *Book // the book with the matching sentence
	turn  agent.Turn
	out   func(agent.Reply) error
	calls int // number of tool calls

	// Results of the action, for placeholders in the answer.
	body string    // a remembered fact, the answer about a picture, or the answer of a skill
	left string    // the remaining time of a timer
	due  time.Time // when a timer ends or an alarm rings
	days string    // the days on which an alarm rings
}

// fill replaces the placeholders in a text by the contents of slots, the time, the date, the
// robot's name and the results of the action. The content of a slot is empty if the utterance
// has not filled the slot.
func (c *command) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		switch name := strings.Trim(p, "{}"); name {
		case "time":
			return c.book.words().Time(c.turn.Now)
		case "clock":
			return c.book.words().Clock(c.turn.Now)
		case "date":
			return c.book.words().Date(c.turn.Now)
		case "name":
			if own := c.turn.Persona; own != nil && own.Name != "" {
				return own.Name
			}
			return c.brain.name
		case "body":
			return c.body
		case "left":
			return c.left
		case "due":
			return c.book.words().Time(c.due)
		case daysSlot:
			return c.days
		default:
			if it := c.filled[name]; it.isNumber {
				return it.value
			}
			return c.filled[name].spoken
		}
	})
}

// value returns the value for the action: the value of the intent, if set, or else the
// value of a filled slot that is a number or whose value differs from its spoken form, or "". Of
// several such slots, value chooses the first by name.
func (c *command) value() string {
	if c.intent.Value != "" {
		return c.intent.Value
	}
	for _, slot := range slices.Sorted(maps.Keys(c.filled)) {
		if it := c.filled[slot]; it.isNumber || it.value != it.spoken {
			return it.value
		}
	}
	return ""
}

// call calls a tool of the robot and returns the text of its result.
func (c *command) call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	result, err := reportingBody{c.turn.Body, c}.Call(ctx, tool, arguments)
	return result.Text, err
}

// reportingBody is a robot whose tool calls are reported by agent.ToolStatus.
type reportingBody struct {
	agent.Body
	command *command
}

// Call calls a tool and reports it.
func (b reportingBody) Call(ctx context.Context, tool string, arguments map[string]any) (result device.Result, err error) {
	err = b.command.report(tool, func() (err error) {
		result, err = b.Body.Call(ctx, tool, arguments)
		return err
	})
	return result, err
}
