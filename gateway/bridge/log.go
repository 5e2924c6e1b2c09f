package bridge

import (
	"fmt"
	"iter"
	"sync"
	"time"
)

// Turn is what a person said to a robot, and what it answered.
type Turn struct {
	At        time.Time `json:"at"`
	Session   string    `json:"session,omitempty"`
	User      string    `json:"user"`
	Assistant string    `json:"assistant"`
}

// table is where turns are kept, in the order of their keys. Put is durable when it
// returns; DeleteSoon may be undone by a power cut.
type table interface {
	Put(key string, t Turn) error
	DeleteSoon(key string)
	All() iter.Seq2[string, Turn]
}

// Log keeps the latest turns that a voice server elsewhere has reported. Its
// methods may be called from any goroutine.
type Log struct {
	kept table
	most int

	mu   sync.Mutex
	keys []string  // oldest first
	last time.Time // that a key has
}

// NewLog returns the log kept in a table, of the newest most turns; 0 keeps
// none, and gives up those that are there.
func NewLog(kept table, most int) *Log {
	l := &Log{kept: kept, most: max(most, 0)}
	for key := range kept.All() {
		l.keys = append(l.keys, key)
		if at, err := time.Parse(keyTime, key); err == nil {
			l.last = at
		}
	}
	l.trim()
	return l
}

// Bound keeps so many turns from now on, and gives up more.
func (l *Log) Bound(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(most, 0)
	l.trim()
}

// add stores a turn durably.
func (l *Log) add(t Turn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most == 0 {
		return nil
	}
	key := l.key(t.At)
	if err := l.kept.Put(key, t); err != nil {
		return fmt.Errorf("store a turn: %w", err)
	}
	l.keys = append(l.keys, key)
	l.trim()
	return nil
}

const keyTime = "20060102T150405.000000000"

// key sorts turns in the order in which they came. That is their time, but
// where the clock was set back the latest would be the first to be given up.
func (l *Log) key(at time.Time) string {
	if at = at.Round(0).UTC(); !at.After(l.last) {
		at = l.last.Add(1)
	}
	l.last = at
	return at.Format(keyTime)
}

func (l *Log) trim() {
	for len(l.keys) > l.most {
		l.kept.DeleteSoon(l.keys[0])
		l.keys = l.keys[1:]
	}
}

// all are the turns that are kept.
func (l *Log) all() []Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Turn
	for _, t := range l.kept.All() {
		all = append(all, t)
	}
	return all
}
