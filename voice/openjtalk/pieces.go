package openjtalk

import (
	"iter"
	"strings"
	"unicode"
)

// Limits of a piece of text that is passed to the program, in characters. The program reads a
// single line and converts each ASCII character to three bytes; it crashes if the result is
// longer than 1024 bytes. It writes no sound before it has synthesized the whole piece, so a
// text is passed sentence by sentence. Much shorter pieces would sound bad.
const (
	minPiece = 8
	maxPiece = 100
)

// pieces yields the pieces of a text that can be spoken: its sentences, and the parts of
// sentences that are too long.
func pieces(text string) iter.Seq[string] {
	rest := []rune(strings.Map(toLine, strings.ToValidUTF8(text, "")))
	return func(yield func(string) bool) {
		for len(rest) > 0 {
			n := pieceLength(rest)
			piece := strings.TrimSpace(string(rest[:n]))
			rest = rest[n:]
			if strings.ContainsFunc(piece, isSpoken) && !yield(piece) {
				return
			}
		}
	}
}

// toLine replaces a line break by a full stop and other white space by a space, and removes
// other control characters. The program reads only the first line.
func toLine(r rune) rune {
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

// isSpoken reports whether a character may be spoken.
func isSpoken(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) }

// pieceLength returns the length of the first piece of a text, in characters. The piece ends with
// a sentence, or else with the last pause within maxPiece characters, but not before minPiece
// characters.
func pieceLength(text []rune) int {
	const ends, closes, pauses = "。！？!?．", "」』）)”", "、，,；;：: "
	lastPause := maxPiece
	for i, r := range text[:min(maxPiece, len(text))] {
		continues := i+1 < len(text) && strings.ContainsRune(ends+closes, text[i+1])
		switch {
		case strings.ContainsRune(ends, r) && !continues && i+1 >= minPiece:
			return i + 1
		case strings.ContainsRune(ends+pauses, r) && !continues && i+1 >= minPiece:
			lastPause = i + 1
		}
	}
	if len(text) <= maxPiece {
		return len(text)
	}
	return lastPause
}
