package thinker

import (
	"strings"
	"unicode"
)

// dotRules describes how a language uses dots.
type dotRules struct {
	abbreviations map[string]abbreviation // key: the abbreviation in lower case, without its last dot
	ordinals      bool                    // whether "3." means the third
	nouns         bool                    // whether nouns begin with a capital, so that a capital does not show the beginning of a sentence
}

// abbreviation determines when the dot of an abbreviation also ends the sentence.
type abbreviation int

const (
	never     abbreviation = iota + 1 // the dot never ends a sentence: "Dr."
	sometimes                         // the sentence ends if a new one may begin (see startsSentence): "No. I will not", but "No. 5"
)

// dotRulesOf returns the rules of the language with a BCP 47 tag. For "" and for a language that
// abbreviations does not list, all listed abbreviations apply.
func dotRulesOf(language string) dotRules {
	language, _, _ = strings.Cut(strings.ToLower(strings.ReplaceAll(language, "_", "-")), "-")
	m := dotRules{abbreviations: map[string]abbreviation{}, nouns: language == "de"}
	for _, of := range strings.Fields("de da nb nn no cs sk sl pl hu fi hr sr et lv tr is") {
		m.ordinals = m.ordinals || of == language
	}
	_, known := abbreviations()[language]
	for of, kinds := range abbreviations() {
		if known && of != language {
			continue
		}
		for kind, words := range kinds {
			for _, word := range strings.Fields(words) {
				if m.abbreviations[word] != never { // languages may differ
					m.abbreviations[word] = kind
				}
			}
		}
	}
	return m
}

// abbreviations maps languages and kinds to common abbreviations, separated by spaces, in lower
// case and without their last dot. Abbreviations that are also common words ("sun", "am") are
// left out.
func abbreviations() map[string]map[abbreviation]string {
	return map[string]map[abbreviation]string{
		"en": {
			never: "mr mrs ms mx dr prof st mt sr jr gen col lt capt cpt sgt rev hon gov sen rep vs e.g i.e cf dept approx " +
				"est ave blvd viz al",
			sometimes: "no nos p pp vol fig ch sec art jan feb mar apr jun jul aug sep sept oct nov dec tel ext etc inc ltd co corp bros",
		},
		"de": {
			never: "dr prof hr hrn fr frl st z.b d.h u.a z.t v.a s.o s.u o.ä u.ä i.d.r z.zt bzw ca evtl ggf inkl exkl vgl sog " +
				"abs mio mrd bspw zzgl gem geb gest jh dipl ing str tel hbf allg",
			sometimes: "nr s bd kap art jan feb mär apr jun jul aug sep sept okt nov dez usw usf etc",
		},
	}
}

// endsSentence reports whether the dot after a text ends a sentence. If that depends on the next
// letter, ended is false and doubt reports it for this letter; otherwise doubt is nil.
func (m dotRules) endsSentence(text string) (ended bool, doubt func(next rune) bool) {
	before, word := "", text
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		before, word = text[:i], text[i+1:]
	}
	word = strings.TrimLeft(word, `"'([{„“‚‘«»‹›`)
	switch m.abbreviations[strings.ToLower(word)] {
	case never:
		return false, nil
	case sometimes:
		return false, startsSentence
	}
	letters := []rune(word)
	switch {
	case isNumber(word):
		listed := before == "" && word == text // "1. Open the door"
		return !listed && (!m.ordinals || len(word) > 3), nil
	case len(letters) == 1 && unicode.IsLetter(letters[0]):
		return word == "I" && before != "", nil // another single letter is an initial or a part of "z. B."
	case strings.Contains(word, ".") && isDotted(word):
		if m.nouns || unicode.IsUpper(letters[0]) {
			return false, nil // "U.S."
		}
		return false, startsSentence // "5 p.m."
	}
	return true, nil
}

// isNumber reports whether a word has only digits.
func isNumber(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) })
}

// isDotted reports whether a word consists of parts of one or two letters, separated by dots.
func isDotted(word string) bool {
	for _, part := range strings.Split(word, ".") {
		letters := []rune(part)
		if len(letters) < 1 || len(letters) > 2 || !unicode.IsLetter(letters[0]) {
			return false
		}
	}
	return true
}

// startsSentence reports whether a character after a dot may begin a sentence: any but a small letter
// or a digit.
func startsSentence(next rune) bool { return !unicode.IsLower(next) && !unicode.IsDigit(next) }
