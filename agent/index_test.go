package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/language"
	"perch/must"
	"perch/store/storetest"
)

// TestSearchEqualsAPlainScan tests that the index finds the same entries as plainScan, for
// random facts and queries in several scripts.
func TestSearchEqualsAPlainScan(t *testing.T) {
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
		x := index{table: noTable{}}
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

// plainScan implements index.search without the trigram filters.
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
	fit := slices.DeleteFunc(slices.Clone(all), func(e *indexed) bool { return e.isExpired(now) || q.Type != "" && q.Type != e.Type })
	for _, e := range fit {
		if has(e, words) == len(words) {
			found = append(found, e)
		}
	}
	if whole, parts := splitParts(words); len(found) == 0 {
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
			slices.SortFunc(found, compareRank)
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

func noonOf() time.Time {
	return time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
}

// slow is a table in which each Change waits until the test sends a value to let or closes it.
type slow struct {
	storetest.Table[Entry]
	let chan struct{}
}

func (s *slow) Change(put map[string]Entry, remove []string) error {
	<-s.let
	return s.Table.Change(put, remove)
}

// TestConcurrentRememberSharesOneWrite tests that all calls of Remember that arrive during a
// write share the next write, that each key has one entry, and that Recall does not wait for
// the disk.
func TestConcurrentRememberSharesOneWrite(t *testing.T) {
	noon := noonOf()
	table := &slow{let: make(chan struct{}, 1)}
	m := NewMemory(table)
	table.let <- struct{}{}
	must.Value(m.Remember(Entry{Key: "keys", Body: "The keys are in the car."}, noon))(t)
	var told atomic.Int32
	m.Watch(func(string) { told.Add(1) })
	var all sync.WaitGroup
	remember := func(n int) {
		all.Go(func() {
			if _, err := m.Remember(Entry{Key: fmt.Sprint(n % 10), Body: fmt.Sprint("fact ", n)}, noon); err != nil {
				t.Error(err)
			}
		})
	}
	waiting := func(n int) {
		for {
			m.queue.mu.Lock()
			now := len(m.queue.pending)
			m.queue.mu.Unlock()
			if now == n && !m.mu.TryLock() {
				return
			}
			runtime.Gosched()
		}
	}
	m.queue.add(&pendingEntry{}) // the queue is empty again as soon as the first call of remember has drained it
	remember(0)
	waiting(0)
	for n := 1; n < 50; n++ {
		remember(n)
	}
	waiting(49)
	if e, there := m.Recall("keys", noon.Add(time.Hour)); !there || e.Used != noon.Add(time.Hour) {
		t.Errorf("while the disk works, recalled is %+v", e)
	}
	close(table.let)
	all.Wait()
	if table.Puts != 1+1+1+1 || told.Load() != 50+1 { // writes: the entry "keys", Recall, the first fact, and all other facts
		t.Errorf("%d writes, told of %d", table.Puts, told.Load())
	}
	found := m.Search("fact", noon)
	for _, e := range found {
		if table.Kept[e.ID].Body != e.Body {
			t.Errorf("the memory has %q, the disk %q", e.Body, table.Kept[e.ID].Body)
		}
	}
	if len(found) != 10 {
		t.Errorf("%d facts of 10 keys", len(found))
	}
}

// TestFailedWriteChangesNothing tests that the memory is unchanged after a failed write, and
// that the full memory has evicted no entry for it.
func TestFailedWriteChangesNothing(t *testing.T) {
	noon := noonOf()
	table, full := &storetest.Table[Entry]{}, errors.New("the disk is full")
	m := NewMemory(table)
	m.Bound(1)
	kept := must.Value(m.Remember(Entry{Key: "k", Body: "kept"}, noon))(t)
	table.Breaks(full)
	_, remember := m.Remember(Entry{Body: "refused"}, noon.Add(time.Hour))
	_, again := m.Remember(Entry{Key: "k", Body: "refused"}, noon.Add(time.Hour))
	_, edit := m.Edit(kept.ID, "refused", noon)
	for _, err := range []error{remember, again, edit, m.Forget(kept.ID)} {
		if !errors.Is(err, full) {
			t.Errorf("%v, want %v", err, full)
		}
	}
	table.Breaks(nil)
	if found := m.Search("", noon); len(found) != 1 || found[0].Body != "kept" {
		t.Errorf("the memory has %+v", found)
	}
}

// TestAViewerInTheSameWrite tests that a full memory refuses a viewer's entry, and still stores
// an entry of another source in the same write.
func TestAViewerInTheSameWrite(t *testing.T) {
	noon := noonOf()
	m := NewMemory(&storetest.Table[Entry]{})
	m.Bound(2)
	for n := range 2 {
		must.Value(m.Remember(Entry{Body: fmt.Sprint("fact ", n)}, noon))(t)
	}
	reported := &pendingEntry{entry: Entry{Body: "reported", Source: SourceViewer, Created: noon}}
	said := &pendingEntry{entry: Entry{Body: "said", Created: noon.Add(time.Hour)}}
	m.mu.Lock()
	m.rememberAll([]*pendingEntry{reported, said})
	m.mu.Unlock()
	if !errors.Is(reported.err, ErrFull) || said.err != nil {
		t.Errorf("reported: %v, said: %v", reported.err, said.err)
	}
	if found := m.Search("said", noon); len(found) != 1 || len(m.Search("reported", noon)) != 0 {
		t.Errorf("the memory has %+v", m.Search("", noon))
	}
}
