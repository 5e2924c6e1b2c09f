package agent

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/must"
	"perch/store/storetest"
)

func noonOf() time.Time {
	return time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
}

// slow is a table whose disk writes when it is let.
type slow struct {
	storetest.Table[Entry]
	let chan struct{}
}

func (s *slow) Change(put map[string]Entry, remove []string) error {
	<-s.let
	return s.Table.Change(put, remove)
}

// TestWhatIsRememberedAtOnceIsOneWrite: who comes while the disk works waits for the next
// write together, a key has one entry, and who recalls waits for no disk.
func TestWhatIsRememberedAtOnceIsOneWrite(t *testing.T) {
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
			now := len(m.queue.waiting)
			m.queue.mu.Unlock()
			if now == n && !m.mu.TryLock() {
				return
			}
			runtime.Gosched()
		}
	}
	m.queue.add(&wanted{}) // the first takes it along, so that it is seen when it has
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
	if table.Puts != 1+1+1+1 || told.Load() != 50+1 { // before, recalled, the first and the others
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

// TestWhatTheDiskRefusesIsNotRemembered, and nothing is forgotten for it.
func TestWhatTheDiskRefusesIsNotRemembered(t *testing.T) {
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

// TestAViewerInTheSameWrite, whose fact a full memory does not take, keeps nobody else's out.
func TestAViewerInTheSameWrite(t *testing.T) {
	noon := noonOf()
	m := NewMemory(&storetest.Table[Entry]{})
	m.Bound(2)
	for n := range 2 {
		must.Value(m.Remember(Entry{Body: fmt.Sprint("fact ", n)}, noon))(t)
	}
	reported := &wanted{entry: Entry{Body: "reported", Source: SourceViewer, Created: noon}}
	said := &wanted{entry: Entry{Body: "said", Created: noon.Add(time.Hour)}}
	m.mu.Lock()
	m.rememberAll([]*wanted{reported, said})
	m.mu.Unlock()
	if !errors.Is(reported.err, ErrFull) || said.err != nil {
		t.Errorf("reported: %v, said: %v", reported.err, said.err)
	}
	if found := m.Search("said", noon); len(found) != 1 || len(m.Search("reported", noon)) != 0 {
		t.Errorf("the memory has %+v", m.Search("", noon))
	}
}
