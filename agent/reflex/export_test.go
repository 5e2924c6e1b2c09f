package reflex

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Recognized is the intent that an utterance is recognized as, with its slots in order
// as "name=value"; empty for none.
func (b *Book) Recognized(text string) string {
	u, ok := b.match(text)
	if !ok {
		return ""
	}
	said := u.intent.name
	for _, name := range slices.Sorted(maps.Keys(u.filled)) {
		value := u.filled[name].spoken
		if it := u.filled[name]; it.isNumber {
			value = it.value
		}
		said += fmt.Sprintf(" %s=%s", name, strings.ReplaceAll(value, " ", "_"))
	}
	return said
}

// Understands reports whether a text is one of the book's sentences.
func (b *Book) Understands(text string) bool { return b.Recognized(text) != "" }

// Intents are the names of the intents, in order.
func (b *Book) Intents() (all []string) {
	for _, in := range b.intents {
		all = append(all, in.name)
	}
	return all
}

// Steps are how many an utterance takes.
func (b *Book) Steps(text string) int {
	m := b.newMatcher(text)
	m.match(b.intents)
	return m.totalSteps + m.steps
}
