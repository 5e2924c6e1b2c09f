package agent

import (
	"strings"
	"unicode"

	"perch/language"
	"perch/plain"
)

// SpokenTitle returns the title of a tool without characters that voices cannot speak,
// without format characters (Unicode category Cf), which can reorder displayed text,
// without emoji, and without punctuation at its end.
func SpokenTitle(title string) string {
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

// Permission returns the question whether a tool of this kind and title may run, as one
// sentence. The kinds are those of the Agent Client Protocol, such as "execute". In a command
// (kind "execute"), words replace shell operators, because people decide by what they hear.
// The title is cut to maxTitle bytes; cut tells whether the caller has already cut it. If
// either has cut the title, the question says that the title is incomplete.
func Permission(w *language.Words, kind, title string, maxTitle int, cut bool) string {
	if kind == "execute" {
		title = spokenCommand(title, w)
	}
	if title = SpokenTitle(title); cut || len(title) > maxTitle {
		title = w.Message("ask.cut", "title", strings.TrimSpace(plain.Clip(title, maxTitle)))
	}
	if !w.Has("may." + kind) {
		kind = "other"
	}
	if title == "" {
		return w.Message("may_untitled." + kind)
	}
	return w.Message("may."+kind, "title", title)
}

// spokenCommand replaces redirections, pipes and line breaks in a shell command by words.
// Voices skip these characters, so a person would not hear which file a command writes to.
func spokenCommand(command string, w *language.Words) string {
	words := func(key string) string { return " " + w.Message(key) + " " }
	return strings.NewReplacer(">>", words("shell.append"), ">", words("shell.into"), "<", words("shell.from"), "|", words("shell.pipe"),
		"\n", words("shell.then")).Replace(command)
}

// Speakable returns a text as one line of valid UTF-8 without control characters.
func Speakable(text string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(line)
}
