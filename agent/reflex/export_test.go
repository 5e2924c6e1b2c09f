package reflex

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Recognized returns the name of the intent that an utterance matches and, sorted by name, its
// slots as "name=value". It returns "" if the utterance matches no intent.
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

// Intents returns the names of the intents, in the order of the book.
func (b *Book) Intents() (all []string) {
	for _, in := range b.intents {
		all = append(all, in.name)
	}
	return all
}

// Steps returns how many steps the matcher takes for an utterance.
func (b *Book) Steps(text string) int {
	m := b.newMatcher(text)
	m.match(b.intents)
	return m.totalSteps + m.steps
}
