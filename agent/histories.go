package agent

import (
	"iter"
	"slices"
	"time"

	"perch/limit"
)

// Conversation is a conversation as it is stored on disk.
type Conversation struct {
	Exchanges []Exchange `json:"exchanges"` // the latest ones, oldest first
	Used      time.Time  `json:"used"`      // time of the latest turn
}

// conversations is a table of conversations on disk; the key is the conversation ID. PutSoon
// and DeleteSoon queue the change, and wait for the disk only if the queue is full. Delete returns when the deletion is durable.
type conversations interface {
	PutSoon(key string, c Conversation)
	DeleteSoon(key string)
	Delete(key string) error
	All() iter.Seq2[string, Conversation]
}

// Restore reads the conversations of a table, deletes those beyond maxConversations, and
// makes m write new exchanges to the table within seconds. It must be called before the
// first turn.
func (m *Mind) Restore(table conversations) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table = table
	for id, c := range table.All() {
		restored := newConversation(id)
		restored.history, restored.used, restored.stored = latest(c.Exchanges), c.Used, true
		m.conversations[id] = restored
	}
	for len(m.conversations) > maxConversations {
		m.evict()
	}
}

// store writes a conversation to the table, if there is a table. It does not store the
// conversation of a stranger, or one whose ID is empty or longer than limit.Session bytes.
// The caller holds m.mu.
func (m *Mind) store(id string, c *conversation) {
	if m.table == nil || c.stranger || id == "" || len(id) > limit.Session {
		return
	}
	m.table.PutSoon(id, Conversation{Exchanges: c.history, Used: c.used})
	c.stored = true
}

// latest returns the latest exchanges of a history: at most maxHistory exchanges, with at
// most limit.Instructions bytes of text.
func latest(history []Exchange) []Exchange {
	from, left := len(history), limit.Instructions
	for from > 0 && len(history)-from < maxHistory {
		e := history[from-1]
		if left -= len(e.Heard) + len(e.Said); left < 0 {
			break
		}
		from--
	}
	return slices.Clone(history[from:])
}
