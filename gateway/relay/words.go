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

// words are what a program is told: its own names of states, faces, gestures and
// feelings.
type words struct {
	table map[string]string
	names *agent.Words
}

// newWords is the table of a kind with an owner's changes.
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

// isWord reports whether a key names something that every program may be told.
func isWord(key string) bool {
	of, name, _ := strings.Cut(key, ".")
	switch of {
	case "state":
		return slices.Contains(states(), agent.Shown(name))
	case "face":
		return slices.ContainsFunc(agent.Emotions(), func(e agent.Emotion) bool { return e.Name == name })
	case "gesture": // an owner can add to them
		return name != ""
	case "feeling":
		return slices.Contains(feelings(), name)
	}
	return false
}

// alsoKeys lists the keys that are a kind's own.
func alsoKeys(k kind) (also []string) {
	for _, key := range slices.Sorted(maps.Keys(k.words)) {
		if !isWord(key) {
			also = append(also, key)
		}
	}
	return also
}

// of is the word for what is shown: "state.thinking". Empty is that the program is told
// nothing.
func (w words) of(key string) string { return w.table[key] }

func (w words) state(s agent.Shown) string { return w.table["state."+string(s)] }
func (w words) face(name string) string    { return w.table["face."+name] }
func (w words) gesture(name string) string { return w.table["gesture."+name] }
func (w words) feeling(name string) string { return w.table["feeling."+name] }

// orName is the word for what is shown, or its own name where there is no word for it: an
// empty word is one.
func (w words) orName(of, name string) string {
	if word, set := w.table[of+"."+name]; set {
		return word
	}
	return name
}

// candidates are names under which a program may know something, the likeliest first:
// for programs whose own names are only known once they were asked.
func (w words) candidates(of, name string) (all []string) {
	add := func(word string) {
		if word != "" && !slices.ContainsFunc(all, func(one string) bool { return strings.EqualFold(one, word) }) {
			all = append(all, word)
		}
	}
	word, set := w.table[of+"."+name]
	if set && word == "" {
		return nil // an owner wants it not to be shown
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

// named is which of a program's names is meant: the first of the candidates that is one
// of them, or one of the parts of such a name, as happy is of "01_Happy". It is -1 if
// none is. Names differ no further than in their case.
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

// parts are the words that a name is made of.
func parts(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// states are all that can show.
func states() []agent.Shown {
	return []agent.Shown{agent.Idle, agent.Listening, agent.Thinking, agent.Working, agent.Juggling, agent.Speaking,
		agent.Attention, agent.Notification, agent.Failed, agent.Sleeping}
}

// feelings are all that a mood has.
func feelings() []string {
	return []string{"neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"}
}

// capital is a feeling or a morph as a part of a parameter's name.
func capital(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
