package agent

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/language"
	"perch/plain"
)

// vocabulary holds the words that mean yes or no in all languages, because people may
// answer in another language than the question's.
type vocabulary struct {
	kinds     map[string]string // key: word in lower case; value: "yes", "no" or "fillers"
	yesGroups []string          // groups of words that mean yes only together
	maxWord   int               // bytes of the longest word
}

// newVocabulary returns the vocabulary of a catalogue.
func newVocabulary(words *language.Catalogue) vocabulary {
	v := vocabulary{kinds: map[string]string{}}
	for _, tag := range language.All() {
		w := words.In(string(tag))
		for kind, text := range map[string]string{"fillers": w.Message("answers.fillers"), "yes": w.Message("answers.yes"), "no": w.Message("answers.no")} {
			for word := range strings.FieldsSeq(text) {
				// A word may have different meanings in two languages: "no" takes precedence over "yes",
				// and "yes" over filler words.
				if previous := v.kinds[word]; previous != "no" && (previous != "yes" || kind == "no") {
					v.kinds[word] = kind
				}
				v.maxWord = max(v.maxWord, len(word))
			}
		}
		for group := range strings.SplitSeq(w.Message("answers.together"), ",") {
			v.yesGroups = append(v.yesGroups, strings.TrimSpace(group))
		}
	}
	return v
}

// split splits a word of a script without spaces, such as Japanese, into words of the
// vocabulary, each as long as possible, and single characters. It returns other words whole.
func (v vocabulary) split(text string) (words []string) {
	if !strings.ContainsFunc(text, language.Spaceless) || v.kinds[text] != "" {
		return []string{text}
	}
	for text != "" {
		n := min(len(text), v.maxWord)
		for n > 1 && v.kinds[text[:n]] == "" {
			n--
		}
		if v.kinds[text[:n]] == "" {
			_, n = utf8.DecodeRuneInString(text)
		}
		words = append(words, text[:n])
		text = text[n:]
	}
	return words
}

// YesOrNo interprets an answer in any language of the catalogue. An answer with a word that
// means no is a no. It is a yes if it contains a word that means yes, and no words outside the vocabulary. Other answers are
// not understood: to ask again is better than to run a tool by mistake.
func YesOrNo(words *language.Catalogue, answer string) (yes, understood bool) {
	fields := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(plain.Clip(answer, 400), "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && r != '\'' && r != 'ー'
	})
	v, hasUnknown := newVocabulary(words), false
	for _, field := range fields {
		for _, w := range v.split(field) {
			switch v.kinds[w] {
			case "no":
				return false, true
			case "yes":
				yes = true
			case "":
				hasUnknown = true
			}
		}
	}
	line := " " + strings.Join(fields, " ") + " "
	for _, group := range v.yesGroups {
		yes = yes || strings.Contains(line, " "+group+" ")
	}
	yes = yes && !hasUnknown
	return yes, yes
}
