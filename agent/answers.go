package agent

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/language"
	"perch/plain"
)

// vocabulary holds the words for yes, the words for no, and the filler words of all
// languages, because people may not answer in the language of the question.
type vocabulary struct {
	kinds     map[string]string // key: word in lower case; value: "yes", "no" or "fillers"
	yesGroups []string          // groups of words that mean yes only together, such as "go ahead"
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

// split splits a word with letters of a script without spaces, such as Japanese, into words
// of the vocabulary, each as long as possible, and single characters. It does not split
// other words, or words of the vocabulary.
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

// YesOrNo interprets an answer in any language of the catalogue. An answer means no if any
// of its words means no. It means yes if a word or a group of words in it means yes, and
// the vocabulary has all words of the answer. Any other answer is not understood, because
// to ask again is better than to run a tool by mistake. Only the first 400 bytes count.
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
