package reflex

import (
	"slices"
	"strconv"
	"strings"
)

// matcher is the words of an utterance, and the entries that its slots have
// matched.
type matcher struct {
	words   []string
	lists   map[string]list
	numbers list // its entries may be written as digits
	taken   map[string]item
	steps   int
	goesOn  func() // the words have ended where the sentence has not; nil is nobody's business
}

// mostSteps bounds the work on one sentence, whatever its brackets.
const mostSteps = 10000

// mostWords is more than a person says to a robot in one breath.
const mostWords = 60

// normal returns the words of an utterance as sentences are written: in lower
// case, "40%" as "40 percent".
func normal(text string) []string {
	text = strings.ReplaceAll(strings.ToLower(text), "%", " percent")
	words := strings.FieldsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '\'' && r != '’'
	})
	for i, w := range words {
		words[i] = strings.Trim(strings.ReplaceAll(w, "’", "'"), "'")
	}
	return words
}

// matches tries a whole sentence on the words.
func (m *matcher) matches(n node) bool {
	m.taken, m.steps = map[string]item{}, 0
	return n.match(m, 0, func(at int) bool { return at == len(m.words) })
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

// isDigits reports whether a word was written as digits: "1" for "one".
func (m *matcher) isDigits(written, w string) bool {
	n, err := strconv.Atoi(written)
	return err == nil && n >= 0 && n < len(m.numbers.items) && m.numbers.items[n].spoken == w
}

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

// match tries the longest entry first: "twenty one" before "twenty".
func (s slot) match(m *matcher, at int, then func(int) bool) bool {
	if m.steps++; m.steps > mostSteps {
		return false
	}
	l := m.lists[string(s)]
	if m.goesOn != nil && slices.ContainsFunc(l.items, func(it item) bool { return it.goesOn(m.words[at:]) }) {
		m.goesOn()
	}
	before, had := m.taken[string(s)]
	for _, it := range l.longestFirst {
		if !it.begins(m.words[at:], l.numbers) {
			continue
		}
		m.taken[string(s)] = it
		if then(at + it.width(m.words[at:], l.numbers)) {
			return true
		}
	}
	if had {
		m.taken[string(s)] = before
	} else {
		delete(m.taken, string(s))
	}
	return false
}

// item is an entry of a list.
type item struct {
	spoken string // "twenty one"
	value  string // "21"
	words  []string
}

// begins reports whether the words begin with the entry, or with its digits if the
// list is of numbers.
func (it item) begins(words []string, numbers bool) bool {
	if numbers && len(words) > 0 && words[0] == it.value {
		return true
	}
	return len(words) >= len(it.words) && slices.Equal(words[:len(it.words)], it.words)
}

// goesOn reports whether the entry begins with the words, and has more.
func (it item) goesOn(words []string) bool {
	return len(it.words) > len(words) && slices.Equal(it.words[:len(words)], words)
}

func (it item) width(words []string, numbers bool) int {
	if _, err := strconv.Atoi(words[0]); numbers && err == nil {
		return 1
	}
	return len(it.words)
}
