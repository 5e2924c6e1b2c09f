package reflex

import (
	"slices"
	"strconv"
	"strings"
)

// Rule is a rule of the grammar of a recognizer, which then recognizes the
// sentences of this brain only. Body is an expansion in the Java Speech Grammar
// Format.
type Rule struct {
	Name   string
	Body   string
	Source string // file and line of its sentence
	Top    bool   // the rule may be a whole utterance
	// Optional rules are those of bundled skills alone: a recognizer that cannot
	// listen for one does without it.
	Optional bool
}

// Rules is the grammar of all sentences of the book.
func (b *Book) Rules() []Rule {
	var rules []Rule
	used, needed := map[string]bool{}, map[string]bool{} // lists; needed are those of more than bundled skills
	for _, in := range b.intents {
		for _, s := range in.sentences {
			for _, name := range s.slots {
				used[name], needed[name] = true, needed[name] || !in.bundled
			}
			r := s.rule("s" + strconv.Itoa(len(rules)))
			r.Optional = in.bundled
			rules = append(rules, r)
		}
	}
	for name, l := range b.lists {
		if !used[name] {
			continue
		}
		spoken := make([]string, len(l.items))
		for i, it := range l.items {
			spoken[i] = it.spoken
		}
		rules = append(rules, Rule{Name: listRule(name), Body: strings.Join(spoken, " | "), Source: l.source, Optional: !needed[name]})
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

// rule is a whole utterance.
func (s sentence) rule(name string) Rule {
	var body strings.Builder
	s.tree.jsgf(&body)
	return Rule{Name: name, Body: body.String(), Source: s.source, Top: true}
}

// Answers is the grammar of answers to a question of yes or no, and of words that
// are neither; empty if the book has none. Rules does not include it. A recognizer
// uses one or the other, and their names do not collide.
func (b *Book) Answers() []Rule {
	rules := make([]Rule, len(b.answers))
	for i, a := range b.answers {
		rules[i] = a.rule(a.kind + strconv.Itoa(i))
	}
	return rules
}

// listRule keeps the names of lists apart from the names of sentences.
func listRule(name string) string { return "list_" + name }

func (w word) jsgf(b *strings.Builder) { b.WriteString(string(w)) }

func (s slot) jsgf(b *strings.Builder) { b.WriteString("<" + listRule(string(s)) + ">") }

func (s sequence) jsgf(b *strings.Builder) {
	for i, n := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		n.jsgf(b)
	}
}

func (c choice) jsgf(b *strings.Builder) {
	b.WriteByte('(')
	for i, n := range c {
		if i > 0 {
			b.WriteString(" | ")
		}
		n.jsgf(b)
	}
	b.WriteByte(')')
}

func (o option) jsgf(b *strings.Builder) {
	b.WriteByte('[')
	o.of.jsgf(b)
	b.WriteByte(']')
}
