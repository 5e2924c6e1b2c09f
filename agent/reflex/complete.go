package reflex

import (
	"maps"
	"slices"
)

// Complete reports whether a text is a sentence of the book whose meaning no further words
// can change, so that the recognizer need not wait for more. It is false for a sentence
// that ends with a number, because people pause within numbers. It is also false if maxTotalSteps
// does not suffice to compare the text with all sentences.
func (b *Book) Complete(text string) bool {
	matched, ok := b.match(text)
	if !ok {
		return false
	}
	m := b.newMatcher(text)
	for _, it := range matched.filled {
		if it.isNumber && endsWith(m.words, it) {
			return false
		}
	}
	complete := true
	for _, in := range b.intents {
		for _, s := range in.sentences {
			// The text is also the beginning of s, which does no harm if s has the same
			// meaning.
			m.onPrefix = func() {
				complete = complete && in.source == matched.intent.source && maps.EqualFunc(m.filled, matched.filled, sameItem) &&
					!slices.ContainsFunc(s.slots, func(sl slot) bool { _, filled := m.filled[sl.name]; return !filled })
			}
			if m.tryAll(s.tree); !complete {
				return false
			}
		}
	}
	return m.totalSteps <= maxTotalSteps // with more steps, some sentences were not tried
}

// Unfinished reports whether the person who has said a text is likely to say more: the text is no
// sentence of the book, and is the beginning of one or ends with words that end no sentence.
func (b *Book) Unfinished(text string) bool {
	m := b.newMatcher(text)
	if _, ok := m.match(b.intents); ok || len(m.words) == 0 {
		return false
	}
	if slices.ContainsFunc(b.unfinished, func(end []string) bool {
		return len(m.words) > len(end) && slices.Equal(m.words[len(m.words)-len(end):], end)
	}) {
		return true
	}
	begins := false
	m.onPrefix = func() { begins = true }
	for _, in := range b.intents {
		for _, s := range in.sentences {
			if m.tryAll(s.tree); begins {
				return true
			}
		}
	}
	return false
}

// CompleteAnswer reports whether a text is an answer to a yes-or-no question whose meaning no
// further words can change.
func (b *Book) CompleteAnswer(text string) bool {
	m := b.newMatcher(text)
	i := slices.IndexFunc(b.answers, func(a answer) bool { return m.matches(a.tree) })
	if i < 0 {
		return false
	}
	complete := true
	for _, a := range b.answers {
		m.onPrefix = func() { complete = complete && a.kind == b.answers[i].kind }
		m.tryAll(a.tree)
	}
	return complete
}

// tryAll tries all possibilities to match the words with a sentence or its beginning. It
// has no result, but calls onPrefix.
func (m *matcher) tryAll(n node) {
	_ = m.reset() && n.match(m, 0, func(int) bool { return false })
}

// endsWith reports whether the words end with the item, written in words or digits.
func endsWith(words []string, it item) bool {
	return len(words) > 0 && words[len(words)-1] == it.value ||
		len(words) >= len(it.words) && slices.Equal(words[len(words)-len(it.words):], it.words)
}

// sameItem reports whether answers contain the same text for two items, as they do for two
// alternatives of one entry.
func sameItem(a, b item) bool { return a.spoken == b.spoken }
