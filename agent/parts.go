package agent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/language"
)

// mostParts bounds the parts of a query that are searched in each entry.
const mostParts = 16

// partsOf splits the words of scripts without spaces, whose word boundaries are
// unknown, into parts to search for: each pair of adjacent letters of one script, or
// a letter that stands alone, such as "鍵" in "鍵はどこ". Hiragana carries the grammar
// of a sentence, and counts only if nothing else is left. Words of other scripts are
// returned whole.
func partsOf(words []string) (whole, parts []string) {
	var grammar []string
	for _, w := range words {
		letters := language.Split(w)
		if !slices.ContainsFunc(letters, func(letter string) bool { return scriptOf(letter) != nil }) {
			whole = append(whole, w)
			continue
		}
		for len(letters) > 0 {
			script, n := scriptOf(letters[0]), 1
			for script != nil && n < len(letters) && scriptOf(letters[n]) == script {
				n++
			}
			all := &parts
			if script == unicode.Hiragana {
				all = &grammar
			}
			for i := range max(n-1, 1) {
				*all = append(*all, strings.Join(letters[i:min(i+2, n)], ""))
			}
			letters = letters[n:]
		}
	}
	if len(parts) == 0 {
		parts = grammar
	}
	return whole, parts[:min(len(parts), mostParts)]
}

// scriptOf returns the spaceless script of a letter, or nil for a word of another script.
func scriptOf(letter string) *unicode.RangeTable {
	r, _ := utf8.DecodeRuneInString(letter)
	switch {
	case !language.Spaceless(r):
		return nil
	case unicode.Is(unicode.Hiragana, r):
		return unicode.Hiragana
	case unicode.Is(unicode.Han, r):
		return unicode.Han
	}
	return unicode.Katakana // or any other spaceless script
}

// mostOf returns, in their order, the entries with more than half as many of the parts
// as the best entry; if those are more than n, the n best. An entry needs a quarter of
// the parts.
func mostOf(all []*indexed, parts []string, n int, fits func(*indexed) bool) (found []*indexed) {
	each := make([]sought, len(parts))
	for i, part := range parts {
		each[i] = newSought([]string{part})
	}
	type hit struct {
		*indexed
		parts int
	}
	var hits []hit
	most := 0 // parts
	for _, e := range all {
		is := 0
		for i := range each {
			if each[i].in(e) {
				is++
			}
		}
		if is > 0 && 4*is >= len(parts) && fits(e) {
			hits, most = append(hits, hit{e, is}), max(most, is)
		}
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return 2*h.parts <= most })
	if n > 0 && len(hits) > n {
		slices.SortStableFunc(hits, func(a, b hit) int { return b.parts - a.parts })
		hits = hits[:n]
		slices.SortFunc(hits, func(a, b hit) int { return byRank(a.indexed, b.indexed) })
	}
	for _, h := range hits {
		found = append(found, h.indexed)
	}
	return found
}

// sought is a set of texts that an entry must all contain.
type sought struct {
	texts []string
	bits  []bits
}

// bits are the hash bits of one word of letters that an entry needs to contain the texts.
type bits struct {
	word int
	set  uint64
}

func newSought(texts []string) sought {
	var all letters
	for _, text := range texts {
		all.add(text)
	}
	s := sought{texts: texts}
	for i, set := range all {
		if set != 0 {
			s.bits = append(s.bits, bits{i, set})
		}
	}
	return s
}

func (s *sought) in(e *indexed) bool {
	for _, b := range s.bits {
		if e.letters[b.word]&b.set != b.set {
			return false
		}
	}
	for _, text := range s.texts {
		if !strings.Contains(e.text, text) {
			return false
		}
	}
	return true
}

// letters is a Bloom filter of the three-byte sequences of a text. Three bytes are three
// letters, or one of a script without spaces. A text that lacks a bit of another
// does not contain the other, and need not be searched.
type letters [16]uint64

func (l *letters) add(text string) {
	for i := range len(text) - 2 {
		three := uint32(text[i]) | uint32(text[i+1])<<8 | uint32(text[i+2])<<16
		bit := three * 2654435761 >> 22 // Knuth's multiplicative hash to 10 bits
		l[bit>>6] |= 1 << (bit & 63)
	}
}
