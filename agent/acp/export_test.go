package acp

// What the tests look at from outside.
var (
	ParseUpdate     = parseUpdate
	ParseEvent      = parseEvent
	ParsePermission = func(line []byte) { _, _ = parsePermission(message{Params: line}) }
)

// Take gives a connection lines, as if an agent had written them, and returns
// what it answers.
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

// Mute reports how long after a failure the agent is not started.
func (b *Brain) Mute() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retryAt.Sub(b.o.Now()).String()
}

// Running reports whether the agent's process is there and the connection
// stands.
func (b *Brain) Running() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.child != nil && b.child.conn.err() == nil
}

// Open is how many sessions are known to the agent's connection, how many of our requests
// have no answer yet, and how many events of the agent have not been handled.
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
