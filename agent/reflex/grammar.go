package reflex

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"perch/language"
)

// Rule is a rule of a recognizer's grammar, which restricts it to this brain's
// sentences. Body is an expansion in the Java Speech Grammar Format.
type Rule struct {
	Name   string
	Body   string
	Source string // file and line of its sentence
	Top    bool   // the rule may be a whole utterance
	// Optional rules are only for bundled skills: a recognizer that does not support one
	// leaves it out.
	Optional bool
}

// Rules returns the grammar of all sentences of an English book, and nothing for other
// languages, because the grammar recognizers only support English. Sentences and list
// entries of an owner's file with other letters are left out; see Unheard.
func (b *Book) Rules() []Rule {
	if b.language != language.English {
		return nil
	}
	var rules []Rule
	used, needed := map[string]bool{}, map[string]bool{} // lists; needed are those used by more than bundled skills
	for _, in := range b.intents {
		for _, s := range in.sentences {
			if !b.inEnglish(s) {
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
			rules = append(rules, Rule{Name: listRule(name), Body: strings.Join(l.english(), " | "), Source: l.source, Optional: !needed[name]})
		}
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

// Unheard returns the file and line of the sentences of an English book that are not
// part of its grammar: those with other letters than English ones, or with a slot
// whose list has no English entries.
func (b *Book) Unheard() (sources []string) {
	if b.language != language.English {
		return nil
	}
	for _, in := range b.intents {
		for _, s := range in.sentences {
			if !b.inEnglish(s) {
				sources = append(sources, s.source)
			}
		}
	}
	return sources
}

// inEnglish reports whether a sentence consists of English words.
func (b *Book) inEnglish(s sentence) bool {
	return isASCII(s.rule("").Body) && !slices.ContainsFunc(s.slots, func(of slot) bool { return len(b.lists[of.list].english()) == 0 })
}

// english returns the English entries of a list.
func (l list) english() (all []string) {
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

// rule returns the rule of a whole utterance.
func (s sentence) rule(name string) Rule {
	var body strings.Builder
	s.tree.jsgf(&body)
	return Rule{Name: name, Body: body.String(), Source: s.source, Top: true}
}

// Answers returns the grammar of answers to a yes-or-no question, including words that
// are neither; it is empty if the book has none. It is an alternative to Rules, and
// their names do not collide.
func (b *Book) Answers() []Rule {
	var rules []Rule
	for i, a := range b.answers {
		if r := a.rule(a.kind + strconv.Itoa(i)); b.language == language.English && isASCII(r.Body) {
			rules = append(rules, r)
		}
	}
	return rules
}

// listRule returns the rule name of a list, distinct from those of sentences.
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
