package agent

import (
	"strings"
	"unicode"
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

// ShellAloud replaces the operators of a shell command by words, because voices
// skip them: a person must hear where a command writes, and what follows. The
// language is BCP 47: German, or else English.
func ShellAloud(command, language string) string {
	signs := []string{">>", " onto ", ">", " into ", "<", " from ", "|", " pipe ", "\n", " then "}
	if tag, _, _ := strings.Cut(strings.ToLower(language), "-"); tag == "de" {
		signs = []string{">>", " hinten an ", ">", " nach ", "<", " aus ", "|", " Pipe ", "\n", " dann "}
	}
	return strings.NewReplacer(signs...).Replace(command)
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

// Fill puts values into a phrase: pairs of a name, which stands in braces there,
// and its value. What stands in a value is left as it is.
func Fill(phrase string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = "{" + pairs[i] + "}"
	}
	return strings.NewReplacer(pairs...).Replace(phrase)
}
