package openclaw

import (
	"sync"

	"perch/device"
	"perch/limit"
)

// maxRecorded is the maximum number of recorded texts. If there are more, the oldest is dropped.
const maxRecorded = 1000

// texts records the texts that clients of all connections have sent. A text with the same idempotency
// key as a recorded text is not answered.
type texts struct {
	mu     sync.Mutex
	latest map[string]latestText  // key: session ID
	status map[string]*textStatus // key: idempotency key
	count  int                    // number of texts so far
}

// latestText describes the latest text in a session: the client's key of the session, and the
// ID of the run that answers the text.
type latestText struct{ key, run string }

type textStatus struct {
	status string
	nth    int // number of the text, from 1
}

// Values of textStatus.status, and of the status in responses, as in the gateway's responses.
const (
	statusStarted  = "started"
	statusInFlight = "in_flight"
	statusOK       = "ok"
	statusError    = "error"
)

func newTexts() texts {
	return texts{latest: map[string]latestText{}, status: map[string]*textStatus{}}
}

// nameRun implements runNamer.
func (t *texts) nameRun(session string, robot device.ID, last string) (key, run string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, ok := t.latest[session]
	switch {
	case !ok || robot != "":
		return sessionKey(session, robot), ""
	case text.run == last:
		return text.key, ""
	}
	return text.key, text.run
}

// start records a text. It returns statusStarted, or the status of the text that was already
// recorded with the same idempotency key.
func (t *texts) start(session, key, idempotencyKey string) (status string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if recorded := t.status[idempotencyKey]; recorded != nil {
		return recorded.status
	}
	if len(t.status) >= maxRecorded {
		delete(t.status, limit.First(t.status, func(a, b *textStatus) int { return a.nth - b.nth }))
	}
	t.count++
	t.status[idempotencyKey] = &textStatus{statusInFlight, t.count}
	for other := range t.latest {
		if len(t.latest) < maxSessions {
			break
		}
		delete(t.latest, other) // for a dropped session, nameRun returns the key from sessionKey
	}
	t.latest[session] = latestText{key, idempotencyKey}
	return statusStarted
}

// finish records the final status of a text. If status is empty, it removes the text, which
// can then be sent again.
func (t *texts) finish(idempotencyKey, status string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.status[idempotencyKey]
	switch {
	case text == nil: // dropped by start
	case status == "":
		delete(t.status, idempotencyKey)
	default:
		text.status = status
	}
}
