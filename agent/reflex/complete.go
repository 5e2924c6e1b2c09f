package reflex

import (
	"maps"
	"slices"
)

// Complete reports whether a text is a sentence of the book that no continuation can
// change, so that the recognizer need not wait for one. A sentence that ends with a
// number is not complete, because people pause within numbers, nor is one with an
// unfilled slot.
func (b *Book) Complete(text string) bool {
	is, ok := b.understand(text)
	if !ok {
		return false
	}
	m := b.matcher(text)
	for _, it := range is.filled {
		if it.number && endsWith(m.words, it) {
			return false
		}
	}
	settled := true
	for _, in := range b.intents {
		for _, s := range in.sentences {
			m.goesOn = func() {
				settled = settled && in.source == is.intent.source && maps.EqualFunc(m.filled, is.filled, same) &&
					!slices.ContainsFunc(s.slots, func(of slot) bool { _, filled := m.filled[of.name]; return !filled })
			}
			if m.ways(s.tree); !settled {
				return false
			}
		}
	}
	return m.all <= mostStepsAll // beyond the bound it is unknown
}

// CompleteAnswer reports whether a text is an answer to a yes-or-no question that no
// continuation can change.
func (b *Book) CompleteAnswer(text string) bool {
	m := b.matcher(text)
	at := slices.IndexFunc(b.answers, func(a answer) bool { return m.matches(a.tree) })
	if at < 0 {
		return false
	}
	settled := true
	for _, a := range b.answers {
		m.goesOn = func() { settled = settled && a.kind == b.answers[at].kind }
		m.ways(a.tree)
	}
	return settled
}

// ways tries every way to match the words to a sentence or to its beginning.
func (m *matcher) ways(n node) {
	_ = m.reset() && n.match(m, 0, func(int) bool { return false })
}

func endsWith(words []string, it item) bool {
	return len(words) > 0 && words[len(words)-1] == it.value ||
		len(words) >= len(it.words) && slices.Equal(words[len(words)-len(it.words):], it.words)
}

func same(a, b item) bool { return a.spoken == b.spoken }
