package robot

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/limit"
	"perch/plain"
)

// SessionRecord is what is stored of a session.
type SessionRecord struct {
	ID       string        `json:"id"`
	Robot    device.ID     `json:"robot"`
	Client   device.Client `json:"client"`
	Firmware string        `json:"firmware,omitempty"`
	Mode     string        `json:"mode,omitempty"`
	Framing  int           `json:"framing"`
	Opened   time.Time     `json:"opened"`
	Closed   time.Time     `json:"closed,omitzero"` // zero while it is open
	Why      string        `json:"why,omitempty"`
	Turns    int           `json:"turns"`
}

// TurnRecord is what is stored of a turn. Stages are as in event.TurnEnded.
type TurnRecord struct {
	Robot   device.ID        `json:"robot"`
	Session string           `json:"session"`
	At      time.Time        `json:"at"`
	Heard   string           `json:"heard"`
	Said    string           `json:"said"`
	End     string           `json:"end"`
	Stages  map[string]int64 `json:"stages"`
}

// table stores records. PutSoon may lose the last seconds in a power cut.
type table[T any] interface {
	PutSoon(key string, v T)
	DeleteSoon(key string)
	All() iter.Seq2[string, T]
	Newest(n int) iter.Seq2[string, T]
}

// Records stores the latest sessions and turns.
type Records struct {
	sessions table[SessionRecord]
	turns    table[TurnRecord]
	most     int

	mu       sync.Mutex
	open     map[string]SessionRecord
	keys     map[string]string // of open sessions, by id
	turnKeys []string          // oldest first
	sessKeys []string
	last     time.Time // that a key has
}

// NewRecords returns the records in two tables. It deletes all but the newest most
// of each, and closes sessions that a crash left open as interrupted.
func NewRecords(sessions table[SessionRecord], turns table[TurnRecord], most int) *Records {
	r := &Records{sessions: sessions, turns: turns, open: map[string]SessionRecord{}, keys: map[string]string{}}
	for key, s := range sessions.All() {
		r.sessKeys = append(r.sessKeys, key)
		if s.Closed.IsZero() {
			s.Closed, s.Why = s.Opened, "interrupted"
			sessions.PutSoon(key, s)
		}
	}
	for key := range turns.All() {
		r.turnKeys = append(r.turnKeys, key)
	}
	for _, keys := range [][]string{r.sessKeys, r.turnKeys} {
		if len(keys) == 0 {
			continue
		}
		text, _, _ := strings.Cut(keys[len(keys)-1], "-")
		if at, err := time.Parse(keyTime, text); err == nil && at.After(r.last) {
			r.last = at
		}
	}
	r.Bound(most)
	return r
}

// Bound sets how many sessions and turns are stored, and deletes older ones.
func (r *Records) Bound(most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = most
	r.sessKeys = trim(r.sessKeys, most, r.sessions.DeleteSoon)
	r.turnKeys = trim(r.turnKeys, most, r.turns.DeleteSoon)
}

const keyTime = "20060102T150405.000000000"

// key returns a key after all others. It is the time, or a later one if the clock was set back: else
// the latest would be dropped first.
func (r *Records) key(at time.Time) string {
	if at = at.Round(0).UTC(); !at.After(r.last) {
		at = r.last.Add(1)
	}
	r.last = at
	return at.Format(keyTime)
}

func (r *Records) opened(s SessionRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most == 0 {
		return
	}
	key := r.key(s.Opened)
	r.open[s.ID], r.keys[s.ID] = s, key
	r.sessions.PutSoon(key, s)
	r.sessKeys = trim(append(r.sessKeys, key), r.most, r.sessions.DeleteSoon)
}

func (r *Records) closed(id, why, mode string, turns int, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, key := r.open[id], r.keys[id]
	delete(r.open, id)
	delete(r.keys, id)
	if !slices.Contains(r.sessKeys, key) {
		return // so many have come since that it was dropped
	}
	s.Closed, s.Why, s.Mode, s.Turns = at, why, mode, turns
	r.sessions.PutSoon(key, s)
}

func (r *Records) turn(t TurnRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most == 0 {
		return
	}
	t.Heard, t.Said = plain.Clip(t.Heard, limit.Instructions), plain.Clip(t.Said, limit.Instructions)
	key := r.key(t.At)
	r.turns.PutSoon(key, t)
	r.turnKeys = trim(append(r.turnKeys, key), r.most, r.turns.DeleteSoon)
}

// trim drops the oldest keys beyond most.
func trim(keys []string, most int, drop func(string)) []string {
	for len(keys) > most {
		drop(keys[0])
		keys = keys[1:]
	}
	return keys
}

// Turns returns the latest turns, newest first, at most n.
func (r *Records) Turns(n int) []TurnRecord { return newest(r.turns, n) }

// Sessions returns the latest sessions, newest first, at most n.
func (r *Records) Sessions(n int) []SessionRecord { return newest(r.sessions, n) }

func newest[T any](from table[T], n int) []T {
	all := []T{}
	for _, v := range from.Newest(n) {
		all = append(all, v)
	}
	return all
}
