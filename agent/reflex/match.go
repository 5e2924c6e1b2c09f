package reflex

import (
	"cmp"
	"slices"
	"strings"

	"perch/language"
	"perch/limit"
)

// matcher matches the words of an utterance, and records the list entries in its slots.
type matcher struct {
	words   []string
	lists   map[string]list
	numbers list // its entries may be written in digits
	filled  map[string]item
	steps   int    // for this sentence
	all     int    // for the previous sentences
	goesOn  func() // called when the words end before the sentence; may be nil
}

// Bounds of the work on one utterance, for any sentences: steps for one sentence, and
// for all of them.
const (
	mostSteps    = 10_000
	mostStepsAll = 200_000
)

// Bound of an utterance: more than a person says to a robot in one breath.
const mostWords = 60 // counts characters in scripts without spaces

// normalize returns the words of an utterance in the form of sentences, with signs as
// spoken: "40%" as "40 percent". It returns nothing if the utterance is too long.
func (b *Book) normalize(text string) []string {
	if len(text) > limit.Said {
		return nil
	}
	text = language.Fold(text)
	for sign, said := range b.signs {
		text = strings.ReplaceAll(text, sign, " "+said+" ")
	}
	words := language.Split(text)
	for i, w := range words {
		if isNumber(w) {
			words[i] = cmp.Or(strings.TrimLeft(w, "0"), "0")
		}
	}
	return words
}

// matcher returns a matcher for an utterance; it has no words if that is too long.
func (b *Book) matcher(text string) *matcher {
	m := &matcher{words: b.normalize(text), lists: b.lists, numbers: b.lists[b.numbers]}
	if len(m.words) > mostWords {
		m.words = nil
	}
	return m
}

// understand returns the first intent with a matching sentence.
func (m *matcher) understand(intents []intent) (recognized, bool) {
	if len(m.words) == 0 {
		return recognized{}, false
	}
	for _, in := range intents {
		for _, s := range in.sentences {
			if m.matches(s.tree) {
				return recognized{in, m.filled}, true
			}
		}
	}
	return recognized{}, false
}

// reset resets the matcher, and reports whether its bounds allow another sentence.
func (m *matcher) reset() bool {
	m.all += m.steps
	m.filled, m.steps = map[string]item{}, 0
	return m.all <= mostStepsAll
}

// matches reports whether a whole sentence matches the words.
func (m *matcher) matches(n node) bool {
	return m.reset() && n.match(m, 0, func(at int) bool { return at == len(m.words) })
}

func (w word) match(m *matcher, at int, then func(int) bool) bool {
	if m.steps++; m.steps > mostSteps {
		return false
	}
	if at == len(m.words) && m.goesOn != nil {
		m.goesOn()
	}
	return at < len(m.words) && (m.words[at] == string(w) || m.isDigits(m.words[at], string(w))) && then(at+1)
}

// isDigits reports whether a word was written in digits: "1" for "one".
func (m *matcher) isDigits(written, w string) bool {
	return isNumber(written) && slices.ContainsFunc(m.numbers.items, func(it item) bool {
		return it.value == written && len(it.words) == 1 && it.words[0] == w
	})
}

func isNumber(w string) bool { return w[0] >= '0' && w[0] <= '9' }

func (s sequence) match(m *matcher, at int, then func(int) bool) bool {
	if len(s) == 0 {
		return then(at)
	}
	return s[0].match(m, at, func(at int) bool { return s[1:].match(m, at, then) })
}

func (c choice) match(m *matcher, at int, then func(int) bool) bool {
	for _, n := range c {
		if n.match(m, at, then) {
			return true
		}
	}
	return false
}

func (o option) match(m *matcher, at int, then func(int) bool) bool {
	return o.of.match(m, at, then) || then(at)
}

// match tries the longest entries first: "twenty one" before "twenty".
func (s slot) match(m *matcher, at int, then func(int) bool) bool {
	if m.steps++; m.steps > mostSteps {
		return false
	}
	l := m.lists[s.list]
	if m.goesOn != nil && slices.ContainsFunc(l.items, func(it item) bool { return it.goesOn(m.words[at:]) }) {
		m.goesOn()
	}
	before, had := m.filled[s.name]
	for _, it := range l.longestFirst {
		n := it.begins(m.words[at:])
		if n == 0 {
			continue
		}
		m.filled[s.name] = it
		if then(at + n) {
			return true
		}
	}
	if had {
		m.filled[s.name] = before
	} else {
		delete(m.filled, s.name)
	}
	return false
}

// item is an entry of a list. An entry with alternatives is several items.
type item struct {
	spoken string // as spoken in answers: "twenty one"
	value  string // "21"
	number bool
	words  []string
}

// goesOn reports whether the words are a proper prefix of the entry.
func (it item) goesOn(words []string) bool {
	return len(it.words) > len(words) && slices.Equal(it.words[:len(words)], words)
}

// begins returns how many of the words match the entry, or its digits if it is a number;
// 0 means no match.
func (it item) begins(words []string) int {
	if it.number && len(words) > 0 && words[0] == it.value {
		return 1
	}
	if len(words) < len(it.words) || !slices.Equal(words[:len(it.words)], it.words) {
		return 0
	}
	return len(it.words)
}
