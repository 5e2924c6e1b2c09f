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
	maxWords   = 32   // words of a query
	maxFound   = 8    // returned documents
	minStem    = 4    // bytes; a word of at least this length is similar to longer words that begin with it
	factWeight = 1.5  // weight of a memory; the weight of a turn is 1, because nobody asked to store the turn
	minScore   = 0.15 // minimum score, relative to the best; documents with a lower score match only words such as "the"
)

// document is a memory or a turn that matches at least one word of a query.
type document struct {
	at     time.Time // when the memory or turn was stored; may be zero
	hits   []float64 // how well each word of the query matches, from 0 to 1
	fact   string    // text of a memory; empty for a turn
	turn   *Turn     // nil for a memory
	weight float64
	score  float64 // set by search.best
}

// search is the state of a search.
type search struct {
	words     []string   // words of the query
	documents int        // number of searched documents
	with      []int      // number of documents that match each word
	hits      []float64  // buffer for document.hits
	found     []document // the documents that match
}

// match searches a document with the given texts. It adds the document to found and returns it, or returns nil if no
// word matches. The pointer is valid until the next call.
func (s *search) match(at time.Time, weight float64, texts ...string) *document {
	s.documents++
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

// lookUp searches the memories and the turns, and returns the best matches, each on a line. If nothing matches, it
// returns a sentence that says so.
func (a *API) lookUp(query string) string {
	now, words := a.now(), terms(query)
	s := &search{words: words, with: make([]int, len(words)), hits: make([]float64, len(words))}
	for e := range a.o.Memory.All(now) {
		if found := s.match(e.Created, factWeight, e.Key, e.Name, e.Description, e.Body, strings.Join(e.Tags, " ")); found != nil {
			found.fact = e.Body
		}
	}
	for _, turns := range [][]Turn{a.o.Spoken(), a.o.Log.all()} {
		for i := range turns {
			t := &turns[i]
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

// line returns the document as one line, with its date if the date is known.
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

// best returns the documents with the highest scores, at most maxFound and none below minScore. The score increases with
// the number and the rarity of the matching words. Of documents with the same score, the newer comes first.
func (s *search) best() []document {
	for i := range s.found {
		d := &s.found[i]
		for w, hit := range d.hits {
			if hit > 0 {
				d.score += hit * d.weight * math.Log(1+float64(s.documents)/float64(s.with[w]))
			}
		}
	}
	slices.SortStableFunc(s.found, func(a, b document) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.at.Compare(a.at))
	})
	found := s.found[:min(len(s.found), maxFound)]
	return slices.DeleteFunc(found, func(d document) bool { return d.score < found[0].score*minScore })
}

// matchWords sets hits for the words that match a text: to 1 if the text contains the word, and to 0.6 if it contains a
// similar word, such as "colours" for "colour". A word of a script without spaces may be anywhere in the text.
func matchWords(text string, words []string, hits []float64) {
	text = strings.ToLower(text)
	if text == "" {
		return
	}
	for i, w := range words {
		if w[0] >= utf8.RuneSelf && isUnspaced(w) && strings.Contains(text, w) {
			hits[i] = 1
		}
	}
	for field := range strings.FieldsFuncSeq(text, isSeparator) {
		for i, w := range words {
			switch {
			case field[0] != w[0]:
			case field == w:
				hits[i] = 1
			case hits[i] == 0 && min(len(field), len(w)) >= minStem && (strings.HasPrefix(field, w) || strings.HasPrefix(w, field)):
				hits[i] = 0.6
			}
		}
	}
}

// terms returns the distinct words of a query, at most maxWords. It leaves out words of one or two bytes if there are
// longer words. It splits words of scripts without spaces into overlapping pairs of characters.
func terms(query string) []string {
	var words []string
	add := func(w string) {
		if len(words) < maxWords && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	for _, w := range fields(strings.ToLower(query)) {
		runes := []rune(w)
		if !isUnspaced(w) || len(runes) < 3 {
			add(w)
			continue
		}
		for i := range len(runes) - 1 {
			add(string(runes[i : i+2]))
		}
	}
	isShort := func(w string) bool { return len(w) < 3 } // in bytes; a single Han character has three
	if long := slices.DeleteFunc(slices.Clone(words), isShort); len(long) > 0 {
		return long
	}
	return words
}

// fields returns the words of a text.
func fields(text string) []string { return strings.FieldsFunc(text, isSeparator) }

// isSeparator reports whether a character separates words.
func isSeparator(r rune) bool {
	if r >= 'a' && r <= 'z' {
		return false // the fast path
	}
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r)
}

// isUnspaced reports whether a word is in a script that is written without spaces.
func isUnspaced(word string) bool { return strings.ContainsFunc(word, language.Spaceless) }
