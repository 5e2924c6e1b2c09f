package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/limit"
)

// session is a session of the agent. It serves one conversation, one turn at a time.
type session struct {
	conn    *conn
	opened  chan struct{} // closed when id or err is set
	id      string
	err     error // why the agent did not open the session
	created time.Time

	// The following are guarded by the lock conversation.turn.
	used       time.Time // time of the latest use
	turns      int       // number of turns so far
	introduced bool      // whether the preamble was sent

	// The following are guarded by conn.mu.
	inbox    *inbox        // inbox of the running turn; nil between turns
	draining chan struct{} // closed when the agent has responded to a cancelled prompt; nil if there is no such prompt
	dropped  bool          // whether drop was called before the session was opened

	endpoint  ToolEndpoint // serves the session's tools; nil if it has none
	closeOnce sync.Once    // closes endpoint
}

// requestSession requests a new session from the agent, and does not wait for the response.
func (c *conn) requestSession(dir string, endpoint ToolEndpoint, now time.Time) (*session, error) {
	s := &session{conn: c, opened: make(chan struct{}), created: now, used: now, endpoint: endpoint}
	params := map[string]any{"cwd": dir, "mcpServers": s.mcpServers()}
	if c.old {
		params = map[string]any{"working_directory": dir}
	}
	err := c.call("session/new", params, func(result json.RawMessage, err error) {
		defer close(s.opened)
		if s.err = err; err == nil {
			s.err = c.addSession(s, result)
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

// addSession handles the result of session/new: it sets the ID of s and adds s to the
// sessions of c. If s was dropped before the response came, it closes s instead.
func (c *conn) addSession(s *session, result json.RawMessage) error {
	var r sessionID
	if json.Unmarshal(result, &r) != nil || r.id() == "" || len(r.id()) > limit.Session {
		return errors.New("it opened a session without an id")
	}
	c.mu.Lock()
	s.id = r.id()
	duplicate := c.sessions[s.id] != nil
	if !duplicate && !s.dropped {
		c.sessions[s.id] = s
	}
	dropped := s.dropped
	c.mu.Unlock()
	switch {
	case duplicate:
		return errors.New("it opened the same session twice")
	case dropped:
		c.closeSession(s)
	}
	return nil
}

// drop removes a session from c, and closes it if the agent supports that. A session that
// is still being opened is closed once it is open.
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
	c.closeSession(s)
}

// closeSession asks the agent to close a session, if the agent supports that.
func (c *conn) closeSession(s *session) {
	ignore := func(json.RawMessage, error) {}
	switch {
	case c.old:
		_ = c.call("session/stop", map[string]any{"session_id": s.id}, ignore)
	case c.canClose:
		_ = c.call("session/close", map[string]any{"sessionId": s.id}, ignore)
	}
}

// prompt starts a turn with these texts and pictures. The inbox receives all events of the
// turn, including its end. The error is the reason for the end of the connection.
func (c *conn) prompt(s *session, texts []string, pictures ...device.Picture) (*inbox, error) {
	blocks := make([]map[string]any, 0, len(texts))
	for _, t := range texts {
		blocks = append(blocks, map[string]any{"type": "text", "text": t})
	}
	for _, p := range pictures {
		blocks = append(blocks, map[string]any{"type": "image", "mimeType": p.Type, "data": p.Data}) // Data is marshalled as base64
	}
	params := map[string]any{"sessionId": s.id, "prompt": blocks}
	if c.old {
		params = map[string]any{"sessionId": s.id, "session_id": s.id, "prompt": strings.Join(texts, "\n\n")}
	}
	in := newInbox()
	c.mu.Lock()
	s.inbox = in
	c.mu.Unlock()
	return in, c.call("session/prompt", params, func(result json.RawMessage, err error) {
		c.endPrompt(s, in)
		end := ended{err: err}
		if err == nil {
			end = parseEnded(result)
		}
		in.enqueue(end)
	})
}

// endPrompt handles the response to the prompt whose events went to in. If the agent has
// ignored a cancel and no turn runs any more, endPrompt closes the connection.
func (c *conn) endPrompt(s *session, in *inbox) {
	c.mu.Lock()
	if s.inbox == in {
		s.inbox = nil
	}
	draining := s.draining
	s.draining = nil
	stop := c.ignored && !c.isBusyLocked()
	c.mu.Unlock()
	if draining != nil {
		close(draining)
	}
	if stop {
		c.shutdown(errIgnoredCancel)
	}
}

// isBusy reports whether a turn runs on the connection.
func (c *conn) isBusy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isBusyLocked()
}

// isBusyLocked is isBusy for callers that hold mu.
func (c *conn) isBusyLocked() bool {
	for _, s := range c.sessions {
		if s.inbox != nil {
			return true
		}
	}
	return false
}

// errIgnoredCancel is the reason for closing the connection to an agent that ignored a
// cancel.
var errIgnoredCancel = fmt.Errorf("%w: the agent did not stop when it was cancelled", agent.ErrAway)

// cancel ends a turn early, without waiting. It notifies the agent, and responds
// "cancelled" to the open requests for permission, as the protocol requires: to pending,
// unless it is nil, and to the requests in the inbox. The session can be used again after
// the response to the prompt. If no response comes within grace, abandon is called.
func (c *conn) cancel(s *session, in *inbox, grace time.Duration, pending *permission) {
	c.mu.Lock()
	running := s.inbox == in && c.endErr == nil
	draining := make(chan struct{})
	if running {
		s.inbox, s.draining = nil, draining
	}
	c.mu.Unlock()
	if running {
		key := "sessionId"
		if c.old {
			key = "session_id"
		}
		c.send(message{Method: "session/cancel", Params: encode(map[string]any{key: s.id})})
	}
	if pending != nil {
		c.sendDecision(*pending, cancelled)
	}
	for _, p := range in.close() {
		c.sendDecision(p, cancelled)
	}
	if running {
		time.AfterFunc(grace, func() {
			select {
			case <-draining:
			default:
				c.abandon(s)
			}
		})
	}
}

// abandon drops a session whose agent ignored a cancel. It closes the connection as soon
// as no turn runs, so that the agent does not continue the cancelled work.
func (c *conn) abandon(s *session) {
	c.drop(s)
	c.mu.Lock()
	c.ignored = true
	idle := !c.isBusyLocked()
	c.mu.Unlock()
	if idle {
		c.shutdown(errIgnoredCancel)
	}
}

// drained returns a channel that is closed when the agent has responded to a cancelled
// prompt, or nil if there is no cancelled prompt without a response.
func (s *session) drained() <-chan struct{} {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.draining
}
