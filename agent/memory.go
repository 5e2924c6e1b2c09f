package agent

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perch/device"
	"perch/limit"
)

// Kinds of memory.
const (
	MemoryUser      = "user"      // about the people of the household
	MemoryFeedback  = "feedback"  // how they want things done
	MemoryProject   = "project"   // what is going on
	MemoryReference = "reference" // where things are
)

// Entry is one remembered fact, from a brain, the bridge or a [REMEMBER: ...] marker.
type Entry struct {
	ID          string    `json:"id"`
	Key         string    `json:"key,omitempty"` // a newer entry of the same key replaces this one
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Type        string    `json:"type"`
	Body        string    `json:"body"`
	Tags        []string  `json:"tags,omitempty"`
	Important   bool      `json:"important,omitempty"` // it has the greatest salience
	Robot       device.ID `json:"robot,omitempty"`
	Source      string    `json:"source,omitempty"` // of the fact: "reflex", "bridge"
	Created     time.Time `json:"created"`
	Used        time.Time `json:"used,omitzero"`
	Expires     time.Time `json:"expires,omitzero"`
	Session     string    `json:"-"` // that remembers it; its viewers are notified
}

// SourceViewer is the source of facts reported by programs that show an agent. They are
// evicted first, displace no other entry, and fill at most a tenth of the memory.
const SourceViewer = "viewer"

func (e Entry) reported() bool { return e.Source == SourceViewer }

const viewersPart = 10

// Bounds of the memory.
const (
	mostEntries = 2000
	mostPruned  = 100 // entries removed in one write
)

// Errors of the memory.
var (
	// ErrForgotten is returned for an id that is not in the memory.
	ErrForgotten = errors.New("nothing is remembered under that id")
	// ErrTooMuch is wrapped by Remember and Edit for an entry that is too long.
	ErrTooMuch = errors.New("too long to remember")
	// ErrFull is returned for a viewer's entry while the owner's entries fill the memory.
	ErrFull = errors.New("the memory is full, and what a viewer reports takes no other fact's place; forget something, or raise memory.most")
)

// entries stores the memory by id. Change is durable when it returns, and changes
// nothing if it fails.
type entries interface {
	Change(put map[string]Entry, remove []string) error
	PutSoon(key string, e Entry)
	All() iter.Seq2[string, Entry]
	// Err returns why a loop over All may have ended early.
	Err() error
}

// Memory is what agents remember. It is safe for concurrent use.
type Memory struct {
	most       atomic.Int64 // entries
	index      index
	queue      queue
	mu         sync.Mutex // one change at a time, so that a key has one entry
	strangers  map[device.ID]*stranger
	changed    func(id string) // called with the id after each change; may be nil
	remembered func(Entry)     // called after each entry is remembered; may be nil
}

// NewMemory returns the memory stored in a table.
func NewMemory(table entries) *Memory {
	m := &Memory{index: index{table: table}, strangers: map[device.ID]*stranger{}}
	m.Bound(mostEntries)
	return m
}

// Bound limits the memory to most entries instead of 2000. Surplus entries are
// evicted when the next one is remembered.
func (m *Memory) Bound(most int) { m.most.Store(int64(most)) }

// Watch sets a function that is called with the id of each entry that is remembered,
// edited or forgotten, except by strangers. Watch must be called before any other
// method, and the function must not call the memory.
func (m *Memory) Watch(changed func(id string)) { m.changed = changed }

// Announce sets a function that is called with each entry that is remembered, except
// by strangers. It must be called before any other method, and the function must not
// call the memory.
func (m *Memory) Announce(remembered func(Entry)) { m.remembered = remembered }

// notifyChanged calls changed. The caller holds the lock, so that changes stay in order.
func (m *Memory) notifyChanged(id string) {
	if m.changed != nil {
		m.changed(id)
	}
}

// Remember stores an entry durably and returns it with its id. It replaces an
// entry of the same key. If the memory is full it deletes expired entries first, then
// those of the lowest rank. Errors wrap ErrTooMuch or ErrEntry for an invalid entry.
// Concurrent calls share one write.
func (m *Memory) Remember(e Entry, now time.Time) (Entry, error) {
	e.Body = strings.TrimSpace(e.Body)
	if !e.fits() {
		return Entry{}, fmt.Errorf("%w: %d bytes", ErrTooMuch, len(e.Body))
	}
	if err := e.check(now); err != nil {
		return Entry{}, err
	}
	e.Created = now
	w := &pendingEntry{entry: e}
	m.queue.add(w)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !w.done { // otherwise the previous lock holder stored it
		m.rememberAll(m.queue.drain())
	}
	if w.err != nil {
		return Entry{}, fmt.Errorf("remember: %w", w.err)
	}
	return w.entry, nil
}

// pendingEntry is an entry to remember, with its result.
type pendingEntry struct {
	entry Entry
	done  bool // under Memory.mu
	err   error
}

// queue holds the entries to remember, oldest first.
type queue struct {
	mu      sync.Mutex
	waiting []*pendingEntry
}

func (q *queue) add(w *pendingEntry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
}

func (q *queue) drain() []*pendingEntry {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// rememberAll stores entries one after the other, in one write.
func (m *Memory) rememberAll(all []*pendingEntry) {
	c := m.newChange()
	for _, w := range all {
		w.done = true
		surplus, err := m.place(&w.entry)
		if err != nil {
			w.err = err
			continue
		}
		for _, one := range surplus {
			c.remove(one.ID)
		}
		c.insert(w.entry)
	}
	err := c.commit()
	for _, w := range all {
		if w.err = cmp.Or(w.err, err); w.err != nil {
			continue
		}
		m.notifyChanged(w.entry.ID)
		if m.remembered != nil {
			m.remembered(w.entry)
		}
	}
}

// place gives an entry its id. It returns the entries to evict so that it fits.
func (m *Memory) place(e *Entry) (surplus []*indexed, err error) {
	if old, there := m.index.keyed(e.Key); there {
		e.ID = old.ID
		return nil, nil
	}
	e.ID = rand.Text()[:12]
	most := int(m.most.Load())
	surplus = m.index.surplus(most-1, e.Created, nil)
	if !e.reported() {
		return surplus, nil
	}
	for _, other := range surplus {
		if !other.reported() && !other.expired(e.Created) {
			return nil, ErrFull
		}
	}
	return append(surplus, m.index.surplus(max(most/viewersPart, 1)-1, e.Created, (*indexed).reported)...), nil
}

// Edit replaces the text of an entry durably and returns the entry. An entry named
// after its own text is renamed with it; nothing else changes.
func (m *Memory) Edit(id, text string, now time.Time) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, there := m.index.byID(id)
	if err := m.index.table.Err(); !there && err != nil {
		return Entry{}, fmt.Errorf("edit what is remembered: %w", err)
	}
	if !there || e.expired(now) {
		return Entry{}, ErrForgotten
	}
	text = strings.TrimSpace(text)
	if e.Name == e.Body {
		e.Name = text
	}
	if e.Body = text; !e.fits() {
		return Entry{}, fmt.Errorf("%w: %d bytes", ErrTooMuch, len(text))
	}
	c := m.newChange()
	c.insert(e)
	if err := c.commit(); err != nil {
		return Entry{}, fmt.Errorf("edit what is remembered: %w", err)
	}
	m.notifyChanged(id)
	return e, nil
}

// fits reports whether an entry has a text and respects the size limits.
func (e Entry) fits() bool {
	return e.Body != "" && len(e.Body)+len(e.Name)+len(e.Description) <= limit.Said
}

// LastUsed returns when an entry was last recalled, or else when it was created.
func (e Entry) LastUsed() time.Time {
	if e.Used.After(e.Created) {
		return e.Used
	}
	return e.Created
}

// Recall returns the entry of a key and records that it was used. It does not wait for
// the disk.
func (m *Memory) Recall(key string, now time.Time) (Entry, bool) {
	return m.index.use(key, now)
}

// Search returns the entries with every word of the query, oldest first.
func (m *Memory) Search(query string, now time.Time) []Entry {
	found := []Entry{}
	for _, e := range m.index.search(Query{Text: query}, now) {
		found = append(found, e.Entry)
	}
	slices.SortFunc(found, func(a, b Entry) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return found
}

// All iterates over the entries, the best first, copying each when it is reached.
func (m *Memory) All(now time.Time) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range m.index.search(Query{}, now) {
			if !yield(e.Entry) {
				return
			}
		}
	}
}

// Err returns why All, Recall and Search may have missed entries, or nil.
func (m *Memory) Err() error { return m.index.table.Err() }

// Forget deletes an entry durably.
func (m *Memory) Forget(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.index.byID(id); !there {
		if err := m.index.table.Err(); err != nil {
			return fmt.Errorf("forget: %w", err)
		}
		return ErrForgotten
	}
	c := m.newChange()
	c.remove(id)
	if err := c.commit(); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	m.notifyChanged(id)
	return nil
}

func (e Entry) expired(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

// Bounds of the strangers' memories: robots, and entries of each.
const (
	mostStrangers  = 32
	mostOfStranger = 20
)

// Of returns the memory for a turn. A stranger has a separate memory, for this run at
// most, and neither reads nor changes the owner's.
func (m *Memory) Of(t Turn) *Memory {
	if !t.Stranger() {
		return m
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own, known := m.strangers[t.Robot]
	if !known {
		if len(m.strangers) >= mostStrangers {
			delete(m.strangers, limit.First(m.strangers, func(a, b *stranger) int { return a.used.Compare(b.used) }))
		}
		own = &stranger{memory: NewMemory(discard{})}
		own.memory.Bound(mostOfStranger)
		m.strangers[t.Robot] = own
	}
	own.used = t.Now
	return own.memory
}

// Dismiss drops the memory of a stranger.
func (m *Memory) Dismiss(id device.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.strangers, id)
}

// stranger is the memory of a robot that nobody has adopted.
type stranger struct {
	memory *Memory
	used   time.Time
}

// discard is the table of a memory that is not stored: its index alone has the entries.
type discard struct{}

func (discard) Change(map[string]Entry, []string) error { return nil }
func (discard) PutSoon(string, Entry)                   {}
func (discard) All() iter.Seq2[string, Entry]           { return maps.All[map[string]Entry](nil) }
func (discard) Err() error                              { return nil }
