package bridge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// What a lookup takes and gives.
const (
	mostWords = 32
	mostFound = 8
	leastStem = 4 // bytes that two words begin alike with
)

// factWeight is how much more a fact counts than talk: a person wanted it kept.
const factWeight = 1.5

// leastScore is the part of the best score below which nothing is returned: what
// shares but a "the" with the question is no answer.
const leastScore = 0.15

// document is something that can be found.
type document struct {
	at     time.Time
	sought [5]string // the texts its words are found in
	tell   func() string
	weight float64
	score  float64
}

// lookUp searches what is remembered and what was said, and returns the
// best of it, the best first.
func (d *Door) lookUp(query string) string {
	now := d.now()
	var all []document
	for _, e := range d.o.Memory.Search("", now) {
		all = append(all, document{
			at: e.Created, weight: factWeight, sought: [5]string{e.Key, e.Name, e.Description, e.Body, strings.Join(e.Tags, " ")},
			tell: func() string { return line(e.Body) + on(e.Created, now) },
		})
	}
	for _, t := range append(d.o.Spoken(), d.o.Log.all()...) {
		all = append(all, document{
			at: t.At, weight: 1, sought: [5]string{t.User, t.Assistant},
			tell: func() string {
				return fmt.Sprintf("Heard %q, answered %q", line(t.User), line(t.Assistant)) + on(t.At, now)
			},
		})
	}
	found := rank(all, terms(query))
	if len(found) == 0 {
		return "Nothing is remembered about that."
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "- %s\n", f.tell())
	}
	return strings.TrimSpace(b.String())
}

// on is a day, where it is known.
func on(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " (" + at.In(now.Location()).Format(time.DateOnly) + ")"
}

// rank returns the documents in which some of the words stand, at most
// mostFound: first those with more of them and with rarer ones, and of equals
// the newer.
func rank(all []document, words []string) []document {
	hits := make([]float64, len(all)*len(words)) // of each document, of each word
	holding := make([]int, len(words))           // documents with that word
	for i, d := range all {
		own := hits[i*len(words) : (i+1)*len(words)]
		d.holds(words, own)
		for w, hit := range own {
			if hit > 0 {
				holding[w]++
			}
		}
	}
	found := all[:0]
	for i, d := range all {
		for w, hit := range hits[i*len(words) : (i+1)*len(words)] {
			if hit > 0 {
				d.score += hit * d.weight * math.Log(1+float64(len(all))/float64(holding[w]))
			}
		}
		if d.score > 0 {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b document) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.at.Compare(a.at))
	})
	found = found[:min(len(found), mostFound)]
	return slices.DeleteFunc(found, func(d document) bool { return d.score < found[0].score*leastScore })
}

// holds notes how well each word stands in a document: 1 as it is, less as the
// beginning of another ("colour" of "colours") or the other way round, 0 not at
// all. What is written without spaces is looked for anywhere.
func (d document) holds(words []string, hits []float64) {
	for _, text := range d.sought {
		text = strings.ToLower(text)
		if text == "" {
			continue
		}
		for i, w := range words {
			if w[0] >= utf8.RuneSelf && unspaced(w) && strings.Contains(text, w) {
				hits[i] = 1
			}
		}
		for own := range strings.FieldsFuncSeq(text, between) {
			for i, w := range words {
				switch {
				case own[0] != w[0]:
				case own == w:
					hits[i] = 1
				case hits[i] == 0 && min(len(own), len(w)) >= leastStem && (strings.HasPrefix(own, w) || strings.HasPrefix(w, own)):
					hits[i] = 0.6
				}
			}
		}
	}
}

// terms are the words of a query, each once, without those of one or two
// letters where it has others. Of scripts without spaces they are the pairs of
// characters.
func terms(query string) []string {
	var all []string
	add := func(w string) {
		if len(all) < mostWords && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	for _, w := range fields(strings.ToLower(query)) {
		runes := []rune(w)
		if !unspaced(w) || len(runes) < 3 {
			add(w)
			continue
		}
		for i := range len(runes) - 1 {
			add(string(runes[i : i+2]))
		}
	}
	short := func(w string) bool { return len(w) < 3 } // in bytes: one Han character has three
	if long := slices.DeleteFunc(slices.Clone(all), short); len(long) > 0 {
		return long
	}
	return all
}

func fields(text string) []string { return strings.FieldsFunc(text, between) }

// between holds for what is between words.
func between(r rune) bool {
	if r >= 'a' && r <= 'z' {
		return false // most are, and it is asked often
	}
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r)
}

// unspaced holds for words of scripts that are written without spaces.
func unspaced(word string) bool {
	return strings.ContainsFunc(word, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
	})
}
