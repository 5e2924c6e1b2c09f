package openclaw

import (
	"container/list"
	"sync"

	"perch/device"
)

// mostOnce bounds the idempotency keys that are known.
const mostOnce = 1000

// chats are the texts that clients have sent. A text that is sent again under the same
// key, also by another connection, is not answered again.
type chats struct {
	mu    sync.Mutex
	asked map[string]asked // by session
	once  map[string]*list.Element
	order list.List // of *sent, the oldest first
}

// asked is how a client names a session, and the run of its latest text.
// latest.
type asked struct{ key, run string }

// sent is a text's idempotency key and its status.
type sent struct{ key, status string }

// The gateway's words for what has become of a text.
const (
	started  = "started"
	inFlight = "in_flight"
	done     = "ok"
	unsaid   = "error"
)

func newChats() chats { return chats{asked: map[string]asked{}, once: map[string]*list.Element{}} }

// name is a session's key and the id of the run that begins in it: those of the client
// that has sent a text to it. The run is empty for one that no text has begun, as where the
// latest text's run was told already.
func (c *chats) name(session string, robot device.ID, told string) (key, run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, is := c.asked[session]
	switch {
	case !is || robot != "":
		return keyOf(session, robot), ""
	case a.run == told:
		return a.key, ""
	}
	return a.key, a.run
}

// start records a text under its key. It returns the status of a known text, and else started.
func (c *chats) start(session, key, once string) (status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.once[once]; e != nil {
		return e.Value.(*sent).status
	}
	if len(c.once) >= mostOnce {
		oldest := c.order.Front()
		c.order.Remove(oldest)
		delete(c.once, oldest.Value.(*sent).key)
	}
	c.once[once] = c.order.PushBack(&sent{once, inFlight})
	for known := range c.asked {
		if len(c.asked) < mostSessions {
			break
		}
		delete(c.asked, known) // whichever: its key is then that of all other sessions
	}
	c.asked[session] = asked{key, once}
	return started
}

// finish records the status of a text. With an empty status it may be sent again.
func (c *chats) finish(once, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.once[once]
	switch {
	case e == nil: // it has given way to others
	case status == "":
		c.order.Remove(e)
		delete(c.once, once)
	default:
		e.Value.(*sent).status = status
	}
}
