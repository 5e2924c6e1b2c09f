package language

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Fold returns a text in the form for comparisons: in lower case, with one form of each
// letter. Wide digits become digits, narrow kana become kana, and a letter with an accent
// becomes one letter. Accents stay: "si" and "sí" are two words.
func Fold(text string) string {
	return strings.ToLower(norm.NFKC.String(strings.ReplaceAll(text, "’", "'")))
}

// Split splits a text into its words, folded. In scripts that are written without spaces,
// each character is a word, regardless of spaces. A number in digits of any script is one
// word of the digits 0 to 9. Punctuation, signs and apostrophes around a word are
// removed.
func Split(text string) []string {
	c := splitter{}
	for _, r := range Fold(text) {
		c.add(r)
	}
	c.flush()
	return c.words
}

// splitter splits a text that arrives rune by rune.
type splitter struct {
	words  []string
	word   []rune // the current one
	digits bool   // it is a number
}

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
		c.mark(r)
	case r == '\'' && len(c.word) > 0 && !c.digits:
		c.word = append(c.word, r)
	case unicode.Is(unicode.Cf, r): // joiners, and marks of direction
	default:
		c.flush()
	}
}

// extendWord adds a rune to the word, or starts another if that is of the other kind.
func (c *splitter) extendWord(digits bool, r rune) {
	if digits != c.digits {
		c.flush()
	}
	c.digits = digits
	c.word = append(c.word, r)
}

// mark adds a mark to the previous letter, if any.
func (c *splitter) mark(r rune) {
	switch last := len(c.words) - 1; {
	case len(c.word) > 0 && !c.digits:
		c.word = append(c.word, r)
	case len(c.word) == 0 && last >= 0 && unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		c.words[last] += string(r)
	}
}

func (c *splitter) flush() {
	if word := strings.TrimRight(string(c.word), "'"); word != "" {
		c.words = append(c.words, word)
	}
	c.word = c.word[:0]
}

// digit returns the value of a decimal digit: those of a script are ten in a row, from 0.
func digit(r rune) (n rune) {
	for unicode.Is(unicode.Nd, r-n-1) {
		n++
	}
	return n % 10
}

// Spaceless reports whether a letter is of a script that is written without spaces
// between words: Chinese, Japanese, and those related to Thai.
func Spaceless(r rune) bool {
	const long = 'ー' // Japanese, though Unicode assigns it to no script
	return r == long || r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && !unicode.Is(unicode.M, r) && !unicode.Is(unicode.Nd, r)
}
