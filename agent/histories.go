package agent

import (
	"iter"
	"slices"
	"time"

	"perch/limit"
)

// Conversation is a stored conversation: its latest exchanges, oldest first.
type Conversation struct {
	Exchanges []Exchange `json:"exchanges"`
	Used      time.Time  `json:"used"`
}

// conversations stores conversations. Delete is durable when it returns.
type conversations interface {
	PutSoon(key string, c Conversation)
	DeleteSoon(key string)
	Delete(key string) error
	All() iter.Seq2[string, Conversation]
}

// Restore restores the conversations of a table, and from now on stores new exchanges
// there, within seconds. It must be called before the first turn.
func (m *Mind) Restore(table conversations) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table = table
	for id, c := range table.All() {
		restored := newConversation(id)
		restored.history, restored.used, restored.stored = latest(c.Exchanges), c.Used, true
		m.conversations[id] = restored
	}
	for len(m.conversations) > mostConversations {
		m.evict()
	}
}

// store stores a conversation, unless it is a stranger's or its id is too long: such a
// one lasts as long as this run. The caller holds m.mu.
func (m *Mind) store(id string, c *conversation) {
	if m.table == nil || c.stranger || id == "" || len(id) > limit.Session {
		return
	}
	m.table.PutSoon(id, Conversation{Exchanges: c.history, Used: c.used})
	c.stored = true
}

// latest returns the part of a history that is retained.
func latest(all []Exchange) []Exchange {
	from, left := len(all), limit.Instructions
	for from > 0 && len(all)-from < mostHistory {
		e := all[from-1]
		if left -= len(e.Heard) + len(e.Said); left < 0 {
			break
		}
		from--
	}
	return slices.Clone(all[from:])
}
