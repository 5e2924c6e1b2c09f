package reflex

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/language"
)

type memory interface {
	Of(t agent.Turn) *agent.Memory
}

type timers interface {
	Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error)
	Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error)
	Pending(robot device.ID, now time.Time) []agent.Timer
}

// Brain answers from one book for each of its languages.
type Brain struct {
	books  []*Book // of the household's languages
	others map[language.Tag]func() *Book
	name   string // the name it gives itself
	memory memory
	timers timers // may be nil
	skills skills // may be nil
}

// New returns a brain that calls itself name. At least one book is required; the first is
// for turns without a language. Without timers, it answers that it has none; without
// skills, it does not understand their sentences.
func New(books []*Book, name string, m memory, t timers, s skills) *Brain {
	return &Brain{books: books, name: name, memory: m, timers: t, skills: s}
}

// Others sets a function that loads the book of another language at its first turn. It
// must be called before the first turn.
func (b *Brain) Others(load func(tag string) (*Book, error)) {
	b.others = map[language.Tag]func() *Book{}
	for _, tag := range language.All() {
		b.others[tag] = sync.OnceValue(func() *Book {
			book, err := load(string(tag))
			if err != nil {
				return b.books[0] // the books are compiled in, and tested
			}
			return book
		})
	}
}

// in returns the book of a language, or the English one if it has none.
func (b *Brain) in(tag string) *Book {
	wanted, known := language.Match(tag)
	if !known {
		wanted = language.English
	}
	i := slices.IndexFunc(b.books, func(book *Book) bool { return book.language == wanted })
	switch {
	case tag == "":
		return b.books[0]
	case i >= 0:
		return b.books[i]
	case b.others[wanted] == nil:
		return b.books[0]
	}
	return b.others[wanted]()
}

// Name is "reflex".
func (*Brain) Name() string { return "reflex" }

// recognized is an utterance matched to an intent.
type recognized struct {
	intent intent
	filled map[string]item
}

// understand finds the first intent with a sentence that matches the text.
func (b *Book) understand(text string) (recognized, bool) {
	return b.matcher(text).understand(b.intents)
}

// inOrder returns the books to search for a turn: first the one of its language, then the
// household's, because people mix languages.
func (b *Brain) inOrder(tag string) []*Book {
	first := b.in(tag)
	others := slices.DeleteFunc(slices.Clone(b.books), func(other *Book) bool { return other == first })
	return append([]*Book{first}, others...)
}

// Think answers one turn, in the language of the matching book.
func (b *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	c := &command{brain: b, turn: t, out: out}
	books := b.inOrder(t.Language)
	for _, c.book = range books {
		if u, ok := c.book.understand(t.Text); ok {
			return c.answer(ctx, u)
		}
	}
	return sendAnswer(out, books[0].Phrase("unknown"), agent.Continue)
}

func (c *command) answer(ctx context.Context, u recognized) error {
	c.recognized = u
	answer, err := actions()[u.intent.Action](ctx, c)
	if err != nil {
		return err
	}
	return sendAnswer(c.out, c.fill(answer), cmp.Or(agent.End(u.intent.End), agent.Continue))
}

// sendAnswer sends an answer: its face, its sentences, and the end.
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

// command is an utterance that is being carried out.
type command struct {
	recognized
	brain *Brain
	book  *Book // of the language that was spoken
	turn  agent.Turn
	out   func(agent.Reply) error
	body  string    // the text to say now or later: a memory, the answer about a picture, a reminder
	left  string    // the remaining time of a timer
	due   time.Time // when a timer ends
	calls int
}

// fill replaces the placeholders in a text by the values of the slots and the
// results of the action.
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
		default:
			if it := c.filled[name]; it.number {
				return it.value
			}
			return c.filled[name].spoken
		}
	})
}

// value returns the value for the action: of a slot, or of the intent.
func (c *command) value() string {
	if c.intent.Value != "" {
		return c.intent.Value
	}
	for _, it := range c.filled {
		if it.number || it.value != it.spoken {
			return it.value
		}
	}
	return ""
}

func (c *command) call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	result, err := reportingBody{c.turn.Body, c}.Call(ctx, tool, arguments)
	return result.Text, err
}

// reportingBody is the turn's robot, which reports each call as a running tool.
type reportingBody struct {
	agent.Body
	command *command
}

// Call runs a tool and reports it.
func (b reportingBody) Call(ctx context.Context, tool string, arguments map[string]any) (result device.Result, err error) {
	err = b.command.report(tool, func() (err error) {
		result, err = b.Body.Call(ctx, tool, arguments)
		return err
	})
	return result, err
}
