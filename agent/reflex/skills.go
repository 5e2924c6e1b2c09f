package reflex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"perch/agent"
	"perch/event"
)

// skills are the additional abilities of characters.
type skills interface {
	// Answer performs a skill for a turn, and returns the text to say. has reports
	// whether the turn's character has the skill; args is an object.
	Answer(ctx context.Context, t agent.Turn, name string, args json.RawMessage) (said string, has bool, err error)
}

// skillAction performs a skill.
const skillAction = "skill"

// Language returns the book's language, BCP 47.
func (b *Book) Language() string { return string(b.language) }

// AddSkill makes sentences perform a skill. The values of their slots are its arguments.
// A sentence is left out if it is invalid, has an unknown list, or can match the same
// utterance as an existing sentence; the returned error joins one error for each.
// AddSkill must not be called once the book is in use.
func (b *Book) AddSkill(name string, sentences []string) error {
	in := intent{fileIntent: fileIntent{name: "skill " + name, Action: skillAction, Value: name, Answer: "😊 {body}"},
		source: "the skill " + name, bundled: true}
	var faults []error
	for _, text := range sentences {
		s, err := b.addition(in.source, text)
		if err != nil {
			faults = append(faults, fmt.Errorf("the sentence %.200q of the skill %s is not listened for: %w", text, name, err))
			continue
		}
		in.sentences = append(in.sentences, s)
	}
	if len(in.sentences) > 0 {
		b.intents = append(b.intents, in)
	}
	return errors.Join(faults...)
}

// addition parses a sentence and checks that it does not conflict with others.
func (b *Book) addition(source, text string) (sentence, error) {
	tree, err := parseSentence(text)
	if err != nil {
		return sentence{}, fmt.Errorf("%w; correct it in the skill's manifest.json", err)
	}
	s := sentence{tree, slots(tree), source}
	for _, of := range s.slots {
		if _, known := b.lists[of.list]; !known {
			return sentence{}, fmt.Errorf("there is no list {%s}; add one to the reflex brain's sentences, or write the words", of.list)
		}
	}
	for _, in := range b.intents {
		for _, other := range in.sentences {
			if b.shares(tree, other.tree) {
				return sentence{}, fmt.Errorf("it can be the same as a sentence of %s; say it in another way", other.source)
			}
		}
	}
	return s, nil
}

// skill performs a skill, and returns its text.
func skill(ctx context.Context, c *command) (string, error) {
	book := c.book
	if c.brain.skills == nil {
		return book.Phrase("unknown"), nil
	}
	args, err := c.arguments()
	if err != nil {
		return "", err
	}
	has := false
	failure := c.report(c.intent.Value, func() (err error) {
		c.body, has, err = c.brain.skills.Answer(ctx, c.turn, c.intent.Value, args)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case failure != nil:
		return book.Phrase("tool_failed"), nil
	case !has:
		return book.Phrase("unknown"), nil
	case c.body == "":
		return book.Phrase("done"), nil
	}
	return c.intent.Answer, nil
}

// arguments returns the values of the slots: numbers as numbers, and all others as text.
func (c *command) arguments() (json.RawMessage, error) {
	all := map[string]any{}
	for name, it := range c.filled {
		all[name] = it.spoken
		if it.number {
			all[name] = json.Number(it.value)
		}
	}
	return json.Marshal(all)
}

// report calls do, reported as a running tool.
func (c *command) report(tool string, do func() error) error {
	c.calls++
	status := event.ToolStatus{ID: c.turn.Session + "-" + strconv.Itoa(c.calls), Name: tool, Status: event.ToolRunning}
	if err := c.out(agent.ToolStatus{ToolStatus: status}); err != nil {
		return err
	}
	failure := do()
	status.Status = event.ToolDone
	if failure != nil {
		status.Status, status.Detail = event.ToolFailed, failure.Error()
	}
	if err := c.out(agent.ToolStatus{ToolStatus: status}); err != nil {
		return err
	}
	return failure
}

// mostShared bounds the work of comparing two sentences. Beyond it they count as
// conflicting.
const mostShared = 50_000

// shares reports whether some utterance matches both sentences.
func (b *Book) shares(x, y node) bool {
	s := &sharing{lists: b.lists, left: mostShared}
	return s.overlap([]node{x}, []node{y})
}

// sharing compares two sentences word by word.
type sharing struct {
	lists map[string]list
	left  int // steps
}

// overlap reports whether some utterance matches the rest of both sentences.
func (s *sharing) overlap(x, y []node) bool {
	if s.left--; s.left < 0 || !slices.ContainsFunc(x, full) && !slices.ContainsFunc(y, full) {
		return true
	}
	after := map[string][][]node{}
	s.split(y, func(first string, rest []node) { after[first] = append(after[first], rest) })
	found := false
	s.split(x, func(first string, rest []node) {
		found = found || slices.ContainsFunc(after[first], func(other []node) bool { return s.overlap(rest, other) })
	})
	return found || s.left < 0
}

func full(n node) bool { return !empty(n) }

// split calls then with each possible first word, and the rest after it.
func (s *sharing) split(nodes []node, then func(first string, rest []node)) {
	if s.left--; s.left < 0 || len(nodes) == 0 {
		return
	}
	rest := nodes[1:]
	before := func(some ...node) []node { return append(some[:len(some):len(some)], rest...) }
	switch n := nodes[0].(type) {
	case word:
		then(string(n), rest)
	case slot:
		for _, it := range s.lists[n.list].items {
			s.split(before(wordsOf(it.words)), then)
		}
	case sequence:
		s.split(before(n...), then)
	case choice:
		for _, one := range n {
			s.split(before(one), then)
		}
	case option:
		s.split(before(n.of), then)
		s.split(rest, then)
	}
}
