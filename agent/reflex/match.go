package reflex

import (
	"cmp"
	"slices"
	"strings"

	"perch/language"
	"perch/limit"
)

// matcher matches the words of an utterance with sentences.
type matcher struct {
	words      []string
	lists      map[string]list
	numbers    list            // list whose entries may be written in digits
	filled     map[string]item // slots filled by the current sentence; key: name of the slot
	steps      int             // steps for the current sentence
	totalSteps int             // steps for the previous sentences
	onPrefix   func()          // called when the words turn out to be only the beginning of a sentence; may be nil
}

// Limits of the work on one utterance. They hold for any sentences that an owner writes.
const (
	maxSteps      = 10_000  // steps for one sentence
	maxTotalSteps = 200_000 // steps for all sentences
)

// maxWords is the maximum number of words of an utterance (of characters in scripts without
// spaces). People do not say more to a robot in one breath.
const maxWords = 60

// normalize returns the words of an utterance in the form that they have in sentences, with
// signs as words and numbers without leading zeros: "040%" becomes "40 percent". It returns nil for
// a text of more than limit.Said bytes.
func (b *Book) normalize(text string) []string {
	if len(text) > limit.Said {
		return nil
	}
	text = language.Fold(text)
	for sign, spoken := range b.signs {
		text = strings.ReplaceAll(text, sign, " "+spoken+" ")
	}
	words := language.Split(text)
	for i, w := range words {
		if isNumber(w) {
			words[i] = cmp.Or(strings.TrimLeft(w, "0"), "0")
		}
	}
	return words
}

// newMatcher returns a matcher for an utterance. The matcher has no words if the utterance has
// more than limit.Said bytes or maxWords words.
func (b *Book) newMatcher(text string) *matcher {
	m := &matcher{words: b.normalize(text), lists: b.lists, numbers: b.lists[b.numbers]}
	if len(m.words) > maxWords {
		m.words = nil
	}
	return m
}

// match returns the first intent with a matching sentence.
func (m *matcher) match(intents []intent) (_ match, ok bool) {
	if len(m.words) == 0 {
		return match{}, false
	}
	for _, in := range intents {
		for _, s := range in.sentences {
			if m.matches(s.tree) {
				return match{in, m.filled}, true
			}
		}
	}
	return match{}, false
}

// reset prepares the matcher for another sentence, and reports whether maxTotalSteps
// permits one.
func (m *matcher) reset() bool {
	m.totalSteps += m.steps
	m.filled, m.steps = map[string]item{}, 0
	return m.totalSteps <= maxTotalSteps
}

// matches reports whether a sentence matches all words, and fills the slots.
func (m *matcher) matches(n node) bool {
	return m.reset() && n.match(m, 0, func(end int) bool { return end == len(m.words) })
}

func (w word) match(m *matcher, start int, next func(int) bool) bool {
	if m.steps++; m.steps > maxSteps {
		return false
	}
	if start == len(m.words) && m.onPrefix != nil {
		m.onPrefix()
	}
	return start < len(m.words) && (m.words[start] == string(w) || m.isDigitsFor(m.words[start], string(w))) && next(start+1)
}

// isDigitsFor reports whether digits is the number word w written in digits, such as "1" for
// "one".
func (m *matcher) isDigitsFor(digits, w string) bool {
	return isNumber(digits) && slices.ContainsFunc(m.numbers.items, func(it item) bool {
		return it.value == digits && len(it.words) == 1 && it.words[0] == w
	})
}

// isNumber reports whether a word begins with a digit.
func isNumber(w string) bool { return w[0] >= '0' && w[0] <= '9' }

func (s sequence) match(m *matcher, start int, next func(int) bool) bool {
	if len(s) == 0 {
		return next(start)
	}
	return s[0].match(m, start, func(end int) bool { return s[1:].match(m, end, next) })
}

func (c choice) match(m *matcher, start int, next func(int) bool) bool {
	for _, n := range c {
		if n.match(m, start, next) {
			return true
		}
	}
	return false
}

func (o option) match(m *matcher, start int, next func(int) bool) bool {
	return o.node.match(m, start, next) || next(start)
}

// match tries the longest entries of the list first: "twenty one" before "twenty".
func (s slot) match(m *matcher, start int, next func(int) bool) bool {
	if m.steps++; m.steps > maxSteps {
		return false
	}
	l := m.lists[s.list]
	if m.onPrefix != nil && slices.ContainsFunc(l.items, func(it item) bool { return it.hasPrefix(m.words[start:]) }) {
		m.onPrefix()
	}
	before, wasFilled := m.filled[s.name]
	for _, it := range l.longestFirst {
		n := it.matchPrefix(m.words[start:])
		if n == 0 {
			continue
		}
		m.filled[s.name] = it
		if next(start + n) {
			return true
		}
	}
	if wasFilled {
		m.filled[s.name] = before
	} else {
		delete(m.filled, s.name)
	}
	return false
}

// item is an entry of a list, or one alternative of an entry with several.
type item struct {
	spoken   string   // as spoken in answers, such as "twenty one"
	value    string   // value for actions, such as "21"
	isNumber bool     // whether it is in the list of numbers too
	words    []string // words that people say for it
}

// hasPrefix reports whether the words are the beginning of the item, but not all of it.
func (it item) hasPrefix(words []string) bool {
	return len(it.words) > len(words) && slices.Equal(it.words[:len(words)], words)
}

// matchPrefix returns how many words at the beginning of words are the item: 1 for a number
// written in digits, and 0 if words does not begin with the item.
func (it item) matchPrefix(words []string) int {
	if it.isNumber && len(words) > 0 && words[0] == it.value {
		return 1
	}
	if len(words) < len(it.words) || !slices.Equal(words[:len(it.words)], it.words) {
		return 0
	}
	return len(it.words)
}
