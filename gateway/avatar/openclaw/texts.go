package openclaw

import (
	"sync"

	"perch/device"
	"perch/limit"
)

// mostSent bounds the remembered texts.
const mostSent = 1000

// chats remembers the texts that clients have sent. A text repeated under its idempotency
// key, on any connection, is not answered again.
type chats struct {
	mu    sync.Mutex
	asked map[string]asked // by session
	sent  map[string]*sent // by idempotency key
	count int              // of all texts so far
}

// asked is a client's key of a session, and the run of its latest text.
type asked struct{ key, run string }

// sent is the state of a text.
type sent struct {
	status string
	nth    int // of all texts
}

// The gateway's words for the state of a text.
const (
	started  = "started"
	inFlight = "in_flight"
	done     = "ok"
	unsaid   = "error"
)

func newChats() chats { return chats{asked: map[string]asked{}, sent: map[string]*sent{}} }

// name returns the key of a session, as the client that chats in it calls it, and the id of
// the run that begins in it. The id is empty unless the run belongs to a client's text other
// than the text of the run last.
func (c *chats) name(session string, robot device.ID, last string) (key, run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, is := c.asked[session]
	switch {
	case !is || robot != "":
		return keyOf(session, robot), ""
	case a.run == last:
		return a.key, ""
	}
	return a.key, a.run
}

// start records a text under its idempotency key. It returns started, or the status of a text
// that is already known.
func (c *chats) start(session, key, once string) (status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.sent[once]; known != nil {
		return known.status
	}
	if len(c.sent) >= mostSent {
		delete(c.sent, limit.First(c.sent, func(a, b *sent) int { return a.nth - b.nth }))
	}
	c.count++
	c.sent[once] = &sent{inFlight, c.count}
	for known := range c.asked {
		if len(c.asked) < mostSessions {
			break
		}
		delete(c.asked, known) // any of them: it gets the key of keyOf again
	}
	c.asked[session] = asked{key, once}
	return started
}

// finish records the status of a text. With an empty status it may be sent again.
func (c *chats) finish(once, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.sent[once]
	switch {
	case text == nil: // dropped for later ones
	case status == "":
		delete(c.sent, once)
	default:
		text.status = status
	}
}
