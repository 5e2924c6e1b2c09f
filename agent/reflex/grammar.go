package reflex

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"perch/language"
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

// Rules is the grammar of all sentences of an English book, and empty for others: the
// recognizers that there are for grammars know English alone. In an owner's file,
// sentences and entries of lists in other letters are no part of it; see Unheard.
func (b *Book) Rules() []Rule {
	if b.language != language.English {
		return nil
	}
	var rules []Rule
	used, needed := map[string]bool{}, map[string]bool{} // lists; needed are those of more than bundled skills
	for _, in := range b.intents {
		for _, s := range in.sentences {
			if !b.heard(s) {
				continue
			}
			for _, of := range s.slots {
				used[of.list], needed[of.list] = true, needed[of.list] || !in.bundled
			}
			r := s.rule("s" + strconv.Itoa(len(rules)))
			r.Optional = in.bundled
			rules = append(rules, r)
		}
	}
	for name, l := range b.lists {
		if used[name] {
			rules = append(rules, Rule{Name: listRule(name), Body: strings.Join(l.heard(), " | "), Source: l.source, Optional: !needed[name]})
		}
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

// Unheard are the sentences of an English book that are no part of its grammar, by file
// and line: those with letters that English has not, or with a slot of a list that has
// no other entries.
func (b *Book) Unheard() (sources []string) {
	if b.language != language.English {
		return nil
	}
	for _, in := range b.intents {
		for _, s := range in.sentences {
			if !b.heard(s) {
				sources = append(sources, s.source)
			}
		}
	}
	return sources
}

// heard reports whether a sentence is for a grammar of English words.
func (b *Book) heard(s sentence) bool {
	return isASCII(s.rule("").Body) && !slices.ContainsFunc(s.slots, func(of slot) bool { return len(b.lists[of.list].heard()) == 0 })
}

// heard are the entries of a list that are for one.
func (l list) heard() (all []string) {
	for _, it := range l.items {
		if spoken := strings.Join(it.words, " "); isASCII(spoken) {
			all = append(all, spoken)
		}
	}
	return all
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
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
	var rules []Rule
	for i, a := range b.answers {
		if r := a.rule(a.kind + strconv.Itoa(i)); b.language == language.English && isASCII(r.Body) {
			rules = append(rules, r)
		}
	}
	return rules
}

// listRule keeps the names of lists apart from the names of sentences.
func listRule(name string) string { return "list_" + name }

func (w word) jsgf(b *strings.Builder) { b.WriteString(string(w)) }

func (s slot) jsgf(b *strings.Builder) { b.WriteString("<" + listRule(s.list) + ">") }

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
