// Package plain makes text from outside safe for a log, a terminal, a page or a voice.
package plain

import (
	"strings"
	"unicode"
)

// Text returns a text as valid UTF-8 in one line, without control and format characters,
// which would control a terminal or begin a line of a log.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// Line returns a text in one line, with one space for each run of white space, and
// without control characters. An invalid byte becomes U+FFFD. Format characters stay,
// which joined emoji need.
func Line(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)), " ")
}

// Clip returns a text of at most most bytes, as valid UTF-8: it does not split a rune, but may
// separate a combining mark from its letter, or split an emoji sequence. The result does not
// keep the rest of s in memory.
func Clip(s string, most int) string {
	if len(s) <= most {
		return strings.ToValidUTF8(s, "")
	}
	return strings.Clone(strings.ToValidUTF8(s[:max(most, 0)], ""))
}
