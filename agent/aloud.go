package agent

import (
	"strings"
	"unicode"

	"perch/language"
	"perch/plain"
)

// Aloud is the description of a tool's work without characters that a voice cannot
// speak, and without those that display a text in another order.
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

// Permission is the question whether a tool of that kind may do its work, in one
// sentence. Who hears it decides by it, so the signs of a command are spoken as
// words, and a title that is cut, to so many bytes here or before, says that it is.
func Permission(w *language.Words, kind, title string, most int, cut bool) string {
	if kind == "execute" {
		title = shellAloud(title, w)
	}
	if title = Aloud(title); cut || len(title) > most {
		title = w.Say("ask.cut", "title", strings.TrimSpace(plain.Clip(title, most)))
	}
	if !w.Has("may." + kind) {
		kind = "other"
	}
	if title == "" {
		return w.Say("may_untitled." + kind)
	}
	return w.Say("may."+kind, "title", title)
}

// shellAloud replaces the operators of a shell command by words, because voices
// skip them: a person must hear where a command writes, and what follows.
func shellAloud(command string, w *language.Words) string {
	spoken := func(key string) string { return " " + w.Say(key) + " " }
	return strings.NewReplacer(">>", spoken("shell.append"), ">", spoken("shell.into"), "<", spoken("shell.from"), "|", spoken("shell.pipe"),
		"\n", spoken("shell.then")).Replace(command)
}

// Speakable returns a text as one line without characters that a voice cannot
// speak, and without those that end a text in a robot's memory.
func Speakable(text string) string {
	spaced := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(spaced)
}
