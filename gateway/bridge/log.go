package bridge

import (
	"fmt"
	"iter"
	"sync"
	"time"
)

// Turn is what a person said to a robot, and the robot's answer.
type Turn struct {
	At        time.Time `json:"at"`
	Session   string    `json:"session,omitempty"`
	User      string    `json:"user"`
	Assistant string    `json:"assistant"`
}

// table stores turns in the order of their keys. Put is durable; a power cut may undo
// DeleteSoon.
type table interface {
	Put(key string, t Turn) error
	DeleteSoon(key string)
	All() iter.Seq2[string, Turn]
}

// Log stores the latest turns that another voice server has reported. It is safe for
// concurrent use.
type Log struct {
	table table
	most  int

	mu   sync.Mutex
	keys []string  // oldest first
	last time.Time // the latest time used as a key
}

// NewLog returns a log that stores the newest most turns in a table, and deletes older ones
// from it.
func NewLog(stored table, most int) *Log {
	l := &Log{table: stored, most: max(most, 0)}
	for key := range stored.All() {
		l.keys = append(l.keys, key)
		if at, err := time.Parse(keyTime, key); err == nil {
			l.last = at
		}
	}
	l.trim()
	return l
}

// Bound changes the number of stored turns, and deletes older ones.
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
	if err := l.table.Put(key, t); err != nil {
		return fmt.Errorf("store a turn: %w", err)
	}
	l.keys = append(l.keys, key)
	l.trim()
	return nil
}

const keyTime = "20060102T150405.000000000"

// key returns a key that sorts after all earlier ones. This is the time of the turn, unless
// the clock was set back.
func (l *Log) key(at time.Time) string {
	if at = at.Round(0).UTC(); !at.After(l.last) {
		at = l.last.Add(1)
	}
	l.last = at
	return at.Format(keyTime)
}

func (l *Log) trim() {
	for len(l.keys) > l.most {
		l.table.DeleteSoon(l.keys[0])
		l.keys = l.keys[1:]
	}
}

// all returns the stored turns.
func (l *Log) all() (all []Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.table.All() {
		all = append(all, t)
	}
	return all
}
