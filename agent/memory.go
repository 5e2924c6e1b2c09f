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
	"time"

	"perch/device"
)

// Kinds of memory.
const (
	MemoryUser      = "user"      // about the people of the household
	MemoryFeedback  = "feedback"  // how they want things done
	MemoryProject   = "project"   // what is going on
	MemoryReference = "reference" // where things are
)

// Entry is one remembered fact, of a brain, the bridge or a [REMEMBER: ...].
type Entry struct {
	ID          string    `json:"id"`
	Key         string    `json:"key,omitempty"` // a newer entry of the same key replaces this one
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Type        string    `json:"type"`
	Body        string    `json:"body"`
	Tags        []string  `json:"tags,omitempty"`
	Robot       device.ID `json:"robot,omitempty"`
	Source      string    `json:"source,omitempty"` // of the fact: "reflex", "bridge"
	Created     time.Time `json:"created"`
	Used        time.Time `json:"used,omitzero"`
	Expires     time.Time `json:"expires,omitzero"`
}

// Bounds of one entry, in bytes, and of the memory.
const (
	mostBody    = 4000
	mostEntries = 2000
)

// Errors of the memory.
var (
	// ErrForgotten is returned for an id that is not in the memory.
	ErrForgotten = errors.New("nothing is remembered under that id")
	// ErrTooMuch is wrapped by Remember and Edit for an entry that is too long.
	ErrTooMuch = errors.New("too long to remember")
)

// entries stores the memory by id. Put is durable when it returns.
type entries interface {
	Get(key string) (Entry, bool, error)
	Put(key string, e Entry) error
	PutSoon(key string, e Entry)
	Delete(key string) error
	All() iter.Seq2[string, Entry]
	// Err is why a loop over All may have ended early.
	Err() error
}

// Memory is what agents remember. Any goroutine may call its methods.
type Memory struct {
	kept      entries
	most      int
	mu        sync.Mutex // one change at a time, so that a key has one entry
	strangers map[device.ID]*stranger
	changed   func(id string) // is told of each change; nil tells nobody
}

// NewMemory returns the memory kept in a table.
func NewMemory(kept entries) *Memory {
	return &Memory{kept: kept, most: mostEntries, strangers: map[device.ID]*stranger{}}
}

// Watch has a function told the id of each entry that is remembered, edited or
// forgotten from now on, by whomever. It is called before any other method is, and
// never told of what a stranger has remembered. The function must not call the memory.
func (m *Memory) Watch(changed func(id string)) { m.changed = changed }

// tell tells of a change, under the lock, so that two are told in their order.
func (m *Memory) tell(id string) {
	if m.changed != nil {
		m.changed(id)
	}
}

// Remember stores an entry durably and returns it with its id. It replaces an
// entry of the same key. If the memory is full, the entry that was used least
// recently is deleted.
func (m *Memory) Remember(e Entry, now time.Time) (Entry, error) {
	e.Body = strings.TrimSpace(e.Body)
	if !e.fits() {
		return Entry{}, fmt.Errorf("%w: %d bytes", ErrTooMuch, len(e.Body))
	}
	e.Type = cmp.Or(e.Type, MemoryUser)
	m.mu.Lock()
	defer m.mu.Unlock()
	stale, same, count := m.survey(e.Key)
	e.ID, e.Created = same, now
	if same == "" {
		e.ID = rand.Text()[:12]
		if count >= m.most {
			if err := m.kept.Delete(stale); err != nil {
				return Entry{}, fmt.Errorf("make room in memory: %w", err)
			}
		}
	}
	if err := m.kept.Put(e.ID, e); err != nil {
		return Entry{}, fmt.Errorf("remember: %w", err)
	}
	m.tell(e.ID)
	return e, nil
}

// Edit replaces the text of an entry durably and returns the entry, of which all else
// stays. A fact that is its own name is renamed with it.
func (m *Memory) Edit(id, text string, now time.Time) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, there, err := m.kept.Get(id)
	if err != nil {
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
	if err := m.kept.Put(id, e); err != nil {
		return Entry{}, fmt.Errorf("edit what is remembered: %w", err)
	}
	m.tell(id)
	return e, nil
}

// fits reports whether an entry has a text, and is within the bounds of one.
func (e Entry) fits() bool {
	return e.Body != "" && len(e.Body)+len(e.Name)+len(e.Description) <= mostBody
}

// survey finds the entry of a key and the one used least recently.
func (m *Memory) survey(key string) (stale, same string, count int) {
	var oldest time.Time
	for id, e := range m.kept.All() {
		count++
		if key != "" && e.Key == key {
			same = id
		}
		if last := e.LastUsed(); stale == "" || last.Before(oldest) {
			stale, oldest = id, last
		}
	}
	return stale, same, count
}

// LastUsed is when an entry was last recalled, or else when it was created.
func (e Entry) LastUsed() time.Time {
	if e.Used.After(e.Created) {
		return e.Used
	}
	return e.Created
}

// Recall returns the entry of a key and records that it was used.
func (m *Memory) Recall(key string, now time.Time) (Entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, e := range m.kept.All() {
		if e.Key == key && !e.expired(now) {
			e.Used = now
			m.kept.PutSoon(id, e)
			return e, true
		}
	}
	return Entry{}, false
}

// Search returns the entries with every word of the query, oldest first.
func (m *Memory) Search(query string, now time.Time) []Entry {
	words := strings.Fields(strings.ToLower(query))
	found := []Entry{}
	for _, e := range m.kept.All() {
		if !e.expired(now) && e.holds(words) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b Entry) int { return a.Created.Compare(b.Created) })
	return found
}

// Err is not nil if Recall and Search may have missed entries.
func (m *Memory) Err() error { return m.kept.Err() }

// Forget deletes an entry durably.
func (m *Memory) Forget(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, there, err := m.kept.Get(id)
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	if !there {
		return ErrForgotten
	}
	if err := m.kept.Delete(id); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	m.tell(id)
	return nil
}

func (e Entry) expired(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

func (e Entry) holds(words []string) bool {
	text := strings.ToLower(e.Key + " " + e.Name + " " + e.Description + " " + e.Body + " " + strings.Join(e.Tags, " "))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// Bounds of the strangers' memories: robots, and entries of each.
const (
	mostStrangers  = 32
	mostOfStranger = 20
)

// Of returns the memory for a turn. A stranger has its own, for this run at most:
// it neither reads nor changes the owner's.
func (m *Memory) Of(t Turn) *Memory {
	if !t.Stranger() {
		return m
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own, known := m.strangers[t.Robot]
	if !known {
		if len(m.strangers) >= mostStrangers {
			delete(m.strangers, slices.MinFunc(slices.Collect(maps.Keys(m.strangers)), func(a, b device.ID) int {
				return m.strangers[a].used.Compare(m.strangers[b].used)
			}))
		}
		own = &stranger{memory: &Memory{kept: &scratch{}, most: mostOfStranger}}
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

// scratch stores entries for as long as this run.
type scratch struct{ entries sync.Map }

func (s *scratch) Get(key string) (e Entry, there bool, err error) {
	kept, there := s.entries.Load(key)
	e, _ = kept.(Entry)
	return e, there, nil
}

func (s *scratch) PutSoon(key string, e Entry) { s.entries.Store(key, e) }
func (s *scratch) Err() error                  { return nil }

func (s *scratch) Put(key string, e Entry) error {
	s.PutSoon(key, e)
	return nil
}

func (s *scratch) Delete(key string) error {
	s.entries.Delete(key)
	return nil
}

func (s *scratch) All() iter.Seq2[string, Entry] {
	all := map[string]Entry{}
	s.entries.Range(func(key, e any) bool {
		all[key.(string)] = e.(Entry)
		return true
	})
	return func(yield func(string, Entry) bool) {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !yield(key, all[key]) {
				return
			}
		}
	}
}
