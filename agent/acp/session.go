package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/limit"
)

// session is a session of the agent. The turns of its conversation use it one at a time.
type session struct {
	conn   *conn
	opened chan struct{} // closed when id or err is known
	id     string
	err    error
	begun  time.Time

	used       time.Time // this and the next two belong to the current turn
	turns      int
	introduced bool // the preamble was sent

	inbox    *inbox        // of the running turn; this and the next are guarded by conn.mu
	draining chan struct{} // a cancelled prompt; closed when it has been answered
	dropped  bool          // dropped before it was opened

	endpoint ToolEndpoint // through which it reaches its tools; nil if it has none
	voiding  sync.Once
}

// open requests a session without waiting for it. If the turn is cancelled first, the
// next turn uses it.
func (c *conn) open(dir string, endpoint ToolEndpoint, now time.Time) (*session, error) {
	s := &session{conn: c, opened: make(chan struct{}), begun: now, used: now, endpoint: endpoint}
	params := map[string]any{"cwd": dir, "mcpServers": s.servers()}
	if c.old {
		params = map[string]any{"working_directory": dir}
	}
	err := c.call("session/new", params, func(result json.RawMessage, err error) {
		defer close(s.opened)
		if s.err = err; err == nil {
			s.err = c.admit(s, result)
		}
		if s.err != nil {
			s.closeEndpoint()
		}
	})
	if err != nil {
		s.closeEndpoint()
	}
	return s, err
}

func (c *conn) admit(s *session, result json.RawMessage) error {
	var r sessionID
	if json.Unmarshal(result, &r) != nil || r.id() == "" || len(r.id()) > limit.Session {
		return errors.New("it opened a session without an id")
	}
	c.mu.Lock()
	s.id = r.id()
	known := c.sessions[s.id] != nil
	if !known && !s.dropped {
		c.sessions[s.id] = s
	}
	dropped := s.dropped
	c.mu.Unlock()
	switch {
	case known:
		return errors.New("it opened the same session twice")
	case dropped:
		c.shut(s)
	}
	return nil
}

// drop forgets a session, and closes it at the agent if the agent supports that.
func (c *conn) drop(s *session) {
	s.closeEndpoint()
	c.mu.Lock()
	if s.id == "" || c.sessions[s.id] != s {
		s.dropped = true
		c.mu.Unlock()
		return
	}
	delete(c.sessions, s.id)
	c.mu.Unlock()
	c.shut(s)
}

func (c *conn) shut(s *session) {
	ignore := func(json.RawMessage, error) {}
	switch {
	case c.old:
		_ = c.call("session/stop", map[string]any{"session_id": s.id}, ignore)
	case c.closes:
		_ = c.call("session/close", map[string]any{"sessionId": s.id}, ignore)
	}
}

// prompt starts a turn. All its events, including its end, go to the inbox.
func (c *conn) prompt(s *session, words []string) (*inbox, error) {
	blocks := make([]map[string]any, 0, len(words))
	for _, w := range words {
		blocks = append(blocks, map[string]any{"type": "text", "text": w})
	}
	params := map[string]any{"sessionId": s.id, "prompt": blocks}
	if c.old {
		params = map[string]any{"sessionId": s.id, "session_id": s.id, "prompt": strings.Join(words, "\n\n")}
	}
	in := newInbox()
	c.mu.Lock()
	s.inbox = in
	c.mu.Unlock()
	return in, c.call("session/prompt", params, func(result json.RawMessage, err error) {
		c.answeredPrompt(s, in)
		end := ended{err: err}
		if err == nil {
			end = parseEnded(result)
		}
		in.enqueue(end)
	})
}

func (c *conn) answeredPrompt(s *session, in *inbox) {
	c.mu.Lock()
	if s.inbox == in {
		s.inbox = nil
	}
	drained := s.draining
	s.draining = nil
	last := c.ignored && !c.busy()
	c.mu.Unlock()
	if drained != nil {
		close(drained)
	}
	if last {
		c.shutdown(errIgnoredCancel)
	}
}

func (c *conn) inUse() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy()
}

// busy reports whether a turn runs. The caller holds the lock.
func (c *conn) busy() bool {
	for _, s := range c.sessions {
		if s.inbox != nil {
			return true
		}
	}
	return false
}

// errIgnoredCancel is the reason for stopping an agent that ignored a cancel.
var errIgnoredCancel = fmt.Errorf("%w: the agent did not stop when it was cancelled", agent.ErrAway)

// cancel ends a turn early: the agent is notified, and every open permission is
// answered as the protocol requires, including the one being asked. It does not
// block. The session can be used again once the prompt has been answered; if that
// takes longer than grace, the session is given up.
func (c *conn) cancel(s *session, in *inbox, grace time.Duration, asking *permission) {
	c.mu.Lock()
	running := s.inbox == in && c.over == nil
	drained := make(chan struct{})
	if running {
		s.inbox, s.draining = nil, drained
	}
	c.mu.Unlock()
	if running {
		spelling := "sessionId"
		if c.old {
			spelling = "session_id"
		}
		c.send(message{Method: "session/cancel", Params: encode(map[string]any{spelling: s.id})})
	}
	if asking != nil {
		c.answer(*asking, cancelled)
	}
	for _, p := range in.close() {
		c.answer(p, cancelled)
	}
	if running {
		time.AfterFunc(grace, func() {
			select {
			case <-drained:
			default:
				c.giveUp(s)
			}
		})
	}
}

// giveUp drops a session that did not stop, and stops the agent as soon as no other
// turn needs it, so that cancelled work does not continue unseen.
func (c *conn) giveUp(s *session) {
	c.drop(s)
	c.mu.Lock()
	c.ignored = true
	idle := !c.busy()
	c.mu.Unlock()
	if idle {
		c.shutdown(errIgnoredCancel)
	}
}

// drained is closed when a cancelled prompt has been answered or given up.
func (s *session) drained() <-chan struct{} {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.draining
}
