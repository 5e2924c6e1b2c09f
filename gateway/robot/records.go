package robot

import (
	"iter"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/limit"
	"perch/plain"
)

// SessionRecord is the stored record of a session.
type SessionRecord struct {
	ID       string        `json:"id"`
	Robot    device.ID     `json:"robot"`
	Client   device.Client `json:"client"`
	Firmware string        `json:"firmware,omitempty"`
	Mode     string        `json:"mode,omitempty"` // latest listening mode, such as "auto"
	Framing  int           `json:"framing"`
	Opened   time.Time     `json:"opened"`
	Closed   time.Time     `json:"closed,omitzero"` // zero while the session is open
	Why      string        `json:"why,omitempty"`   // reason for the close
	Turns    int           `json:"turns"`
}

// TurnRecord is the stored record of a turn.
type TurnRecord struct {
	Robot   device.ID        `json:"robot"`
	Session string           `json:"session"`
	At      time.Time        `json:"at"` // end of the turn
	Heard   string           `json:"heard"`
	Said    string           `json:"said"`
	End     string           `json:"end"`    // as in event.TurnEnded
	Stages  map[string]int64 `json:"stages"` // as in event.TurnEnded
	Details
}

// table is a table of records. A power cut may undo the changes that PutSoon and DeleteSoon have made
// in the last seconds.
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

	mu          sync.Mutex
	limit       int                      // maximum number of stored sessions, and of stored turns; 0 means that nothing is stored
	open        map[string]SessionRecord // open sessions, by session ID
	openKeys    map[string]string        // key of each open session in the table, by session ID
	sessionKeys []string                 // keys in the table of sessions, oldest first
	turnKeys    []string                 // keys in the table of turns, oldest first
	newest      time.Time                // time in the newest key of both tables
}

// NewRecords returns the records that two tables hold. It deletes all but the newest maxRecords of
// each, and marks sessions that a crash left open as interrupted.
func NewRecords(sessions table[SessionRecord], turns table[TurnRecord], maxRecords int) *Records {
	r := &Records{sessions: sessions, turns: turns, open: map[string]SessionRecord{}, openKeys: map[string]string{}}
	for key, s := range sessions.All() {
		r.sessionKeys = append(r.sessionKeys, key)
		if s.Closed.IsZero() {
			s.Closed, s.Why = s.Opened, "interrupted"
			sessions.PutSoon(key, s)
		}
	}
	for key := range turns.All() {
		r.turnKeys = append(r.turnKeys, key)
	}
	for _, keys := range [][]string{r.sessionKeys, r.turnKeys} {
		if len(keys) == 0 {
			continue
		}
		if at, err := time.Parse(keyLayout, keys[len(keys)-1]); err == nil && at.After(r.newest) {
			r.newest = at
		}
	}
	r.Bound(maxRecords)
	return r
}

// Bound sets how many sessions and how many turns are stored, and deletes the oldest beyond that.
func (r *Records) Bound(maxRecords int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = maxRecords
	r.sessionKeys = deleteOldest(r.sessionKeys, maxRecords, r.sessions.DeleteSoon)
	r.turnKeys = deleteOldest(r.turnKeys, maxRecords, r.turns.DeleteSoon)
}

// keyLayout is the time layout of a record's key, which sorts by time.
const keyLayout = "20060102T150405.000000000"

// newKey returns a key that sorts after all others. It is the given time, or just after the newest key
// if the clock was set back: otherwise a new record would count as the oldest and be deleted first.
func (r *Records) newKey(at time.Time) string {
	if at = at.Round(0).UTC(); !at.After(r.newest) {
		at = r.newest.Add(1)
	}
	r.newest = at
	return at.Format(keyLayout)
}

// addSession stores a session that has just opened.
func (r *Records) addSession(s SessionRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit == 0 {
		return
	}
	key := r.newKey(s.Opened)
	r.open[s.ID], r.openKeys[s.ID] = s, key
	r.sessions.PutSoon(key, s)
	r.sessionKeys = deleteOldest(append(r.sessionKeys, key), r.limit, r.sessions.DeleteSoon)
}

// closeSession stores the end of a session, if the session was stored.
func (r *Records) closeSession(id, why, mode string, turns int, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, key := r.open[id], r.openKeys[id]
	delete(r.open, id)
	delete(r.openKeys, id)
	if !slices.Contains(r.sessionKeys, key) {
		return // never stored, or already deleted as one of the oldest
	}
	s.Closed, s.Why, s.Mode, s.Turns = at, why, mode, turns
	r.sessions.PutSoon(key, s)
}

// addTurn stores a turn. Long texts are cut.
func (r *Records) addTurn(t TurnRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit == 0 {
		return
	}
	t.Heard, t.Said = plain.Clip(t.Heard, limit.Instructions), plain.Clip(t.Said, limit.Instructions)
	key := r.newKey(t.At)
	r.turns.PutSoon(key, t)
	r.turnKeys = deleteOldest(append(r.turnKeys, key), r.limit, r.turns.DeleteSoon)
}

// deleteOldest deletes the oldest records until maxKeys are left, and returns the keys that are left.
func deleteOldest(keys []string, maxKeys int, deleteRecord func(key string)) []string {
	for len(keys) > maxKeys {
		deleteRecord(keys[0])
		keys = keys[1:]
	}
	return keys
}

// Turns returns the latest turns, newest first, at most n.
func (r *Records) Turns(n int) []TurnRecord { return newestRecords(r.turns, n) }

// Sessions returns the latest sessions, newest first, at most n.
func (r *Records) Sessions(n int) []SessionRecord { return newestRecords(r.sessions, n) }

// newestRecords returns the n newest records of a table, or an empty slice.
func newestRecords[T any](from table[T], n int) []T {
	records := []T{}
	for _, v := range from.Newest(n) {
		records = append(records, v)
	}
	return records
}
