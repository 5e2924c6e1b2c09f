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

// Ranking of entries. The salience is from 0 to 1; the score is the salience, halved
// for each half-life without use.
const (
	leastSalience = 0.5
	tagBonus      = 0.05
	mostTagBonus  = 0.2
	ln2           = 0.693
	halfLife      = 7 * 24 * time.Hour
)

// Bounds of queries, tags and expiry.
const (
	mostQuery  = 500 // bytes
	mostSought = 16  // words of a query
	mostTags   = 8
	mostTag    = 40 // bytes
	mostExpiry = 10 * 365 * 24 * time.Hour
)

// ErrEntry is wrapped by Remember for an entry with an invalid type, tag or expiry.
var ErrEntry = errors.New("cannot be remembered so")

// MemoryTypes returns the kinds of memory.
func MemoryTypes() []string {
	return []string{MemoryUser, MemoryFeedback, MemoryProject, MemoryReference}
}

// CheckMemoryType accepts a kind of memory or the empty string. An error wraps ErrEntry.
func CheckMemoryType(kind string) error {
	if kind != "" && !slices.Contains(MemoryTypes(), kind) {
		return fmt.Errorf("%w: type is one of %s, not %.40q", ErrEntry, strings.Join(MemoryTypes(), ", "), kind)
	}
	return nil
}

// check validates an entry and normalizes its type and tags.
func (e *Entry) check(now time.Time) error {
	e.Type = cmp.Or(e.Type, MemoryUser)
	var err error
	if e.Tags, err = tagsOf(e.Tags); err != nil {
		return err
	}
	if !e.Expires.IsZero() && e.expired(now) {
		return fmt.Errorf("%w: expires is a time to come", ErrEntry)
	}
	if e.Expires.After(now.Add(mostExpiry)) {
		return fmt.Errorf("%w: it may expire within ten years; leave that out for a fact that stays", ErrEntry)
	}
	return nil
}

// tagsOf returns tags in lower case, each once, without a "#".
func tagsOf(given []string) (tags []string, err error) {
	for _, tag := range given {
		tag = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(tag), "#"))
		if len(tag) > mostTag || CheckWord(tag) != nil {
			return nil, fmt.Errorf("%w: a tag is one word of at most %d bytes, of letters, digits, - and _, not %.60q", ErrEntry, mostTag, tag)
		}
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
		if len(tags) > mostTags {
			return nil, fmt.Errorf("%w: an entry has at most %d tags", ErrEntry, mostTags)
		}
	}
	return tags, nil
}

// Salience returns how much an entry matters while it is new, from 0 to 1.
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
	return min(leastSalience+bonus+min(tagBonus*float64(len(e.Tags)), mostTagBonus), 1)
}

// Score returns the salience, decayed since the entry was last used.
func (e Entry) Score(now time.Time) float64 {
	age := max(now.Sub(e.LastUsed()), 0)
	return e.Salience() * math.Exp(-ln2*age.Seconds()/halfLife.Seconds())
}

// Query selects entries. The zero Query selects all.
type Query struct {
	Type string
	Tags []string // an entry has all of them
	// Text is at most 16 words of 500 bytes in all. An entry must contain each of them.
	// A text in a script without spaces, such as Chinese, must be contained as it is; if
	// no entry contains it, those with most of its parts are found.
	Text string
	N    int // the N best; 0 means all
}

// Ranked is an entry with its score.
type Ranked struct {
	Entry
	Score float64 `json:"score"` // from 0 to 1
}

// Query returns the matching entries, the best first. An error wraps ErrEntry for an
// invalid type or tag, and for a text that is too long.
func (m *Memory) Query(q Query, now time.Time) ([]Ranked, error) {
	if err := CheckMemoryType(q.Type); err != nil {
		return nil, err
	}
	tags, err := tagsOf(q.Tags)
	if err != nil {
		return nil, err
	}
	if len(q.Text) > mostQuery || len(strings.Fields(q.Text)) > mostSought {
		return nil, fmt.Errorf("%w: a query has at most %d words, and %d bytes; leave out some", ErrEntry, mostSought, mostQuery)
	}
	q.Tags = tags
	found := m.index.search(q, now)
	ranked := make([]Ranked, len(found))
	for i, e := range found {
		ranked[i] = Ranked{e.Entry, e.Score(now)}
	}
	return ranked, nil
}

// MemoryStats are the numbers of entries.
type MemoryStats struct {
	Entries   int            `json:"entries"`
	Most      int            `json:"most"` // the limit
	Important int            `json:"important"`
	Types     map[string]int `json:"types"`
	Tags      map[string]int `json:"tags"`
}

// Stats counts the entries that have not expired.
func (m *Memory) Stats(now time.Time) MemoryStats {
	s := MemoryStats{Most: int(m.most.Load()), Types: map[string]int{}, Tags: map[string]int{}}
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

// index holds the entries in memory with their search keys, so that a search does not
// read, decode or sort. It matches the table once that has been read without an error.
type index struct {
	table  entries
	mu     sync.RWMutex
	loaded bool
	contents
}

// contents holds entries by rank, the best first, and by id and key.
type contents struct {
	ranked    []*indexed
	ids, keys map[string]*indexed
}

// indexed is an entry with its searchable text and its rank. It is immutable.
type indexed struct {
	Entry
	text    string
	letters letters
	rank    float64
}

func newIndexed(e Entry) *indexed {
	e.Session = ""
	parts := []string{e.Key, e.Description, e.Body, strings.Join(e.Tags, " ")}
	if e.Name != e.Body {
		parts = append(parts, e.Name)
	}
	text := language.Fold(strings.Join(parts, " "))
	one := &indexed{Entry: e, text: text, rank: e.rank()}
	one.letters.add(text)
	return one
}

// rank is the logarithm of the score up to a term that is the same for all entries at
// any time: all scores decay at the same rate, so their order is stable. An entry that
// a wrong clock dated ahead ranks above new ones, though its score is no higher.
func (e Entry) rank() float64 {
	return math.Log(e.Salience()) + ln2/halfLife.Seconds()*(float64(e.LastUsed().Unix())+float64(e.LastUsed().Nanosecond())/1e9)
}

// byRank orders the best first, and newer before older of equal rank.
func byRank(a, b *indexed) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
}

// read returns the contents of the table. The caller holds the lock.
func (x *index) read() contents {
	if x.loaded {
		return x.contents
	}
	read := contents{nil, map[string]*indexed{}, map[string]*indexed{}}
	for id, e := range x.table.All() {
		e.ID = id
		read.ranked = append(read.ranked, newIndexed(e))
	}
	slices.SortFunc(read.ranked, byRank)
	for _, e := range slices.Backward(read.ranked) { // of two with one key, the better wins
		read.name(e)
	}
	return read
}

// name registers an entry under its id and key.
func (c *contents) name(e *indexed) {
	c.ids[e.ID] = e
	if e.Key != "" {
		c.keys[e.Key] = e
	}
}

// load reads the table, unless it has been read. The caller holds the lock for writing.
func (x *index) load() contents {
	read := x.read()
	if x.table.Err() == nil {
		x.contents, x.loaded = read, true
	}
	return read
}

// view returns the contents, which may be read until done is called.
func (x *index) view() (c contents, done func()) {
	x.mu.RLock()
	if x.loaded {
		return x.contents, x.mu.RUnlock
	}
	x.mu.RUnlock()
	x.mu.Lock()
	return x.load(), x.mu.Unlock
}

// insert adds an entry, or replaces and returns the one of the same id.
func (x *index) insert(e Entry) (before *indexed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.replace(e)
}

// remove deletes an entry and returns it.
func (x *index) remove(id string) (before *indexed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.drop(id)
}

// replace is insert for callers that hold the lock.
func (x *index) replace(e Entry) (before *indexed) {
	if !x.loaded {
		return nil
	}
	before = x.drop(e.ID)
	one := newIndexed(e)
	i, _ := slices.BinarySearchFunc(x.ranked, one, byRank)
	x.ranked = slices.Insert(x.ranked, i, one)
	x.name(one)
	return before
}

// drop is remove for callers that hold the lock.
func (x *index) drop(id string) (before *indexed) {
	before, there := x.ids[id]
	if !there {
		return nil
	}
	if i, there := slices.BinarySearchFunc(x.ranked, before, byRank); there {
		x.ranked = slices.Delete(x.ranked, i, i+1)
	}
	delete(x.ids, id)
	if x.keys[before.Key] == before {
		delete(x.keys, before.Key)
	}
	return before
}

func (x *index) byID(id string) (Entry, bool) {
	all, done := x.view()
	defer done()
	return all.ids[id].copied()
}

// keyed returns the entry of a key, unless the key is empty.
func (x *index) keyed(key string) (Entry, bool) {
	all, done := x.view()
	defer done()
	return all.keys[key].copied()
}

// use returns the entry of a key after recording its use in the index and the table,
// before anybody else can change the entry.
func (x *index) use(key string, now time.Time) (Entry, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, there := x.load().keys[key].copied()
	if !there || e.expired(now) {
		return Entry{}, false
	}
	e.Used = now
	x.table.PutSoon(e.ID, e)
	x.replace(e)
	return e, true
}

// copied returns a copy of the entry, if it is not nil.
func (e *indexed) copied() (Entry, bool) {
	if e == nil {
		return Entry{}, false
	}
	return e.Entry, true
}

// search returns the entries that match a query, the best first.
func (x *index) search(q Query, now time.Time) (found []*indexed) {
	contents, done := x.view()
	defer done()
	words := newSought(strings.Fields(language.Fold(q.Text)))
	fits := func(e *indexed) bool {
		return !e.expired(now) && (q.Type == "" || e.Type == q.Type) && e.tagged(q.Tags)
	}
	all := contents.ranked
	for _, e := range all {
		if words.in(e) && fits(e) {
			if found = append(found, e); len(found) == q.N {
				break
			}
		}
	}
	if whole, parts := partsOf(words.texts); len(found) == 0 && len(parts) > 0 {
		rest := newSought(whole)
		found = mostOf(all, parts, q.N, func(e *indexed) bool { return rest.in(e) && fits(e) })
	}
	return found
}

// surplus returns the entries to delete so that at most most are left, of a kind or in
// all: first expired ones, then those reported by viewers, each from the lowest rank.
func (x *index) surplus(most int, now time.Time, kind func(*indexed) bool) []*indexed {
	contents, done := x.view()
	defer done()
	all := contents.ranked
	if kind != nil {
		all = slices.DeleteFunc(slices.Clone(all), func(e *indexed) bool { return !kind(e) })
	}
	surplus := min(max(len(all)-most, 0), mostPruned)
	if surplus == 0 {
		return nil
	}
	var classes [3][]*indexed
	for _, e := range slices.Backward(all) {
		if c := e.class(now); len(classes[c]) < surplus {
			classes[c] = append(classes[c], e)
		}
	}
	return slices.Concat(classes[:]...)[:surplus]
}

// class orders entries for eviction, the lowest first.
func (e *indexed) class(now time.Time) int {
	switch {
	case e.expired(now):
		return 0
	case e.reported():
		return 1
	}
	return 2
}

func (e *indexed) tagged(tags []string) bool {
	return !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(e.Tags, tag) })
}
