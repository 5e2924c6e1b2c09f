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

	"perch/language"
	"perch/plain"
)

// Parameters of a search.
const (
	mostWords  = 32
	mostFound  = 8
	leastStem  = 4    // bytes of a common beginning that make two words similar
	factWeight = 1.5  // of a memory against 1 of a turn: a person wanted it remembered
	leastScore = 0.15 // of the best score; a document below it shares only words like "the" with the query
)

// document is a memory or a turn with some of the words of a query.
type document struct {
	at     time.Time
	hits   []float64 // how well each word matches, 0 to 1
	fact   string    // of a memory
	turn   *Turn     // nil for a memory
	weight float64
	score  float64
}

// search is one search. It holds only documents that match.
type search struct {
	words []string
	all   int   // number of documents
	with  []int // number of documents with each word
	hits  []float64
	found []document
}

// match adds a document with these texts, and returns it, or nil if no word matches.
func (s *search) match(at time.Time, weight float64, texts ...string) *document {
	s.all++
	clear(s.hits)
	matches := false
	for _, text := range texts {
		matchWords(text, s.words, s.hits)
	}
	for w, hit := range s.hits {
		if hit > 0 {
			s.with[w]++
			matches = true
		}
	}
	if !matches {
		return nil
	}
	s.found = append(s.found, document{at: at, weight: weight, hits: slices.Clone(s.hits)})
	return &s.found[len(s.found)-1]
}

// lookUp searches the memories and the turns, and returns the best, one a line.
func (a *API) lookUp(query string) string {
	now, words := a.now(), terms(query)
	s := &search{words: words, with: make([]int, len(words)), hits: make([]float64, len(words))}
	for e := range a.o.Memory.All(now) {
		if found := s.match(e.Created, factWeight, e.Key, e.Name, e.Description, e.Body, strings.Join(e.Tags, " ")); found != nil {
			found.fact = e.Body
		}
	}
	for _, all := range [][]Turn{a.o.Spoken(), a.o.Log.all()} {
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

// line formats the document, with its day if that is known.
func (d document) line(now time.Time) string {
	line := plain.Line(d.fact)
	if d.turn != nil {
		line = fmt.Sprintf("Heard %q, answered %q", plain.Line(d.turn.User), plain.Line(d.turn.Assistant))
	}
	if !d.at.IsZero() {
		line += " (" + d.at.In(now.Location()).Format(time.DateOnly) + ")"
	}
	return line
}

// best returns at most mostFound documents. More words and rarer words score higher; of
// equal scores the newer comes first.
func (s *search) best() []document {
	for i := range s.found {
		d := &s.found[i]
		for w, hit := range d.hits {
			if hit > 0 {
				d.score += hit * d.weight * math.Log(1+float64(s.all)/float64(s.with[w]))
			}
		}
	}
	slices.SortStableFunc(s.found, func(a, b document) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.at.Compare(a.at))
	})
	found := s.found[:min(len(s.found), mostFound)]
	return slices.DeleteFunc(found, func(d document) bool { return d.score < found[0].score*leastScore })
}

// matchWords updates hits: 1 for a word of the text, 0.6 if one of two words is the beginning
// of the other, such as "colour" and "colours". Words of scripts without spaces match
// anywhere.
func matchWords(text string, words []string, hits []float64) {
	text = strings.ToLower(text)
	if text == "" {
		return
	}
	for i, w := range words {
		if w[0] >= utf8.RuneSelf && unspaced(w) && strings.Contains(text, w) {
			hits[i] = 1
		}
	}
	for own := range strings.FieldsFuncSeq(text, separates) {
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

// terms returns the words of a query, each once. Words of one or two letters are left out if
// there are longer ones. Words of scripts without spaces are split into pairs of characters.
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

func fields(text string) []string { return strings.FieldsFunc(text, separates) }

// separates reports whether a character separates words.
func separates(r rune) bool {
	if r >= 'a' && r <= 'z' {
		return false // the fast path
	}
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r)
}

// unspaced reports whether a word is of a script that is written without spaces.
func unspaced(word string) bool { return strings.ContainsFunc(word, language.Spaceless) }
