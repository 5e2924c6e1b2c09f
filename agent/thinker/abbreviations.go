package thinker

import (
	"strings"
	"unicode"
)

// dotRules describe a language's use of dots.
type dotRules struct {
	abbreviations map[string]abbreviation
	ordinals      bool // "3." means the third
	nouns         bool // nouns are capitalized, so a capital after a dot means nothing
}

// abbreviation tells whether the dot of an abbreviation can also end the sentence.
type abbreviation int

const (
	never         abbreviation = iota + 1 // "Dr."
	beforeNumber                          // "No. 5" and "3. Okt. um zwei" go on, "No. I will not" does not
	beforeCapital                         // "etc." ends where a capital follows
)

// dotRulesOf returns the rules of a language in BCP 47. For an unknown or empty
// language the abbreviations of all languages apply.
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
				m.abbreviations[word] = kind
			}
		}
	}
	return m
}

// abbreviations returns common ones, in lower case and without the last dot. Words
// that often end a sentence ("sun", "am") are left out.
func abbreviations() map[string]map[abbreviation]string {
	return map[string]map[abbreviation]string{
		"en": {
			never: "mr mrs ms mx dr prof st mt sr jr gen col lt capt cpt sgt rev hon gov sen rep vs e.g i.e cf dept approx " +
				"est ave blvd viz al",
			beforeNumber:  "no nos p pp vol fig ch sec art jan feb mar apr jun jul aug sep sept oct nov dec tel ext",
			beforeCapital: "etc inc ltd co corp bros",
		},
		"de": {
			never: "dr prof hr hrn fr frl st z.b d.h u.a z.t v.a s.o s.u o.ä u.ä i.d.r z.zt bzw ca evtl ggf inkl exkl vgl sog " +
				"abs mio mrd bspw zzgl gem geb gest jh dipl ing str tel hbf allg",
			beforeNumber:  "nr s bd kap art jan feb mär apr jun jul aug sep sept okt nov dez",
			beforeCapital: "usw usf etc",
		},
	}
}

// endsSentence reports whether the dot after a text ends a sentence. If that
// depends on what follows, doubt decides it by the next letter.
func (m dotRules) endsSentence(text string) (ended bool, doubt func(next rune) bool) {
	before, word := "", text
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		before, word = text[:i], text[i+1:]
	}
	word = strings.TrimLeft(word, `"'([{„“‚‘«»‹›`)
	switch m.abbreviations[strings.ToLower(word)] {
	case never:
		return false, nil
	case beforeNumber:
		return false, func(next rune) bool { return !unicode.IsDigit(next) && !unicode.IsLower(next) }
	case beforeCapital:
		return false, startsSentence
	}
	letters := []rune(word)
	switch {
	case isNumber(word):
		listed := before == "" && word == text // "1. Open the door"
		return !listed && (!m.ordinals || len(word) > 3), nil
	case len(letters) == 1 && unicode.IsLetter(letters[0]):
		return word == "I" && before != "", nil // else an initial, or "z. B."
	case strings.Contains(word, ".") && isDotted(word):
		if m.nouns || unicode.IsUpper(letters[0]) {
			return false, nil // "U.S."
		}
		return false, startsSentence // "5 p.m."
	}
	return true, nil
}

func isNumber(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) })
}

// isDotted reports whether a word consists of one or two letters between dots.
func isDotted(word string) bool {
	for _, part := range strings.Split(word, ".") {
		letters := []rune(part)
		if len(letters) < 1 || len(letters) > 2 || !unicode.IsLetter(letters[0]) {
			return false
		}
	}
	return true
}

// startsSentence reports whether a letter after a dot may begin a sentence.
func startsSentence(next rune) bool { return !unicode.IsLower(next) && !unicode.IsDigit(next) }
