package assist

import (
	"sync"
	"time"

	"perch/limit"
)

// maxIdle is how long Home Assistant stores a conversation that is not used.
const maxIdle = 5 * time.Minute

// conversations maps conversation IDs of Perch to conversation IDs of Home Assistant.
type conversations struct {
	now func() time.Time

	mu   sync.Mutex
	byID map[string]conversation // key: conversation ID of Perch
}

// conversation is a conversation of Home Assistant.
type conversation struct {
	hassID string
	used   time.Time // time of the latest turn
}

// hassID returns Home Assistant's ID of a conversation, or "" if Home Assistant has to
// start a new conversation.
func (c *conversations) hassID(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.byID[id]
	if c.now().Sub(k.used) >= maxIdle {
		delete(c.byID, id)
		return ""
	}
	return k.hassID
}

// store stores Home Assistant's ID of a conversation after a turn. hassID may differ from the
// ID before the turn, if Home Assistant no longer knew the earlier ID. If hassID is empty or
// too long, store removes the conversation.
func (c *conversations) store(id, hassID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hassID == "" || len(hassID) > limit.Name {
		delete(c.byID, id)
		return
	}
	if _, ok := c.byID[id]; !ok && len(c.byID) >= limit.Talks {
		delete(c.byID, limit.First(c.byID, func(a, b conversation) int { return a.used.Compare(b.used) }))
	}
	c.byID[id] = conversation{hassID, c.now()}
}

// forget removes the ID of a conversation.
func (c *conversations) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}
