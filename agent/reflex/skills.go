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

// skills performs the skills of characters.
type skills interface {
	// Answer performs a skill for a turn, and returns the text to say. args is a JSON object.
	// ok is false if the turn's character does not have the skill, or the turn is untrusted.
	Answer(ctx context.Context, t agent.Turn, name string, args json.RawMessage) (text string, ok bool, err error)
	// Has reports whether Answer would perform the skill.
	Has(t agent.Turn, name string) bool
}

// skillAction is the name of the action that performs a skill.
const skillAction = "skill"

// Language returns the BCP 47 tag of the book's language.
func (b *Book) Language() string { return string(b.language) }

// AddSkill adds sentences that perform a skill. The contents of the slots become the skill's
// arguments. A sentence is not added if it is invalid, uses an unknown list, or can match
// the same utterance as a sentence of the book or of another skill; sentences of the same
// call may overlap. The returned error joins an error for each sentence that is not added.
// AddSkill must not be called once the book is in use.
func (b *Book) AddSkill(name string, sentences []string) error {
	in := intent{fileIntent: fileIntent{name: "skill " + name, Action: skillAction, Value: name, Answer: "😊 {body}"},
		source: "the skill " + name, bundled: true}
	var faults []error
	for _, text := range sentences {
		s, err := b.parseSkillSentence(in.source, text)
		if err != nil {
			faults = append(faults, fmt.Errorf("the sentence %.200q of the skill %s is left out: %w", text, name, err))
			continue
		}
		in.sentences = append(in.sentences, s)
	}
	if len(in.sentences) > 0 {
		b.intents = append(b.intents, in)
	}
	return errors.Join(faults...)
}

// parseSkillSentence parses a sentence of a skill. It returns an error if the sentence uses
// a list that the book does not have, or overlaps a sentence of the book.
func (b *Book) parseSkillSentence(source, text string) (sentence, error) {
	tree, err := parseSentence(text)
	if err != nil {
		return sentence{}, fmt.Errorf("%w; correct it in the skill's manifest.json", err)
	}
	s := sentence{tree, slots(tree), source}
	for _, sl := range s.slots {
		if _, ok := b.lists[sl.list]; !ok {
			return sentence{}, fmt.Errorf("there is no list {%s}; add it to your file of sentences for the reflex brain, or write the words themselves instead of the slot", sl.list)
		}
	}
	for _, in := range b.intents {
		for _, other := range in.sentences {
			if b.overlap(tree, other.tree) {
				return sentence{}, fmt.Errorf("one utterance could match both it and a sentence of %s; write it differently", other.source)
			}
		}
	}
	return s, nil
}

// Perform performs the skill that has a sentence matching the text of the turn. found is false if
// the turn's character has no such skill. Perform is for brains that do not perform skills themselves.
func (b *Brain) Perform(ctx context.Context, t agent.Turn, out func(agent.Reply) error) (found bool, err error) {
	if b.skills == nil {
		return false, nil
	}
	for _, book := range b.booksFor(t.Language) {
		performing := slices.DeleteFunc(slices.Clone(book.intents), func(in intent) bool {
			return in.Action != skillAction || !b.skills.Has(t, in.Value)
		})
		if m, ok := book.newMatcher(t.Text).match(performing); ok {
			return true, (&command{brain: b, book: book, turn: t, out: out}).run(ctx, m)
		}
	}
	return false, nil
}

// performSkill performs the skill named in the intent's value. It stores the skill's text in
// c.body and returns the answer of the intent, where the placeholder {body} is the skill's text. If
// the skill fails, is missing or returns no text, performSkill returns a phrase instead.
func performSkill(ctx context.Context, c *command) (string, error) {
	book := c.book
	if c.brain.skills == nil {
		return book.Phrase("unknown"), nil
	}
	args, err := c.arguments()
	if err != nil {
		return "", err
	}
	ok := false
	err = c.report(c.intent.Value, func() (err error) {
		c.body, ok, err = c.brain.skills.Answer(ctx, c.turn, c.intent.Value, args)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return book.Phrase("tool_failed"), nil
	case !ok:
		return book.Phrase("unknown"), nil
	case c.body == "":
		return book.Phrase("done"), nil
	}
	return c.intent.Answer, nil
}

// arguments returns the contents of the slots as a JSON object: numbers as numbers, and
// others as text in the form that answers use, which may differ from the words that were said.
func (c *command) arguments() (json.RawMessage, error) {
	args := map[string]any{}
	for name, it := range c.filled {
		args[name] = it.spoken
		if it.isNumber {
			args[name] = json.Number(it.value)
		}
	}
	return json.Marshal(args)
}

// report calls do, and sends an agent.ToolStatus with the name of the tool or skill before
// and after the call.
func (c *command) report(name string, do func() error) error {
	c.calls++
	status := event.ToolStatus{ID: c.turn.Session + "-" + strconv.Itoa(c.calls), Name: name, Status: event.ToolRunning}
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

// maxCompareSteps limits the work of comparing two sentences. If more steps are needed, the
// sentences are assumed to overlap.
const maxCompareSteps = 50_000

// overlap reports whether an utterance exists that matches both sentences. It also returns
// true if maxCompareSteps is not enough to decide.
func (b *Book) overlap(x, y node) bool {
	c := &comparison{lists: b.lists, stepsLeft: maxCompareSteps}
	return c.overlap([]node{x}, []node{y})
}

// comparison compares two sentences word by word.
type comparison struct {
	lists     map[string]list
	stepsLeft int
}

// overlap reports whether words exist that match both sequences of nodes. It also returns
// true once the steps are used up.
func (c *comparison) overlap(x, y []node) bool {
	if c.stepsLeft--; c.stepsLeft < 0 || !slices.ContainsFunc(x, needsWords) && !slices.ContainsFunc(y, needsWords) {
		return true
	}
	yRests := map[string][][]node{} // key: first word
	c.eachFirstWord(y, func(first string, rest []node) { yRests[first] = append(yRests[first], rest) })
	found := false
	c.eachFirstWord(x, func(first string, xRest []node) {
		found = found || slices.ContainsFunc(yRests[first], func(yRest []node) bool { return c.overlap(xRest, yRest) })
	})
	return found || c.stepsLeft < 0
}

// needsWords reports whether a node needs at least one word to match.
func needsWords(n node) bool { return !canBeEmpty(n) }

// eachFirstWord calls f for each word with which a match of nodes can begin, with the nodes
// that the remaining words must match. It stops when the steps are used up.
func (c *comparison) eachFirstWord(nodes []node, f func(first string, rest []node)) {
	if c.stepsLeft--; c.stepsLeft < 0 || len(nodes) == 0 {
		return
	}
	rest := nodes[1:]
	prepend := func(nodes ...node) []node { return append(nodes[:len(nodes):len(nodes)], rest...) }
	switch n := nodes[0].(type) {
	case word:
		f(string(n), rest)
	case slot:
		for _, it := range c.lists[n.list].items {
			c.eachFirstWord(prepend(newWords(it.words)), f)
		}
	case sequence:
		c.eachFirstWord(prepend(n...), f)
	case choice:
		for _, alternative := range n {
			c.eachFirstWord(prepend(alternative), f)
		}
	case option:
		c.eachFirstWord(prepend(n.node), f)
		c.eachFirstWord(rest, f)
	}
}
