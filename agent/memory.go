package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/device"
)

// Kinds of memory.
const (
	MemoryUser      = "user"      // about the people of the house
	MemoryFeedback  = "feedback"  // how they want things done
	MemoryProject   = "project"   // what is going on
	MemoryReference = "reference" // where things are
)

// Entry is one thing remembered. Every brain, the bridge and the marker
// [REMEMBER: ...] share one table of them.
type Entry struct {
	ID          string    `json:"id"`
	Key         string    `json:"key,omitempty"` // a newer entry of the same key replaces this one
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Type        string    `json:"type"`
	Body        string    `json:"body"`
	Tags        []string  `json:"tags,omitempty"`
	Robot       device.ID `json:"robot,omitempty"`
	Source      string    `json:"source,omitempty"` // who had it remembered: "reflex", "bridge"
	Created     time.Time `json:"created"`
	Used        time.Time `json:"used,omitzero"`
	Expires     time.Time `json:"expires,omitzero"`
}

// What one entry and the whole memory may hold.
const (
	mostBody    = 4000
	mostEntries = 2000
)

// Errors of the memory.
var (
	// ErrForgotten is returned for an entry that is not there.
	ErrForgotten = errors.New("nothing is remembered under that id")
	// ErrTooMuch is wrapped by Remember for what is too long to keep.
	ErrTooMuch = errors.New("too long to remember")
)

// entries is where memory is kept; Put is durable when it returns.
type entries interface {
	Get(key string) (Entry, bool, error)
	Put(key string, e Entry) error
	PutSoon(key string, e Entry)
	Delete(key string) error
	All() iter.Seq2[string, Entry]
	// Err is why a loop over All may have ended early.
	Err() error
}

// Memory is what the house remembers. Its methods may be called from any
// goroutine.
type Memory struct {
	kept      entries
	most      int
	mu        sync.Mutex // one change at a time, so that a key has one entry
	strangers map[device.ID]*stranger
}

// NewMemory returns the memory kept in a table.
func NewMemory(kept entries) *Memory {
	return &Memory{kept: kept, most: mostEntries, strangers: map[device.ID]*stranger{}}
}

// Remember keeps an entry durably and returns it with its id. An entry of the
// same key is replaced. A full memory gives up what was used least recently.
func (m *Memory) Remember(e Entry, now time.Time) (Entry, error) {
	e.Body = strings.TrimSpace(e.Body)
	if e.Body == "" || len(e.Body)+len(e.Name)+len(e.Description) > mostBody {
		return Entry{}, fmt.Errorf("%w: %d bytes", ErrTooMuch, len(e.Body))
	}
	if e.Type == "" {
		e.Type = MemoryUser
	}
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
	return e, nil
}

// survey finds the entry of that key and the one used least recently.
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

// LastUsed is when an entry was last of use, or else when it was created.
func (e Entry) LastUsed() time.Time {
	if e.Used.After(e.Created) {
		return e.Used
	}
	return e.Created
}

// Recall returns the entry of a key and notes that it was of use.
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

// Search returns the entries in which every word of the query stands,
// oldest first; all of them for an empty query.
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

// Err is nil while all that is remembered can be read. Once it is not, Recall and
// Search may have missed some.
func (m *Memory) Err() error { return m.kept.Err() }

// Forget removes an entry durably.
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
