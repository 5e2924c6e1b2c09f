package agent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/language"
)

// mostParts bounds the parts of a query that are looked for in each entry.
const mostParts = 16

// partsOf are what to look for of the words in scripts without spaces, where it is not
// known which of the letters are words: each two that follow each other in one script,
// or one that stands alone, such as "鍵" in "鍵はどこ". What is in hiragana is the grammar
// of a sentence, and counts only if there is nothing else. Words of other scripts stay.
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

// scriptOf is the script of a letter of one without spaces, or nil for a word of others.
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
	return unicode.Katakana // or another
}

// mostOf are the entries with more than half as many of the parts as the one that has
// the most of them, in their order; if those are more than n, the n with the most. A
// quarter of the parts is the least.
func mostOf(all []*indexed, parts []string, n int, fits func(*indexed) bool) (found []*indexed) {
	letters := make([]letterSet, len(parts))
	for i, part := range parts {
		letters[i] = lettersOf(part)
	}
	has := make([]int8, len(all))
	var with [mostParts + 1]int // entries, by how many parts they have
	for at, e := range all {
		for i, part := range parts {
			if e.letters.hold(&letters[i]) && strings.Contains(e.text, part) {
				has[at]++
			}
		}
		if 4*int(has[at]) < len(parts) || !fits(e) {
			has[at] = 0
		}
		with[has[at]]++
	}
	most := mostParts
	for most > 0 && with[most] == 0 {
		most--
	}
	least, above := most, 0
	for 2*(least-1) > most && (n <= 0 || above+with[least] < n) {
		above += with[least]
		least--
	}
	last := n - above // of those with the least, if not all are wanted
	for at, e := range all {
		if int(has[at]) > least || int(has[at]) == least && least > 0 && (n <= 0 || last > 0) {
			found = append(found, e)
			if int(has[at]) == least {
				last--
			}
		}
	}
	return found
}

// letterSet is which letters of scripts without spaces a text has, and which two one
// after the other, each as a bit of a hash: a text whose set lacks one of a part's does
// not contain the part, and need not be searched.
type letterSet [8]uint64

func lettersOf(text string) (set letterSet) {
	before := uint32(0)
	for _, r := range text {
		if unicode.IsMark(r) {
			continue
		}
		if !language.Spaceless(r) {
			before = 0
			continue
		}
		set.add(uint32(r))
		if before != 0 {
			set.add(before*31 + uint32(r))
		}
		before = uint32(r)
	}
	return set
}

func (s *letterSet) add(key uint32) {
	bit := key * 2654435761 >> 23 // Knuth's multiplicative hash to 9 bits
	s[bit>>6] |= 1 << (bit & 63)
}

// hold reports whether all that is in the other set is in this one.
func (s *letterSet) hold(other *letterSet) bool {
	for i, bits := range other {
		if s[i]&bits != bits {
			return false
		}
	}
	return true
}
