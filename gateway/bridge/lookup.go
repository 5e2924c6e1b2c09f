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

	"perch/plain"
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

// document is something in which some of the words stand.
type document struct {
	at     time.Time
	hits   []float64 // how well each word does
	fact   string    // or else
	turn   *Turn
	weight float64
	score  float64
}

// search goes through what there is, of which it keeps only what may be found.
type search struct {
	words   []string
	all     int   // documents
	holding []int // of them, with each word
	hits    []float64
	found   []document
}

func newSearch(words []string) *search {
	return &search{words: words, holding: make([]int, len(words)), hits: make([]float64, len(words))}
}

// match takes in a document by the texts that words are looked for in. It returns nil
// where no word stands in them.
func (s *search) match(at time.Time, weight float64, texts ...string) *document {
	s.all++
	clear(s.hits)
	held := false
	for _, text := range texts {
		holds(text, s.words, s.hits)
	}
	for w, hit := range s.hits {
		if hit > 0 {
			s.holding[w]++
			held = true
		}
	}
	if !held {
		return nil
	}
	s.found = append(s.found, document{at: at, weight: weight, hits: slices.Clone(s.hits)})
	return &s.found[len(s.found)-1]
}

// lookUp searches what is remembered and what was said, and returns the
// best of it, the best first.
func (d *API) lookUp(query string) string {
	now := d.now()
	s := newSearch(terms(query))
	for e := range d.o.Memory.All(now) {
		if found := s.match(e.Created, factWeight, e.Key, e.Name, e.Description, e.Body, strings.Join(e.Tags, " ")); found != nil {
			found.fact = e.Body
		}
	}
	for _, all := range [][]Turn{d.o.Spoken(), d.o.Log.all()} {
		for i := range all {
			t := &all[i]
			if found := s.match(t.At, 1, t.User, t.Assistant); found != nil {
				found.turn = t
			}
		}
	}
	found := s.best()
	if len(found) == 0 {
		return "Nothing is remembered about that."
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "- %s\n", f.line(now))
	}
	return strings.TrimSpace(b.String())
}

// line is a line of an answer.
func (d document) line(now time.Time) string {
	if d.turn != nil {
		return fmt.Sprintf("Heard %q, answered %q", plain.Line(d.turn.User), plain.Line(d.turn.Assistant)) + on(d.at, now)
	}
	return plain.Line(d.fact) + on(d.at, now)
}

// on is a day, where it is known.
func on(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " (" + at.In(now.Location()).Format(time.DateOnly) + ")"
}

// best returns the documents that were found, at most mostFound: first those with more
// of the words and with rarer ones, and of equals the newer.
func (s *search) best() []document {
	for i := range s.found {
		d := &s.found[i]
		for w, hit := range d.hits {
			if hit > 0 {
				d.score += hit * d.weight * math.Log(1+float64(s.all)/float64(s.holding[w]))
			}
		}
	}
	slices.SortStableFunc(s.found, func(a, b document) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.at.Compare(a.at))
	})
	found := s.found[:min(len(s.found), mostFound)]
	return slices.DeleteFunc(found, func(d document) bool { return d.score < found[0].score*leastScore })
}

// holds notes how well each word stands in a text: 1 as it is, less as the
// beginning of another ("colour" of "colours") or the other way round. What is written
// without spaces is looked for anywhere.
func holds(text string, words []string, hits []float64) {
	text = strings.ToLower(text)
	if text == "" {
		return
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
