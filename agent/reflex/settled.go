package reflex

import (
	"maps"
	"slices"
)

// Settled reports whether a text is a sentence of the book which nothing can follow
// that means anything else: who has said it has finished, and need not be waited
// for. One that ends with a number is none, for people pause within numbers; and a
// slot that is still to be filled always means something else.
func (b *Book) Settled(text string) bool {
	is, ok := b.understand(text)
	if !ok {
		return false
	}
	words := normal(text)
	for name, it := range is.taken {
		if b.lists[name].numbers && endsWith(words, it) {
			return false
		}
	}
	m := &matcher{words: words, lists: b.lists, numbers: b.lists[b.numbers]}
	settled := true
	for _, in := range b.intents {
		for _, s := range in.sentences {
			m.goesOn = func() {
				settled = settled && in.source == is.intent.source && maps.EqualFunc(m.taken, is.taken, same) &&
					!slices.ContainsFunc(s.slots, func(name string) bool { _, filled := m.taken[name]; return !filled })
			}
			if m.ways(s.tree); !settled {
				return false
			}
		}
	}
	return true
}

// SettledAnswer reports whether a text is an answer to a question of yes or no which
// nothing can follow that makes it another.
func (b *Book) SettledAnswer(text string) bool {
	m := &matcher{words: normal(text), lists: b.lists, numbers: b.lists[b.numbers]}
	at := slices.IndexFunc(b.answers, func(a answer) bool { return m.matches(a.tree) })
	if at < 0 || len(m.words) > mostWords {
		return false
	}
	settled := true
	for _, a := range b.answers {
		m.goesOn = func() { settled = settled && a.kind == b.answers[at].kind }
		m.ways(a.tree)
	}
	return settled
}

// ways tries every way in which the words are a sentence or begin one.
func (m *matcher) ways(n node) {
	m.taken, m.steps = map[string]item{}, 0
	n.match(m, 0, func(int) bool { return false })
}

func endsWith(words []string, it item) bool {
	return len(words) > 0 && words[len(words)-1] == it.value ||
		len(words) >= len(it.words) && slices.Equal(words[len(words)-len(it.words):], it.words)
}

func same(a, b item) bool { return a.spoken == b.spoken }
