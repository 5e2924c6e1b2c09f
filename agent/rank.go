package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/language"
)

// Parameters of the ranking. The salience of an entry is its importance when it is new. The
// score is the salience, halved for each half-life since Entry.LastUsed. Both are from 0 to 1.
const (
	minSalience = 0.5
	tagBonus    = 0.05 // salience added for each tag
	maxTagBonus = 0.2
	ln2         = 0.693
	halfLife    = 7 * 24 * time.Hour
)

// Limits of queries, tags and expiry.
const (
	maxQuery      = 500 // bytes of a query
	maxQueryWords = 16
	maxTags       = 8
	maxTag        = 40 // bytes of a tag
	maxExpiry     = 10 * 365 * 24 * time.Hour
)

// ErrEntry is wrapped by the errors for an entry or a query with an invalid type, tag,
// expiry, context or length.
var ErrEntry = errors.New("cannot be remembered")

// MemoryTypes returns the types of memory entries.
func MemoryTypes() []string {
	return []string{MemoryUser, MemoryFeedback, MemoryProject, MemoryReference}
}

// CheckMemoryType returns an error that wraps ErrEntry, unless kind is one of MemoryTypes
// or "".
func CheckMemoryType(kind string) error {
	if kind != "" && !slices.Contains(MemoryTypes(), kind) {
		return fmt.Errorf("%w: type is one of %s, not %.40q", ErrEntry, strings.Join(MemoryTypes(), ", "), kind)
	}
	return nil
}

// check sets a missing type, normalizes the tags, and returns an error if a tag or the
// expiry is invalid. It does not check the type.
func (e *Entry) check(now time.Time) error {
	e.Type = cmp.Or(e.Type, MemoryUser)
	var err error
	if e.Tags, err = normalizeTags(e.Tags); err != nil {
		return err
	}
	if !e.Expires.IsZero() && e.isExpired(now) {
		return fmt.Errorf("%w: expires must be in the future", ErrEntry)
	}
	if e.Expires.After(now.Add(maxExpiry)) {
		return fmt.Errorf("%w: expires must be within ten years; leave it out for a fact that does not expire", ErrEntry)
	}
	return nil
}

// normalizeTags returns the tags in lower case, without duplicates and without a "#" before
// them.
func normalizeTags(given []string) (tags []string, err error) {
	for _, tag := range given {
		tag = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(tag), "#"))
		if len(tag) > maxTag || CheckWord(tag) != nil {
			return nil, fmt.Errorf("%w: a tag is one word of at most %d bytes, of letters, digits, - and _, not %.60q", ErrEntry, maxTag, tag)
		}
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
		if len(tags) > maxTags {
			return nil, fmt.Errorf("%w: an entry has at most %d tags", ErrEntry, maxTags)
		}
	}
	return tags, nil
}

// Salience returns the importance of an entry when it is new, from 0 to 1.
func (e Entry) Salience() float64 {
	if e.Important {
		return 1
	}
	bonus := 0.0
	switch e.Type {
	case MemoryFeedback:
		bonus = 0.3
	case MemoryUser:
		bonus = 0.2
	case MemoryProject:
		bonus = 0.1
	}
	return min(minSalience+bonus+min(tagBonus*float64(len(e.Tags)), maxTagBonus), 1)
}

// Score returns the salience, decayed by the time since LastUsed.
func (e Entry) Score(now time.Time) float64 {
	age := max(now.Sub(e.LastUsed()), 0)
	return e.Salience() * math.Exp(-ln2*age.Seconds()/halfLife.Seconds())
}

// Query selects entries that have not expired. The zero Query selects all of them.
type Query struct {
	Type string   // "" means any
	Tags []string // an entry must have all of them
	// Text is at most 16 words and 500 bytes. An entry must contain each of the words. If
	// no entry does, and the text is in a script without spaces, such as Chinese, entries
	// that contain many parts of the text are selected.
	Text string
	N    int // maximum number of entries, the highest rank first; 0 means all
}

// Ranked is an entry with its salience and score, both from 0 to 1.
type Ranked struct {
	Entry
	Salience float64 `json:"salience"`
	Score    float64 `json:"score"`
}

// Query returns the entries that q selects, the highest rank first. An error wraps ErrEntry.
func (m *Memory) Query(q Query, now time.Time) ([]Ranked, error) {
	if err := CheckMemoryType(q.Type); err != nil {
		return nil, err
	}
	tags, err := normalizeTags(q.Tags)
	if err != nil {
		return nil, err
	}
	if len(q.Text) > maxQuery || len(strings.Fields(q.Text)) > maxQueryWords {
		return nil, fmt.Errorf("%w: a query has at most %d words, and %d bytes; leave out some", ErrEntry, maxQueryWords, maxQuery)
	}
	q.Tags = tags
	found := m.index.search(q, now)
	ranked := make([]Ranked, len(found))
	for i, e := range found {
		ranked[i] = Ranked{e.Entry, e.Salience(), e.Score(now)}
	}
	return ranked, nil
}

// MemoryStats counts the entries of a memory.
type MemoryStats struct {
	Entries   int            `json:"entries"`
	Most      int            `json:"most"` // maximum number of entries
	Important int            `json:"important"`
	Types     map[string]int `json:"types"` // key: type
	Tags      map[string]int `json:"tags"`  // key: tag
}

// Stats counts the entries that have not expired.
func (m *Memory) Stats(now time.Time) MemoryStats {
	s := MemoryStats{Most: int(m.capacity.Load()), Types: map[string]int{}, Tags: map[string]int{}}
	for _, e := range m.index.search(Query{}, now) {
		s.Entries++
		s.Types[e.Type]++
		if e.Important {
			s.Important++
		}
		for _, tag := range e.Tags {
			s.Tags[tag]++
		}
	}
	return s
}

// index holds all entries of a table in memory, so that a search need not read the table.
type index struct {
	table  entries
	mu     sync.RWMutex
	loaded bool // whether contents is equal to the table; false until the whole table has been read
	contents
}

// contents are the entries of an index.
type contents struct {
	ranked []*indexed          // the highest rank first
	ids    map[string]*indexed // key: Entry.ID
	keys   map[string]*indexed // key: Entry.Key
}

// indexed is an entry in an index. It is immutable.
type indexed struct {
	Entry
	text     string   // all searchable text, folded by language.Fold
	trigrams trigrams // trigrams of text
	rank     float64  // Entry.rank
}

// newIndexed returns an entry for the index, without the entry's session.
func newIndexed(e Entry) *indexed {
	e.Session = ""
	parts := []string{e.Key, e.Description, e.Body, strings.Join(e.Tags, " ")}
	if e.Name != e.Body {
		parts = append(parts, e.Name)
	}
	text := language.Fold(strings.Join(parts, " "))
	x := &indexed{Entry: e, text: text, rank: e.rank()}
	x.trigrams.add(text)
	return x
}

// rank returns a number that orders entries by their score, and does not depend on the
// current time: all scores decay at the same rate, so their order does not change. The
// number is the logarithm of the score, plus a term that is the same for all entries. An
// entry that a wrong clock has dated into the future ranks above new ones, although its
// score is not higher.
func (e Entry) rank() float64 {
	return math.Log(e.Salience()) + ln2/halfLife.Seconds()*(float64(e.LastUsed().Unix())+float64(e.LastUsed().Nanosecond())/1e9)
}

// compareRank orders entries: the highest rank first, and at equal rank the newest first.
func compareRank(a, b *indexed) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
}

// read returns the contents of the table, from memory if the table was loaded. The caller
// holds mu.
func (x *index) read() contents {
	if x.loaded {
		return x.contents
	}
	c := contents{nil, map[string]*indexed{}, map[string]*indexed{}}
	for id, e := range x.table.All() {
		e.ID = id
		c.ranked = append(c.ranked, newIndexed(e))
	}
	slices.SortFunc(c.ranked, compareRank)
	for _, e := range slices.Backward(c.ranked) { // the highest rank last, so that it wins if two entries have the same key
		c.addToMaps(e)
	}
	return c
}

// addToMaps adds an entry to ids and keys.
func (c *contents) addToMaps(e *indexed) {
	c.ids[e.ID] = e
	if e.Key != "" {
		c.keys[e.Key] = e
	}
}

// load returns the contents of the table, and keeps them in x unless reading fails. The
// caller holds mu for writing.
func (x *index) load() contents {
	c := x.read()
	if x.table.Err() == nil {
		x.contents, x.loaded = c, true
	}
	return c
}

// view returns the contents for reading, and a function that the caller must call when it
// has read them.
func (x *index) view() (c contents, done func()) {
	x.mu.RLock()
	if x.loaded {
		return x.contents, x.mu.RUnlock
	}
	x.mu.RUnlock()
	x.mu.Lock()
	return x.load(), x.mu.Unlock
}

// insert adds an entry. It replaces and returns an entry with the same ID.
func (x *index) insert(e Entry) (before *indexed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.insertLocked(e)
}

// remove removes and returns the entry with this ID, or returns nil.
func (x *index) remove(id string) (before *indexed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.removeLocked(id)
}

// insertLocked is insert for callers that hold mu. It does nothing before the table has been
// loaded, because load will read the entry from the table.
func (x *index) insertLocked(e Entry) (before *indexed) {
	if !x.loaded {
		return nil
	}
	before = x.removeLocked(e.ID)
	added := newIndexed(e)
	i, _ := slices.BinarySearchFunc(x.ranked, added, compareRank)
	x.ranked = slices.Insert(x.ranked, i, added)
	x.addToMaps(added)
	return before
}

// removeLocked is remove for callers that hold mu.
func (x *index) removeLocked(id string) (before *indexed) {
	before, ok := x.ids[id]
	if !ok {
		return nil
	}
	if i, ok := slices.BinarySearchFunc(x.ranked, before, compareRank); ok {
		x.ranked = slices.Delete(x.ranked, i, i+1)
	}
	delete(x.ids, id)
	if x.keys[before.Key] == before {
		delete(x.keys, before.Key)
	}
	return before
}

func (x *index) byID(id string) (e Entry, ok bool) {
	c, done := x.view()
	defer done()
	return c.ids[id].entry()
}

// byKey returns the entry with this key. No entry has the key "".
func (x *index) byKey(key string) (e Entry, ok bool) {
	c, done := x.view()
	defer done()
	return c.keys[key].entry()
}

// use sets the field Used of the entry with this key, in the index and the table, and
// returns the entry. The result is false if there is no such entry or it has expired.
func (x *index) use(key string, now time.Time) (Entry, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, ok := x.load().keys[key].entry()
	if !ok || e.isExpired(now) {
		return Entry{}, false
	}
	e.Used = now
	x.table.PutSoon(e.ID, e)
	x.insertLocked(e)
	return e, true
}

// entry returns the entry; ok is false if e is nil.
func (e *indexed) entry() (entry Entry, ok bool) {
	if e == nil {
		return Entry{}, false
	}
	return e.Entry, true
}

// search returns the entries that a query selects and that have not expired, the highest
// rank first.
func (x *index) search(q Query, now time.Time) (found []*indexed) {
	c, done := x.view()
	defer done()
	words := newPattern(strings.Fields(language.Fold(q.Text)))
	selected := func(e *indexed) bool {
		return !e.isExpired(now) && (q.Type == "" || e.Type == q.Type) && e.hasTags(q.Tags)
	}
	for _, e := range c.ranked {
		if words.matches(e) && selected(e) {
			if found = append(found, e); len(found) == q.N {
				break
			}
		}
	}
	if whole, parts := splitParts(words.texts); len(found) == 0 && len(parts) > 0 {
		wholeWords := newPattern(whole)
		found = searchParts(c.ranked, parts, q.N, func(e *indexed) bool { return wholeWords.matches(e) && selected(e) })
	}
	return found
}

// surplus returns the entries to evict so that at most maxLeft entries remain, but no more
// than maxEvicted entries: first expired ones, then viewers' entries, then others, each
// class from the lowest rank. If cond is not nil, only entries that satisfy cond are counted
// and evicted.
func (x *index) surplus(maxLeft int, now time.Time, cond func(*indexed) bool) []*indexed {
	c, done := x.view()
	defer done()
	candidates := c.ranked
	if cond != nil {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(e *indexed) bool { return !cond(e) })
	}
	n := min(max(len(candidates)-maxLeft, 0), maxEvicted)
	if n == 0 {
		return nil
	}
	var classes [3][]*indexed
	for _, e := range slices.Backward(candidates) {
		if class := e.evictionClass(now); len(classes[class]) < n {
			classes[class] = append(classes[class], e)
		}
	}
	return slices.Concat(classes[:]...)[:n]
}

// evictionClass returns 0, 1 or 2; entries with a lower class are evicted first.
func (e *indexed) evictionClass(now time.Time) int {
	switch {
	case e.isExpired(now):
		return 0
	case e.isViewers():
		return 1
	}
	return 2
}

// hasTags reports whether the entry has all these tags.
func (e *indexed) hasTags(tags []string) bool {
	return !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(e.Tags, tag) })
}
