package relay

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"perch/agent"
	"perch/language"
	"perch/limit"
)

// words holds a program's names for states, faces, gestures and feelings, and the words with other
// keys of its kind.
type words struct {
	table map[string]string // keys as in kind.words, such as "state.thinking"
	names *agent.Words      // the words of all vocabularies for faces
}

// newWords returns the words of a kind, some of which are replaced by configured words. The error joins a
// language.KeyError for each invalid entry of configured.
func newWords(k kind, names *agent.Words, configured map[string]string) (words, error) {
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
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(configured)) {
		_, found := w.table[key]
		var err error
		switch {
		case !found && !isCommonKey(key):
			err = fmt.Errorf("%w: words has the unknown key %.40q; a key is state., face., gesture. or feeling. followed by a name (%s)",
				ErrTarget, key, strings.Join(append([]string{"state.thinking"}, ownKeys(k)...), ", "))
		case len(configured[key]) > limit.Name:
			err = fmt.Errorf("%w: the word for %s has more than %d bytes", ErrTarget, key, limit.Name)
		}
		if err != nil {
			errs = append(errs, language.OfKey("words."+key, err))
		}
		w.table[key] = configured[key]
	}
	return w, errors.Join(errs...)
}

// isCommonKey reports whether a key is valid for every kind of program.
func isCommonKey(key string) bool {
	category, name, _ := strings.Cut(key, ".")
	switch category {
	case "state":
		return slices.Contains(states(), agent.Shown(name))
	case "face":
		return slices.ContainsFunc(agent.Emotions(), func(e agent.Emotion) bool { return e.Name == name })
	case "gesture": // an owner may add gestures
		return name != ""
	case "feeling":
		return slices.Contains(feelings(), name)
	}
	return false
}

// ownKeys returns the keys that only programs of this kind have.
func ownKeys(k kind) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(k.words)) {
		if !isCommonKey(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// get returns the word for a key such as "state.thinking", or "" if nothing is to be sent.
func (w words) get(key string) string { return w.table[key] }

// state, face, gesture and feeling return the word for a state, a face, a gesture or a feeling.
func (w words) state(s agent.Shown) string { return w.table["state."+string(s)] }
func (w words) face(name string) string    { return w.table["face."+name] }
func (w words) gesture(name string) string { return w.table["gesture."+name] }
func (w words) feeling(name string) string { return w.table["feeling."+name] }

// orName returns the word for a name in a category, or the name if no word is set. If the word is
// set to "", it returns "".
func (w words) orName(category, name string) string {
	if word, set := w.table[category+"."+name]; set {
		return word
	}
	return name
}

// candidates returns the words that a program may use for a name in a category, such as happy in the
// category face, likeliest first. It is for programs that report the names of their expressions or
// states: findName then finds the name of such an expression or state.
func (w words) candidates(category, name string) (names []string) {
	add := func(word string) {
		if word != "" && !slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, word) }) {
			names = append(names, word)
		}
	}
	word, set := w.table[category+"."+name]
	if set && word == "" {
		return nil // the owner has configured that nothing is shown
	}
	add(word)
	add(name)
	if category == "face" {
		for _, v := range []agent.Vocabulary{agent.VocabularyRFC, agent.VocabularyLive2D, agent.VocabularyVRM, agent.VocabularyVRM0} {
			add(w.names.Word(v, name))
		}
	}
	return names
}

// findName returns the index in names of a name that equals a candidate. If there is no such name, it
// returns the index of a name that contains a candidate as a part: "01_Happy" contains happy. It
// prefers earlier candidates and ignores case. It returns -1 if no name matches.
func findName(names, candidates []string) int {
	for _, whole := range []bool{true, false} {
		for _, candidate := range candidates {
			i := slices.IndexFunc(names, func(name string) bool {
				return strings.EqualFold(name, candidate) || !whole && slices.ContainsFunc(parts(name), func(part string) bool {
					return strings.EqualFold(part, candidate)
				})
			})
			if i >= 0 {
				return i
			}
		}
	}
	return -1
}

// parts splits a name at all characters that are neither letters nor digits.
func parts(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// states returns all visible states of an agent.
func states() []agent.Shown {
	return []agent.Shown{agent.Idle, agent.Listening, agent.Thinking, agent.Working, agent.Juggling, agent.Speaking,
		agent.Attention, agent.Notification, agent.Failed, agent.Sleeping}
}

// feelings returns the names of all feelings of a mood. The first one is neutral.
func feelings() []string {
	return []string{"neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"}
}

// capitalize returns a name with its first letter in upper case, as in the names of parameters.
func capitalize(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
