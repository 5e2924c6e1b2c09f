// Package plain makes untrusted text safe to log, display or speak.
package plain

import (
	"strings"
	"unicode"
)

// Text returns s as one line of valid UTF-8. It removes control and format characters, which could
// control a terminal or start a new line of a log.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// Line returns s as one line: it replaces each run of white space by one space, and removes control
// characters. Invalid bytes become U+FFFD. It does not remove format characters, which joined emoji
// need.
func Line(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)), " ")
}

// Clip truncates s to at most maxBytes bytes of valid UTF-8. It does not split a rune, but may
// separate a combining mark from its letter, or split an emoji sequence. The result does not
// share memory with a longer s.
func Clip(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return strings.ToValidUTF8(s, "")
	}
	return strings.Clone(strings.ToValidUTF8(s[:max(maxBytes, 0)], ""))
}
