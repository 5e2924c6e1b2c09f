package openjtalk

import (
	"iter"
	"strings"
	"unicode"
)

// Lengths of text passed to the program, in characters. It reads one line of 1022 bytes,
// makes three bytes of each ASCII character, and has 1024 for the result: a longer line
// crashes it. It makes the sound of a whole line before it writes any, so a text is best
// passed by sentences, but not by words.
const (
	leastPiece = 8
	mostPiece  = 100
)

// pieces yields the sentences of a text that have something to speak. A longer sentence is
// cut at its pauses.
func pieces(text string) iter.Seq[string] {
	rest := []rune(strings.Map(plain, strings.ToValidUTF8(text, "")))
	return func(yield func(string) bool) {
		for len(rest) > 0 {
			n := sentence(rest)
			piece := strings.TrimSpace(string(rest[:n]))
			rest = rest[n:]
			if strings.ContainsFunc(piece, spoken) && !yield(piece) {
				return
			}
		}
	}
}

// plain removes control characters; the first would end the program's line.
func plain(r rune) rune {
	switch {
	case r == '\n':
		return '。'
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r):
		return -1
	}
	return r
}

// spoken reports whether a character may be spoken.
func spoken(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) }

// sentence returns the length of the first sentence, in characters.
func sentence(text []rune) int {
	const ends, closes, pauses = "。！？!?．", "」』）)”", "、，,；;：: "
	pause := mostPiece
	for i, r := range text[:min(mostPiece, len(text))] {
		goesOn := i+1 < len(text) && strings.ContainsRune(ends+closes, text[i+1])
		switch {
		case strings.ContainsRune(ends, r) && !goesOn && i+1 >= leastPiece:
			return i + 1
		case strings.ContainsRune(ends+pauses, r) && !goesOn && i+1 >= leastPiece:
			pause = i + 1
		}
	}
	if len(text) <= mostPiece {
		return len(text)
	}
	return pause
}
