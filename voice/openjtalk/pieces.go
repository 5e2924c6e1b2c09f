package openjtalk

import (
	"iter"
	"strings"
	"unicode"
)

// How many characters the program is given at a time. It reads one line of 1022 bytes
// and no more, makes three bytes of each ASCII character, and has 1024 for the result:
// a longer line kills it. It makes the sound of a whole line before it gives any, so a
// text is better given sentence by sentence, but not word by word.
const (
	leastPiece = 8
	mostPiece  = 100
)

// pieces are the sentences of a text, each with something to say in it. A longer
// sentence is cut where it pauses.
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

// plain leaves no control character, the first of which would end the program's line.
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

// sentence is how many characters the first sentence has.
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
