package acp

// Functions that the external tests call.
var (
	ParseUpdate     = parseUpdate
	ParseEvent      = parseEvent
	ParsePermission = func(line []byte) { _, _ = parsePermission(message{Params: line}) }
)

// Take passes lines to a new connection as the output of an agent, and returns the messages
// that the connection sends.
func Take(lines ...[]byte) (answers [][]byte) {
	c := newConn(silentLog(), func(error) {})
	for _, line := range lines {
		c.handleLine(line)
	}
	for {
		select {
		case line := <-c.out:
			answers = append(answers, line)
		default:
			c.shutdown(errClosed)
			return answers
		}
	}
}

// Mute returns the time until the agent may be started again after a failure.
func (b *Brain) Mute() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retryAt.Sub(b.o.Now()).String()
}

// Running reports whether the agent was started and the connection to it is open.
func (b *Brain) Running() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.child != nil && b.child.conn.err() == nil
}

// Open returns the number of sessions of the connection, of requests to the agent without a
// response, and of events of the agent that were not handled yet.
func (b *Brain) Open() (sessions, requests, events int) {
	b.mu.Lock()
	c := b.child.conn
	b.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if in := s.inbox; in != nil {
			in.mu.Lock()
			events += len(in.items)
			in.mu.Unlock()
		}
	}
	return len(c.sessions), len(c.pending), events
}
