package language

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Fold returns a text in a form for comparisons: in lower case and in Unicode's
// normalization form NFKC. For example, full-width digits become ASCII digits, half-width
// kana become full-width, and a letter followed by a combining accent becomes one letter.
// Accents are not removed: "si" and "sí" remain different. The apostrophe ’ becomes '.
func Fold(text string) string {
	return strings.ToLower(norm.NFKC.String(strings.ReplaceAll(text, "’", "'")))
}

// Split folds a text and splits it into words. In scripts without spaces between words,
// each character is a word. The digits of a number form one word, and become 0 to 9 in any
// script. Punctuation, symbols and apostrophes around a word are removed.
func Split(text string) []string {
	c := splitter{}
	for _, r := range Fold(text) {
		c.add(r)
	}
	c.flush()
	return c.words
}

// splitter splits a folded text that arrives rune by rune.
type splitter struct {
	words  []string // complete words
	word   []rune   // the current word
	digits bool     // whether the current word is a number
}

// add handles the next rune of the text.
func (c *splitter) add(r rune) {
	switch {
	case Spaceless(r):
		c.flush()
		c.words = append(c.words, string(r))
	case unicode.Is(unicode.Nd, r):
		c.extendWord(true, '0'+digit(r))
	case unicode.IsLetter(r):
		c.extendWord(false, r)
	case unicode.IsMark(r):
		c.addMark(r)
	case r == '\'' && len(c.word) > 0 && !c.digits:
		c.word = append(c.word, r)
	case unicode.Is(unicode.Cf, r): // invisible characters, such as joiners, do not end a word
	default:
		c.flush()
	}
}

// extendWord adds a letter or a digit to the current word. It first ends a word of digits
// before a letter, and a word of letters before a digit.
func (c *splitter) extendWord(digits bool, r rune) {
	if digits != c.digits {
		c.flush()
	}
	c.digits = digits
	c.word = append(c.word, r)
}

// addMark adds a combining mark to the current word, or to the previous letter of a script such as
// Thai, where each letter is a word. It ignores other marks.
func (c *splitter) addMark(r rune) {
	switch last := len(c.words) - 1; {
	case len(c.word) > 0 && !c.digits:
		c.word = append(c.word, r)
	case len(c.word) == 0 && last >= 0 && unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		c.words[last] += string(r)
	}
}

// flush ends the current word.
func (c *splitter) flush() {
	if word := strings.TrimRight(string(c.word), "'"); word != "" {
		c.words = append(c.words, word)
	}
	c.word = c.word[:0]
}

// digit returns the value of a decimal digit of any script. In Unicode, the digits 0 to 9 of
// a script are consecutive.
func digit(r rune) (n rune) {
	for unicode.Is(unicode.Nd, r-n-1) {
		n++
	}
	return n % 10
}

// Spaceless reports whether r is a letter of a script without spaces between words: Chinese,
// Japanese, Thai, Lao, Khmer or Burmese.
func Spaceless(r rune) bool {
	const longVowel = 'ー' // Japanese, although Unicode does not assign this letter to a single script
	return r == longVowel || r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && !unicode.Is(unicode.M, r) && !unicode.Is(unicode.Nd, r)
}
