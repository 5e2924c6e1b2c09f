package relay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"perch/agent"
	"perch/limit"
)

// words maps states, faces, gestures and feelings to a program's own names.
type words struct {
	table map[string]string
	names *agent.Words
}

// newWords returns the words of a kind with an owner's changes applied.
func newWords(k kind, names *agent.Words, changed map[string]string) (words, error) {
	w := words{maps.Clone(k.words), names}
	if w.table == nil {
		w.table = map[string]string{}
	}
	if k.faces != "" {
		for _, e := range agent.Emotions() {
			key := "face." + e.Name
			if _, set := w.table[key]; !set {
				w.table[key] = names.Word(k.faces, e.Name)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		_, known := w.table[key]
		switch {
		case !known && !isWord(key):
			return words{}, fmt.Errorf("%w: words has %.40q; there are state., face., gesture. and feeling. with a name after them (%s)",
				ErrTarget, key, strings.Join(append([]string{"state.thinking"}, alsoKeys(k)...), ", "))
		case len(changed[key]) > limit.Name:
			return words{}, fmt.Errorf("%w: the word for %s has more than %d bytes", ErrTarget, key, limit.Name)
		}
		w.table[key] = changed[key]
	}
	return w, nil
}

// isWord reports whether a key is valid for every kind of program.
func isWord(key string) bool {
	of, name, _ := strings.Cut(key, ".")
	switch of {
	case "state":
		return slices.Contains(states(), agent.Shown(name))
	case "face":
		return slices.ContainsFunc(agent.Emotions(), func(e agent.Emotion) bool { return e.Name == name })
	case "gesture": // an owner can add some
		return name != ""
	case "feeling":
		return slices.Contains(feelings(), name)
	}
	return false
}

// alsoKeys lists the keys that only this kind has.
func alsoKeys(k kind) (also []string) {
	for _, key := range slices.Sorted(maps.Keys(k.words)) {
		if !isWord(key) {
			also = append(also, key)
		}
	}
	return also
}

// of returns the word for a key such as "state.thinking". If it is empty, nothing is sent.
func (w words) of(key string) string { return w.table[key] }

func (w words) state(s agent.Shown) string { return w.table["state."+string(s)] }
func (w words) face(name string) string    { return w.table["face."+name] }
func (w words) gesture(name string) string { return w.table["gesture."+name] }
func (w words) feeling(name string) string { return w.table["feeling."+name] }

// orName returns the word for a key, or the name itself where no word is set. A word set to ""
// counts as set.
func (w words) orName(of, name string) string {
	if word, set := w.table[of+"."+name]; set {
		return word
	}
	return name
}

// candidates returns names under which a program may know something, likeliest first, for
// programs whose names are learned from them.
func (w words) candidates(of, name string) (all []string) {
	add := func(word string) {
		if word != "" && !slices.ContainsFunc(all, func(one string) bool { return strings.EqualFold(one, word) }) {
			all = append(all, word)
		}
	}
	word, set := w.table[of+"."+name]
	if set && word == "" {
		return nil // the owner has switched it off
	}
	add(word)
	add(name)
	if of == "face" {
		for _, v := range []agent.Vocabulary{agent.VocabularyRFC, agent.VocabularyLive2D, agent.VocabularyVRM, agent.VocabularyVRM0} {
			add(w.names.Word(v, name))
		}
	}
	return all
}

// named returns the index of the first candidate that equals one of names, or is a part of one,
// as happy is of "01_Happy". It ignores case, and returns -1 without a match.
func named(names, candidates []string) int {
	for _, whole := range []bool{true, false} {
		for _, want := range candidates {
			i := slices.IndexFunc(names, func(name string) bool {
				return strings.EqualFold(name, want) || !whole && slices.ContainsFunc(parts(name), func(part string) bool {
					return strings.EqualFold(part, want)
				})
			})
			if i >= 0 {
				return i
			}
		}
	}
	return -1
}

// parts splits a name into its words.
func parts(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// states returns all states of an agent that can be shown.
func states() []agent.Shown {
	return []agent.Shown{agent.Idle, agent.Listening, agent.Thinking, agent.Working, agent.Juggling, agent.Speaking,
		agent.Attention, agent.Notification, agent.Failed, agent.Sleeping}
}

// feelings returns the names of all feelings of a mood.
func feelings() []string {
	return []string{"neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"}
}

// capital returns s with its first letter in upper case, as parameter names want it.
func capital(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
