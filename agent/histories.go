package agent

import (
	"iter"
	"slices"
	"sync"
	"time"

	"perch/limit"
)

// Conversation is a stored conversation: its latest exchanges, oldest first.
type Conversation struct {
	Exchanges []Exchange `json:"exchanges"`
	Used      time.Time  `json:"used"`
}

// conversations stores histories. Delete is durable when it returns.
type conversations interface {
	PutSoon(key string, c Conversation)
	DeleteSoon(key string)
	Delete(key string) error
	All() iter.Seq2[string, Conversation]
}

// Histories stores conversations across restarts. A new exchange is on the disk
// within seconds. Its methods may be called from any goroutine.
type Histories struct {
	table conversations
	mu    sync.Mutex
	ids   map[string]bool // of the stored conversations
}

// NewHistories returns the histories stored in a table.
func NewHistories(kept conversations) *Histories {
	return &Histories{table: kept, ids: map[string]bool{}}
}

// load returns the stored conversations, and deletes the oldest above the bound.
func (h *Histories) load() map[string]Conversation {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]Conversation{}
	var ids []string
	for id, c := range h.table.All() {
		c.Exchanges = latest(c.Exchanges)
		all[id] = c
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return all[b].Used.Compare(all[a].Used) })
	for i, id := range ids {
		if i >= mostConversations {
			delete(all, id)
			h.table.DeleteSoon(id)
			continue
		}
		h.ids[id] = true
	}
	return all
}

// store stores a conversation as it is now.
func (h *Histories) store(id string, c Conversation) {
	if id == "" || len(id) > limit.Session {
		return // an unstorable conversation lasts as long as this run
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids[id] = true
	h.table.PutSoon(id, c)
}

// drop deletes a conversation soon.
func (h *Histories) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ids[id] {
		delete(h.ids, id)
		h.table.DeleteSoon(id)
	}
}

// forget deletes a conversation durably.
func (h *Histories) forget(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ids[id] {
		return nil
	}
	if err := h.table.Delete(id); err != nil {
		return err
	}
	delete(h.ids, id)
	return nil
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
