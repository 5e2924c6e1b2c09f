package bridge

import (
	"fmt"
	"iter"
	"sync"
	"time"
)

// Turn is a turn of a conversation between a person and a robot.
type Turn struct {
	At        time.Time `json:"at"`
	Session   string    `json:"session,omitempty"`
	User      string    `json:"user"`      // what the person said
	Assistant string    `json:"assistant"` // what the robot replied
}

// table stores turns on disk.
type table interface {
	Put(key string, t Turn) error // returns once the turn is durable
	DeleteSoon(key string)        // a power cut may undo the deletion
	All() iter.Seq2[string, Turn] // in the order of the keys
}

// Log stores the latest turns that another voice server has reported. It is safe for concurrent use.
type Log struct {
	table table

	mu       sync.Mutex
	maxTurns int
	keys     []string  // oldest first
	last     time.Time // time of the latest key
}

// NewLog returns a log that stores the latest maxTurns turns in a table. It deletes older turns from the table.
func NewLog(t table, maxTurns int) *Log {
	l := &Log{table: t, maxTurns: max(maxTurns, 0)}
	for key := range t.All() {
		l.keys = append(l.keys, key)
		if at, err := time.Parse(keyTime, key); err == nil {
			l.last = at
		}
	}
	l.trim()
	return l
}

// SetMaxTurns changes the maximum number of stored turns, and deletes the oldest turns if there are more.
func (l *Log) SetMaxTurns(maxTurns int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxTurns = max(maxTurns, 0)
	l.trim()
}

// add stores a turn durably. It does nothing if the maximum number of turns is 0.
func (l *Log) add(t Turn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.maxTurns == 0 {
		return nil
	}
	key := l.key(t.At)
	if err := l.table.Put(key, t); err != nil {
		return fmt.Errorf("store a turn: %w", err)
	}
	l.keys = append(l.keys, key)
	l.trim()
	return nil
}

// keyTime is the layout of the keys of turns.
const keyTime = "20060102T150405.000000000"

// key returns a new key, which sorts after all earlier keys. The key is the time of the turn, or a nanosecond after the
// last key if the time is not later than that key, because the clock was set back. The lock must be held.
func (l *Log) key(at time.Time) string {
	if at = at.Round(0).UTC(); !at.After(l.last) {
		at = l.last.Add(1)
	}
	l.last = at
	return at.Format(keyTime)
}

// trim deletes the oldest turns if there are too many. The lock must be held.
func (l *Log) trim() {
	for len(l.keys) > l.maxTurns {
		l.table.DeleteSoon(l.keys[0])
		l.keys = l.keys[1:]
	}
}

// all returns the stored turns, oldest first.
func (l *Log) all() (turns []Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.table.All() {
		turns = append(turns, t)
	}
	return turns
}
