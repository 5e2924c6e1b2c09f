package agent

import (
	"strings"
	"unicode"
)

// Aloud is what a tool would do without what no voice can read, and without the
// characters that show a text in another order than it has.
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

// ShellAloud is a command with words for the signs of a shell, which no voice
// reads: who is asked whether it may run has to hear where it writes, and what
// comes after. The language is a BCP 47 tag: German, and English for all others.
func ShellAloud(command, language string) string {
	signs := []string{">>", " onto ", ">", " into ", "<", " from ", "|", " pipe ", "\n", " then "}
	if tag, _, _ := strings.Cut(strings.ToLower(language), "-"); tag == "de" {
		signs = []string{">>", " hinten an ", ">", " nach ", "<", " aus ", "|", " Pipe ", "\n", " dann "}
	}
	return strings.NewReplacer(signs...).Replace(command)
}

// Speakable is a text in one line, without what no voice can say and what
// ends a text in a robot's memory.
func Speakable(text string) string {
	spaced := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(spaced)
}
