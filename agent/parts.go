package agent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/language"
)

// maxParts is the maximum number of parts of a query that are searched for.
const maxParts = 16

// splitParts returns the words of scripts with spaces whole. It splits text of scripts without
// spaces into parts to search for: each pair of adjacent letters of one script, and each letter or
// word without a neighbour of its script, such as "鍵" in "鍵はどこ". Parts in Hiragana, which are
// mostly grammar, are returned only if there are no others.
func splitParts(words []string) (whole, parts []string) {
	var hiragana []string
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
			dst := &parts
			if script == unicode.Hiragana {
				dst = &hiragana
			}
			for i := range max(n-1, 1) {
				*dst = append(*dst, strings.Join(letters[i:min(i+2, n)], ""))
			}
			letters = letters[n:]
		}
	}
	if len(parts) == 0 {
		parts = hiragana
	}
	return whole, parts[:min(len(parts), maxParts)]
}

// scriptOf returns the script of a letter that belongs to a script without spaces, and nil
// for any other letter or word.
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
	return unicode.Katakana // for all other scripts without spaces, too
}

// searchParts returns the entries that satisfy cond and contain many of the parts: at least
// a quarter of them, and more than half as many as the best entry contains. If n is greater
// than 0, searchParts returns at most n entries, namely those with the most parts. The
// parameter entries must be in the order of compareRank; the result is in the same order.
func searchParts(entries []*indexed, parts []string, n int, cond func(*indexed) bool) (found []*indexed) {
	patterns := make([]pattern, len(parts))
	for i, part := range parts {
		patterns[i] = newPattern([]string{part})
	}
	type hit struct {
		*indexed
		parts int // parts that the entry contains
	}
	var hits []hit
	maxParts, complete := 0, 0 // maximum of hit.parts, and number of hits with all parts
	for _, e := range entries {
		count := 0
		for i := range patterns {
			if patterns[i].matches(e) {
				count++
			}
		}
		if count > 0 && 4*count >= len(parts) && cond(e) {
			hits, maxParts = append(hits, hit{e, count}), max(maxParts, count)
			if count == len(parts) {
				complete++
			}
			if complete > 0 && complete == n {
				break // no entry that follows is better
			}
		}
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return 2*h.parts <= maxParts })
	if n > 0 && len(hits) > n {
		slices.SortStableFunc(hits, func(a, b hit) int { return b.parts - a.parts })
		hits = hits[:n]
		slices.SortFunc(hits, func(a, b hit) int { return compareRank(a.indexed, b.indexed) })
	}
	for _, h := range hits {
		found = append(found, h.indexed)
	}
	return found
}

// pattern matches entries that contain all of several texts.
type pattern struct {
	texts  []string
	filter []filterWord // the 64-bit words that are not zero in the trigrams of texts
}

// filterWord is one of the 64-bit words of a value of type trigrams.
type filterWord struct {
	index int
	bits  uint64
}

// newPattern returns a pattern for these texts, which must be folded (see language.Fold).
func newPattern(texts []string) pattern {
	var t trigrams
	for _, text := range texts {
		t.add(text)
	}
	p := pattern{texts: texts}
	for i, bits := range t {
		if bits != 0 {
			p.filter = append(p.filter, filterWord{i, bits})
		}
	}
	return p
}

// matches reports whether an entry contains all texts of the pattern.
func (p *pattern) matches(e *indexed) bool {
	for _, w := range p.filter {
		if e.trigrams[w.index]&w.bits != w.bits {
			return false
		}
	}
	for _, text := range p.texts {
		if !strings.Contains(e.text, text) {
			return false
		}
	}
	return true
}

// trigrams is a Bloom filter of the sequences of three bytes in texts. If the filter of an
// entry lacks a bit of the filter of a searched text, the entry does not contain the text.
type trigrams [16]uint64

// add adds the trigrams of a text.
func (t *trigrams) add(text string) {
	for i := range len(text) - 2 {
		trigram := uint32(text[i]) | uint32(text[i+1])<<8 | uint32(text[i+2])<<16
		bit := trigram * 2654435761 >> 22 // Knuth's multiplicative hash to 10 bits
		t[bit>>6] |= 1 << (bit & 63)
	}
}
