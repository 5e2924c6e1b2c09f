package agent

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/language"
	"perch/plain"
)

// vocabulary holds the words of answers in all languages together, because a person
// asked in one language may answer in another. An answer is a yes only if all its words are known; a single no makes it a no. An answer that is
// not understood costs another question; a misunderstood one may cost a file.
type vocabulary struct {
	kinds    map[string]string // "yes", "no" or "fillers", by the word
	together []string          // words that mean yes together
	longest  int               // bytes of a word
}

func newVocabulary(words *language.Catalogue) vocabulary {
	v := vocabulary{kinds: map[string]string{}}
	for _, tag := range language.All() {
		w := words.In(string(tag))
		for kind, text := range map[string]string{"fillers": w.Message("answers.fillers"), "yes": w.Message("answers.yes"), "no": w.Message("answers.no")} {
			for word := range strings.FieldsSeq(text) {
				// A word that means no in any language means no; yes outranks a filler.
				if had := v.kinds[word]; had != "no" && (had != "yes" || kind == "no") {
					v.kinds[word] = kind
				}
				v.longest = max(v.longest, len(word))
			}
		}
		for together := range strings.SplitSeq(w.Message("answers.together"), ",") {
			v.together = append(v.together, strings.TrimSpace(together))
		}
	}
	return v
}

// cut splits text written without spaces into known words, the longest first, and
// single characters.
func (v vocabulary) cut(text string) (words []string) {
	if !strings.ContainsFunc(text, language.Spaceless) || v.kinds[text] != "" {
		return []string{text}
	}
	for text != "" {
		n := min(len(text), v.longest)
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

// YesOrNo interprets an answer in any language of the catalogue; yes is false if not
// understood.
func YesOrNo(words *language.Catalogue, answer string) (yes, understood bool) {
	spoken := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(plain.Clip(answer, 400), "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && r != '\'' && r != 'ー'
	})
	v, strange := newVocabulary(words), false
	for _, s := range spoken {
		for _, w := range v.cut(s) {
			switch v.kinds[w] {
			case "no":
				return false, true
			case "yes":
				yes = true
			case "":
				strange = true
			}
		}
	}
	line := " " + strings.Join(spoken, " ") + " "
	for _, together := range v.together {
		yes = yes || strings.Contains(line, " "+together+" ")
	}
	yes = yes && !strange
	return yes, yes
}
