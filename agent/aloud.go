package agent

import (
	"strings"
	"unicode"

	"perch/language"
	"perch/plain"
)

// Aloud returns a tool's title without characters that a voice cannot
// speak, and without formatting characters that reorder displayed text.
func Aloud(title string) string {
	title = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("`*_#|<>[]{}\"", r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, title)
	_, words := SplitEmotion(title)
	return strings.TrimRight(words, " .!?:")
}

// Permission returns the question whether a tool of that kind may run, as one
// sentence. People decide by what they hear, so shell operators are spoken as words,
// and a title that was cut, here to most bytes or before, is announced as cut.
func Permission(w *language.Words, kind, title string, most int, cut bool) string {
	if kind == "execute" {
		title = shellAloud(title, w)
	}
	if title = Aloud(title); cut || len(title) > most {
		title = w.Message("ask.cut", "title", strings.TrimSpace(plain.Clip(title, most)))
	}
	if !w.Has("may." + kind) {
		kind = "other"
	}
	if title == "" {
		return w.Message("may_untitled." + kind)
	}
	return w.Message("may."+kind, "title", title)
}

// shellAloud replaces the operators of a shell command by words, because voices
// skip them: a person must hear where a command writes, and what follows.
func shellAloud(command string, w *language.Words) string {
	spoken := func(key string) string { return " " + w.Message(key) + " " }
	return strings.NewReplacer(">>", spoken("shell.append"), ">", spoken("shell.into"), "<", spoken("shell.from"), "|", spoken("shell.pipe"),
		"\n", spoken("shell.then")).Replace(command)
}

// Speakable returns a text as one line of valid UTF-8 without control characters.
func Speakable(text string) string {
	spaced := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(spaced)
}
