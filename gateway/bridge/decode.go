package bridge

import (
	"unicode/utf8"

	"perch/gateway/httpserver"
	"perch/plain"
)

// needed is a text in one line that must be there, of at most that many bytes.
func needed(name, text string, most int) (string, error) {
	text = plain.Line(text)
	if text == "" {
		return "", httpserver.BadBody(name + " is needed, a text that is not empty")
	}
	if len(text) > most {
		return "", httpserver.BadBody(name + " is too long")
	}
	return text, nil
}

// cut is at most n characters of a text.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n])
}
