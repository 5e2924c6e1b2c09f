package reflex

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"perch/language"
)

// Rule is a rule of a grammar that restricts a recognizer to the sentences of a book.
type Rule struct {
	Name   string
	Body   string // expansion in the Java Speech Grammar Format
	Source string // file and line of the sentence or list, or the skill of the sentence
	Top    bool   // whether the rule is a whole utterance
	// Optional marks rules that only sentences of skills need. A recognizer omits the
	// optional rules that it does not support.
	Optional bool
}

// Rules returns the grammar of all sentences of an English book. For other languages it
// returns nil, because recognizers with a grammar support only English. It omits sentences
// and list entries with non-ASCII letters, which an owner's file may have; see Unheard.
func (b *Book) Rules() []Rule {
	if b.language != language.English {
		return nil
	}
	var rules []Rule
	used := map[string]bool{}   // lists in the grammar; key: name of the list
	needed := map[string]bool{} // lists that sentences outside skills use; key: name of the list
	for _, in := range b.intents {
		for _, s := range in.sentences {
			if !b.inGrammar(s) {
				continue
			}
			for _, sl := range s.slots {
				used[sl.list], needed[sl.list] = true, needed[sl.list] || !in.bundled
			}
			r := s.rule("s" + strconv.Itoa(len(rules)))
			r.Optional = in.bundled
			rules = append(rules, r)
		}
	}
	for name, l := range b.lists {
		if used[name] {
			rules = append(rules, Rule{Name: listRule(name), Body: strings.Join(l.asciiEntries(), " | "), Source: l.source, Optional: !needed[name]})
		}
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

// Unheard returns the source of each sentence of an English book that is not in its grammar,
// because the sentence, or all entries of a list that it uses, have non-ASCII letters. A source
// is a file and line, or a skill.
func (b *Book) Unheard() (sources []string) {
	if b.language != language.English {
		return nil
	}
	for _, in := range b.intents {
		for _, s := range in.sentences {
			if !b.inGrammar(s) {
				sources = append(sources, s.source)
			}
		}
	}
	return sources
}

// inGrammar reports whether the grammar includes s. It does so if s has only ASCII letters, and each
// list that s uses has at least one entry with only ASCII letters.
func (b *Book) inGrammar(s sentence) bool {
	return isASCII(s.rule("").Body) && !slices.ContainsFunc(s.slots, func(sl slot) bool { return len(b.lists[sl.list].asciiEntries()) == 0 })
}

// asciiEntries returns the entries of a list that have only ASCII letters.
func (l list) asciiEntries() (entries []string) {
	for _, it := range l.items {
		if entry := strings.Join(it.words, " "); isASCII(entry) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// isASCII reports whether s has only ASCII characters.
func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// rule returns the rule for the sentence as a whole utterance.
func (s sentence) rule(name string) Rule {
	var body strings.Builder
	s.tree.jsgf(&body)
	return Rule{Name: name, Body: body.String(), Source: s.source, Top: true}
}

// Answers returns the grammar of answers to a yes-or-no question, including answers that
// mean neither yes nor no. It is empty if the book has no answers or is not English. It omits
// answers with non-ASCII letters. Its rules have other names than the rules of Rules.
func (b *Book) Answers() []Rule {
	var rules []Rule
	for i, a := range b.answers {
		if r := a.rule(a.kind + strconv.Itoa(i)); b.language == language.English && isASCII(r.Body) {
			rules = append(rules, r)
		}
	}
	return rules
}

// listRule returns the name of the rule for a list.
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
	o.node.jsgf(b)
	b.WriteByte(']')
}
