package agent

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/language"
)

// TestWhatIsFoundIsThatOfAPlainScan, of words and of parts of them, whatever the letters of
// the facts and of the question.
func TestWhatIsFoundIsThatOfAPlainScan(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	text := func(alphabet string, most int) string {
		letters, s := []rune(alphabet), ""
		for range 1 + r.IntN(most) {
			s += string(letters[r.IntN(len(letters))])
		}
		return s
	}
	alphabets := []string{"ab c", "茶鍵アンはの ", "éßİa ｶﾞ緑", "mnopqrstuvw 茶"}
	now := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	found, byParts := 0, 0
	for range 60 {
		x := index{table: discard{}}
		x.load()
		for n := range 1 + r.IntN(80) {
			e := Entry{ID: fmt.Sprint(n), Type: MemoryTypes()[r.IntN(4)], Created: now.Add(-time.Duration(r.IntN(9)) * time.Hour),
				Body: text(alphabets[r.IntN(len(alphabets))], 40), Name: text(alphabets[0], 5)}
			if r.IntN(5) == 0 {
				e.Expires = now.Add(time.Duration(r.IntN(3)-1) * time.Minute)
			}
			x.insert(e)
		}
		for range 100 {
			q := Query{Text: text(alphabets[r.IntN(len(alphabets))], 20), N: r.IntN(6)}
			if r.IntN(4) == 0 {
				q.Type = MemoryUser
			}
			got, want := x.search(q, now), plainScan(x.ranked, q, now)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %+v finds %d, want %d: %+v", seed, q, len(got), len(want), want)
			}
			if found += len(want); len(want) > 0 && !holds(want[0], strings.Fields(language.Fold(q.Text))) {
				byParts++
			}
		}
	}
	if found < 1000 || byParts < 100 {
		t.Errorf("seed %d: only %d were found, and %d times by parts", seed, found, byParts)
	}
}

// plainScan finds what the words of a query, or else their parts, are in.
func plainScan(all []*indexed, q Query, now time.Time) (found []*indexed) {
	words := strings.Fields(language.Fold(q.Text))
	has := func(e *indexed, words []string) (n int) {
		for _, w := range words {
			if strings.Contains(e.text, w) {
				n++
			}
		}
		return n
	}
	fit := slices.DeleteFunc(slices.Clone(all), func(e *indexed) bool { return e.expired(now) || q.Type != "" && q.Type != e.Type })
	for _, e := range fit {
		if has(e, words) == len(words) {
			found = append(found, e)
		}
	}
	if whole, parts := partsOf(words); len(found) == 0 {
		most := 0
		for _, e := range fit {
			if n := has(e, parts); n > 0 && 4*n >= len(parts) && has(e, whole) == len(whole) {
				most = max(most, n)
				found = append(found, e)
			}
		}
		found = slices.DeleteFunc(found, func(e *indexed) bool { return 2*has(e, parts) <= most })
		if q.N > 0 && len(found) > q.N {
			slices.SortStableFunc(found, func(a, b *indexed) int { return cmp.Compare(has(b, parts), has(a, parts)) })
			found = found[:q.N]
			slices.SortFunc(found, byRank)
		}
	}
	if q.N > 0 {
		found = found[:min(q.N, len(found))]
	}
	return found
}

// holds reports whether an entry contains all of the words.
func holds(e *indexed, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.text, w) })
}
