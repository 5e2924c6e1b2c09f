package agent

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
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

// Types of memory entries.
const (
	MemoryUser      = "user"      // facts about the people in the home
	MemoryFeedback  = "feedback"  // how people want things done
	MemoryProject   = "project"   // current plans and events
	MemoryReference = "reference" // where to find things
)

// Entry is a remembered fact.
type Entry struct {
	ID          string   `json:"id"`
	Key         string   `json:"key,omitempty"` // a new entry replaces the entry with the same key; "" means no key
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Type        string   `json:"type"`
	Body        string   `json:"body"`
	Tags        []string `json:"tags,omitempty"`
	Important   bool     `json:"important,omitempty"` // gives the entry the maximum salience
	// Context is a JSON object with data of the program that reported the fact. The memory
	// stores it without interpreting it.
	Context json.RawMessage `json:"context,omitempty"`
	Robot   device.ID       `json:"robot,omitempty"`
	Source  string          `json:"source,omitempty"` // origin of the fact, such as "reflex", "tool", "marker" or SourceViewer
	Created time.Time       `json:"created"`
	Used    time.Time       `json:"used,omitzero"`    // time of the latest Recall; zero before the first
	Expires time.Time       `json:"expires,omitzero"` // zero means never
	Session string          `json:"-"`                // session in whose turn the fact was remembered; not stored
}

// SourceViewer is the source of facts reported by viewers, which are programs that show an
// agent. Such entries fill at most a tenth of the memory, are evicted before all other
// entries that have not expired, and do not evict those.
const SourceViewer = "viewer"

// isViewers reports whether a viewer has reported the entry.
func (e Entry) isViewers() bool { return e.Source == SourceViewer }

// Limits of the memory.
const (
	maxEntries  = 2000 // default maximum number of entries
	maxEvicted  = 100  // maximum number of entries that index.surplus returns
	viewersPart = 10   // viewers' entries fill at most the memory's size divided by viewersPart
)

// Errors of the memory.
var (
	// ErrNoEntry is returned for an ID that is not in the memory.
	ErrNoEntry = errors.New("nothing is remembered under that id")
	// ErrText is wrapped by the errors of Remember, Edit and Fact.Entry for an entry whose
	// text is empty or too long.
	ErrText = errors.New("this cannot be remembered")
	// ErrFull is wrapped by the error of Remember for a viewer's entry while other entries
	// fill the memory.
	ErrFull = errors.New("the memory is full, and facts reported by a viewer do not replace others; forget something, or raise memory.most")
)

// entries is a table of entries on disk; the key is the entry ID. Change is durable when it
// returns, and changes nothing if it fails.
type entries interface {
	Change(put map[string]Entry, remove []string) error
	PutSoon(key string, e Entry)
	All() iter.Seq2[string, Entry]
	// Err returns why a loop over All may have ended early, or nil.
	Err() error
}

// Memory stores the facts that agents remember. It is safe for concurrent use.
type Memory struct {
	capacity     atomic.Int64 // maximum number of entries
	index        index
	queue        queue
	mu           sync.Mutex // held while an entry is remembered, edited or forgotten, so that no two entries get the same key; guards strangers
	strangers    map[device.ID]*stranger
	onChange     func(id string) // see Watch; may be nil
	onRemembered func(Entry)     // see Announce; may be nil
}

// NewMemory returns the memory stored in a table.
func NewMemory(table entries) *Memory {
	m := &Memory{index: index{table: table}, strangers: map[device.ID]*stranger{}}
	m.Bound(maxEntries)
	return m
}

// Bound limits the memory to n entries; the default is 2000. Surplus entries are evicted
// when further entries are remembered, at most maxEvicted for each, or 2*maxEvicted for a
// viewer's entry.
func (m *Memory) Bound(n int) { m.capacity.Store(int64(n)) }

// Watch sets a function that is called with the ID of each entry that is remembered,
// edited or forgotten, but not of entries that are evicted or belong to a stranger's
// memory. Watch must be called before an entry is remembered, edited or forgotten, and the
// function must not call the memory.
func (m *Memory) Watch(onChange func(id string)) { m.onChange = onChange }

// Announce sets a function that is called with each entry that is remembered, except in the
// memories of strangers. Announce must be called before an entry is remembered, and the function
// must not call the memory.
func (m *Memory) Announce(onRemembered func(Entry)) { m.onRemembered = onRemembered }

// notifyChange calls onChange. The caller holds mu, so that the calls are in the order of
// the changes.
func (m *Memory) notifyChange(id string) {
	if m.onChange != nil {
		m.onChange(id)
	}
}

// Remember stores an entry durably and returns it with its ID. It replaces an entry with
// the same key. If the memory is full, it evicts expired entries first, then viewers'
// entries, then the entries with the lowest rank (see Entry.rank). For an invalid entry the
// error wraps ErrText or ErrEntry, and for a viewer's entry that would evict an unexpired
// entry of another source, ErrFull. Otherwise it is the error of writing to the disk.
// Calls that arrive during a write share the next write.
func (m *Memory) Remember(e Entry, now time.Time) (Entry, error) {
	e.Body = strings.TrimSpace(e.Body)
	if err := e.checkText(); err != nil {
		return Entry{}, err
	}
	if err := e.check(now); err != nil {
		return Entry{}, err
	}
	e.Created = now
	p := &pendingEntry{entry: e}
	m.queue.add(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !p.done { // otherwise another call has stored the entry
		m.rememberAll(m.queue.drain())
	}
	if p.err != nil {
		return Entry{}, fmt.Errorf("remember: %w", p.err)
	}
	return p.entry, nil
}

// pendingEntry is an entry that Remember has to store.
type pendingEntry struct {
	entry Entry
	done  bool  // whether rememberAll has handled the entry; guarded by Memory.mu
	err   error // why the entry was not stored
}

// queue holds the entries that calls of Remember have to store, oldest first.
type queue struct {
	mu      sync.Mutex
	pending []*pendingEntry
}

func (q *queue) add(p *pendingEntry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(q.pending, p)
}

// drain removes and returns all entries.
func (q *queue) drain() []*pendingEntry {
	q.mu.Lock()
	defer q.mu.Unlock()
	pending := q.pending
	q.pending = nil
	return pending
}

// rememberAll stores the pending entries, in their order and in one write.
func (m *Memory) rememberAll(pending []*pendingEntry) {
	c := m.newChange()
	for _, p := range pending {
		p.done = true
		evicted, err := m.prepareInsert(&p.entry)
		if err != nil {
			p.err = err
			continue
		}
		for _, e := range evicted {
			c.remove(e.ID)
		}
		c.insert(p.entry)
	}
	err := c.commit()
	for _, p := range pending {
		if p.err = cmp.Or(p.err, err); p.err != nil {
			continue
		}
		m.notifyChange(p.entry.ID)
		if m.onRemembered != nil {
			m.onRemembered(p.entry)
		}
	}
}

// prepareInsert sets the ID of an entry: the ID of the entry with the same key, or else a new one.
// It returns the entries that must be evicted to make room, or ErrFull if a viewer's entry
// would evict an unexpired entry of another source.
func (m *Memory) prepareInsert(e *Entry) (evicted []*indexed, err error) {
	if old, ok := m.index.byKey(e.Key); ok {
		e.ID = old.ID
		return nil, nil
	}
	e.ID = rand.Text()[:12]
	capacity := int(m.capacity.Load())
	evicted = m.index.surplus(capacity-1, e.Created, nil)
	if !e.isViewers() {
		return evicted, nil
	}
	for _, other := range evicted {
		if !other.isViewers() && !other.isExpired(e.Created) {
			return nil, ErrFull
		}
	}
	return append(evicted, m.index.surplus(max(capacity/viewersPart, 1)-1, e.Created, (*indexed).isViewers)...), nil
}

// Edit replaces the body of an entry durably and returns the entry. A name that was equal
// to the body is replaced as well. The error is ErrNoEntry if there is no such entry or
// it has expired, and wraps ErrText if the text is empty or too long.
func (m *Memory) Edit(id, text string, now time.Time) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.index.byID(id)
	if err := m.index.table.Err(); !ok && err != nil {
		return Entry{}, fmt.Errorf("edit what is remembered: %w", err)
	}
	if !ok || e.isExpired(now) {
		return Entry{}, ErrNoEntry
	}
	text = strings.TrimSpace(text)
	if e.Name == e.Body {
		e.Name = text
	}
	e.Body = text
	if err := e.checkText(); err != nil {
		return Entry{}, err
	}
	c := m.newChange()
	c.insert(e)
	if err := c.commit(); err != nil {
		return Entry{}, fmt.Errorf("edit what is remembered: %w", err)
	}
	m.notifyChange(id)
	return e, nil
}

// checkText returns an error that wraps ErrText if an entry has no body or is too long.
func (e Entry) checkText() error {
	switch size := len(e.Body) + len(e.Name) + len(e.Description); {
	case e.Body == "":
		return fmt.Errorf("%w: the text is empty", ErrText)
	case size > limit.Said:
		return fmt.Errorf("%w: the text, with its name and description, has %d bytes, and at most %d are allowed", ErrText, size, limit.Said)
	}
	return nil
}

// LastUsed returns when the entry was last recalled or, if it never was, created.
func (e Entry) LastUsed() time.Time {
	if e.Used.After(e.Created) {
		return e.Used
	}
	return e.Created
}

// Recall returns the entry with this key, unless it has expired, and records that it was
// used. It does not wait until the time of use is on the disk.
func (m *Memory) Recall(key string, now time.Time) (Entry, bool) {
	return m.index.use(key, now)
}

// Search returns the entries that a query with this text selects (see Query.Text), oldest
// first.
func (m *Memory) Search(query string, now time.Time) []Entry {
	found := []Entry{}
	for _, e := range m.index.search(Query{Text: query}, now) {
		found = append(found, e.Entry)
	}
	slices.SortFunc(found, func(a, b Entry) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return found
}

// All iterates over the entries that have not expired, the highest rank first.
func (m *Memory) All(now time.Time) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range m.index.search(Query{}, now) {
			if !yield(e.Entry) {
				return
			}
		}
	}
}

// Err returns the reason why All, Recall and Search may not have found all entries, or nil.
func (m *Memory) Err() error { return m.index.table.Err() }

// Forget deletes an entry durably. It returns ErrNoEntry if there is no such entry.
func (m *Memory) Forget(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.index.byID(id); !ok {
		if err := m.index.table.Err(); err != nil {
			return fmt.Errorf("forget: %w", err)
		}
		return ErrNoEntry
	}
	c := m.newChange()
	c.remove(id)
	if err := c.commit(); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	m.notifyChange(id)
	return nil
}

func (e Entry) isExpired(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

// Limits of strangers' memories.
const (
	maxStrangers       = 32 // strangers with a memory
	maxStrangerEntries = 20 // entries of each stranger
)

// Of returns the memory for a turn. A stranger's turns have a separate memory, which is
// never stored on disk, and no access to the owner's memory. If there are maxStrangers such
// memories, a new one replaces the memory unused for the longest time.
func (m *Memory) Of(t Turn) *Memory {
	if !t.Stranger() {
		return m
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.strangers[t.Robot]
	if !ok {
		if len(m.strangers) >= maxStrangers {
			delete(m.strangers, limit.First(m.strangers, func(a, b *stranger) int { return a.used.Compare(b.used) }))
		}
		s = &stranger{memory: NewMemory(noTable{})}
		s.memory.Bound(maxStrangerEntries)
		m.strangers[t.Robot] = s
	}
	s.used = t.Now
	return s.memory
}

// Dismiss deletes the memory of a stranger, the robot with this ID.
func (m *Memory) Dismiss(id device.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.strangers, id)
}

// stranger is the memory of a robot that the owner has not adopted.
type stranger struct {
	memory *Memory
	used   time.Time // time of the latest turn
}

// noTable implements entries for a memory that is not stored on disk: only its index holds
// the entries.
type noTable struct{}

func (noTable) Change(map[string]Entry, []string) error { return nil }
func (noTable) PutSoon(string, Entry)                   {}
func (noTable) All() iter.Seq2[string, Entry]           { return maps.All[map[string]Entry](nil) }
func (noTable) Err() error                              { return nil }
