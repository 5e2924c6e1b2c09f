package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/limit"
	"perch/plain"
)

// conversation holds the agent's session for a conversation of package agent. Check uses the
// conversation with the ID "", and each call of DescribeImage uses a new conversation.
type conversation struct {
	turn chan struct{} // lock of capacity 1: holds an element while a turn runs

	// The following are guarded by Brain.mu.
	session   *session  // nil if none exists yet
	users     int       // turns that run or wait for the lock
	used      time.Time // time of the latest turn
	forgotten bool      // whether Forget was called while the conversation had users
}

// beginTurn waits until no other turn of the conversation with this ID runs, and begins a
// turn, which endTurn ends. While the turn runs, acquire does not remove the conversation.
func (b *Brain) beginTurn(ctx context.Context, id string) (*conversation, error) {
	conv, err := b.acquire(id)
	if err != nil {
		return nil, err
	}
	select {
	case conv.turn <- struct{}{}:
		return conv, nil
	case <-ctx.Done():
		b.release(conv)
		return nil, ctx.Err()
	}
}

// acquire adds a user to the conversation with this ID, which it creates if necessary. If
// there are too many conversations, it removes the conversation that has been unused for
// longest, or fails if all conversations have users.
func (b *Brain) acquire(id string) (*conversation, error) {
	var oldest *conversation
	defer func() {
		if oldest != nil {
			b.discard(oldest) // after mu has been released
		}
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	conv, ok := b.conversations[id]
	if !ok {
		if len(b.conversations) >= limit.Talks {
			if oldest = b.removeOldest(); oldest == nil {
				return nil, fmt.Errorf("%w: it is in %d conversations already", agent.ErrAway, limit.Talks)
			}
		}
		conv = &conversation{turn: make(chan struct{}, 1)}
		b.conversations[id] = conv
	}
	conv.users++
	conv.used = b.o.Now()
	return conv, nil
}

// endTurn ends a turn that beginTurn began.
func (b *Brain) endTurn(conv *conversation) {
	<-conv.turn
	b.release(conv)
}

// release removes a user that acquire added.
func (b *Brain) release(conv *conversation) {
	b.mu.Lock()
	conv.users--
	unused := conv.forgotten && conv.users == 0
	b.mu.Unlock()
	if unused {
		b.discard(conv)
	}
}

// Forget makes the next turn of the conversation with this ID start a new session. A
// running turn is not affected.
func (b *Brain) Forget(id string) {
	b.mu.Lock()
	conv, ok := b.conversations[id]
	if !ok {
		b.mu.Unlock()
		return
	}
	delete(b.conversations, id)
	conv.forgotten = true
	unused := conv.users == 0
	b.mu.Unlock()
	if unused {
		b.discard(conv)
	}
}

// removeOldest removes the conversation without users that has been unused for longest, and
// returns it, or nil if all have users. The caller holds mu.
func (b *Brain) removeOldest() *conversation {
	oldest := limit.First(b.conversations, func(x, y *conversation) int { return cmp.Or(min(x.users, 1)-min(y.users, 1), x.used.Compare(y.used)) })
	conv := b.conversations[oldest]
	if conv.users > 0 {
		return nil
	}
	delete(b.conversations, oldest)
	return conv
}

// openSession returns an open session for a turn of a conversation: the conversation's
// session if it is fresh, else a new one. It makes the turn's tools available.
func (b *Brain) openSession(ctx context.Context, conv *conversation, tools *thinker.TurnTools) (*session, error) {
	c, err := b.runningConn(ctx)
	if err != nil {
		return nil, err
	}
	if s := b.sessionOf(conv); s != nil {
		if drained := s.drained(); drained != nil {
			select {
			case <-drained:
			case <-s.conn.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(b.o.Grace):
			}
		}
		if s.conn == c && c.err() == nil && b.isFresh(s) && s.drained() == nil {
			if s.endpoint != nil {
				s.endpoint.StartTurn(ctx, tools)
			}
			return b.waitOpened(ctx, conv, s)
		}
		b.discard(conv)
		if c, err = b.runningConn(ctx); err != nil {
			return nil, err
		}
	}
	s, err := c.requestSession(b.o.Dir, b.newEndpoint(ctx, c, tools), b.o.Now())
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	conv.session = s
	b.mu.Unlock()
	return b.waitOpened(ctx, conv, s)
}

// sessionOf returns the session of a conversation, or nil.
func (b *Brain) sessionOf(conv *conversation) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return conv.session
}

// isFresh reports whether a session may be used for another turn.
func (b *Brain) isFresh(s *session) bool {
	now := b.o.Now()
	return s.turns < b.o.Turns && now.Sub(s.used) < b.o.Idle && now.Sub(s.created) < b.o.Age
}

// discard drops the session of a conversation, if it has one.
func (b *Brain) discard(conv *conversation) {
	b.mu.Lock()
	s := conv.session
	conv.session = nil
	b.mu.Unlock()
	if s != nil {
		s.conn.drop(s)
	}
}

// waitOpened waits until the session s of the conversation conv is open. If the agent fails
// to open the session within Options.Start, waitOpened stops the agent unless a turn runs,
// because a new process may succeed, for example after a login.
func (b *Brain) waitOpened(ctx context.Context, conv *conversation, s *session) (*session, error) {
	var err error
	select {
	case <-ctx.Done():
		return nil, ctx.Err() // the next turn can use the session
	case <-time.After(b.o.Start):
		err = fmt.Errorf("%w: %s opened no session in %v", agent.ErrAway, b.name(), b.o.Start)
	case <-s.opened:
		switch endErr := s.conn.err(); {
		case s.err == nil:
			return s, nil
		case endErr != nil:
			err = endErr
		case needsLogin(s.err):
			err = b.newLoginError()
		default:
			err = fmt.Errorf("%w: %s opens no session: %s", agent.ErrAway, b.name(), b.redact(s.err.Error(), limit.Name))
		}
	}
	b.discard(conv)
	if !s.conn.isBusy() {
		s.conn.shutdown(err)
	}
	return nil, err
}

// newLoginError returns the error of an agent that needs a login.
func (b *Brain) newLoginError() error {
	return fmt.Errorf("%w: %s needs a login; run it once by hand as the user of the appliance, or put its key into env", agent.ErrAway, b.name())
}

// needsLogin reports whether err says that the agent needs a login. It checks the message
// too, because agents use the same code for other errors.
func needsLogin(err error) bool {
	var e *rpcError
	if !errors.As(err, &e) || e.Code != codeAgent {
		return false
	}
	words := []string{"auth", "login", "log in", "logged in", "sign in", "api key", "api_key", "apikey", "credential"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(e.Message), word) })
}

// errSessionLost means that the agent no longer knows the session, and that the turn had no
// effect yet, so that it can be repeated.
var errSessionLost = errors.New("the session no longer exists")

// promptError returns the error of a turn. failure is the error in the agent's response to
// the prompt, and began tells whether the turn has had an effect. If the agent needs a
// login, promptError stores the error for Check and closes the connection.
func (b *Brain) promptError(s *session, failure error, began bool) error {
	if err := s.conn.err(); err != nil {
		return err
	}
	text := strings.ToLower(failure.Error())
	if !began && strings.Contains(text, "session") && strings.Contains(text, "not found") {
		return fmt.Errorf("%w: %s: %w", agent.ErrAway, b.name(), errSessionLost)
	}
	if needsLogin(failure) {
		err := b.newLoginError()
		b.mu.Lock()
		b.loginErr = err
		b.mu.Unlock()
		s.conn.shutdown(err)
		return err
	}
	return fmt.Errorf("%w: %s could not answer: %s", agent.ErrAway, b.name(), b.redact(failure.Error(), limit.Name))
}

// promptTexts returns the texts of the prompt for a turn: what the person said, preceded in
// the first turn of a session by the preamble and the latest exchanges. It counts the turn
// in s.
func (b *Brain) promptTexts(s *session, t agent.Turn) []string {
	s.turns++
	s.used = b.o.Now()
	if s.introduced {
		return []string{plain.Clip(t.Text, limit.Body)}
	}
	s.introduced = true
	return []string{preamble() + turnContext(t), plain.Clip(t.Text, limit.Body)}
}

// Limits of the history that a new session receives.
const (
	maxHistory  = 4   // exchanges
	maxSideText = 300 // bytes of what the person said in an exchange, and of what the agent said
)

// turnContext returns the turn's language and latest exchanges as text for a new session.
func turnContext(t agent.Turn) string {
	var b strings.Builder
	if t.Language != "" {
		fmt.Fprintf(&b, " Answer in the language %q.", plain.Clip(t.Language, 35)) // RFC 5646 advises room for 35 bytes
	}
	history := t.History[max(0, len(t.History)-maxHistory):]
	if len(history) > 0 {
		b.WriteString("\n\nWhat was said before:")
	}
	for _, e := range history {
		fmt.Fprintf(&b, "\nthey: %s\nyou: %s", plain.Clip(e.Heard, maxSideText), plain.Clip(e.Said, maxSideText))
	}
	return b.String()
}

// preamble returns the instructions that an agent receives once per session.
func preamble() string {
	var faces strings.Builder
	for _, e := range agent.OfferedEmotions() {
		faces.WriteString(e.Emoji)
	}
	return "You are talking with people through a small robot, which speaks your answers aloud. " +
		"Begin each answer with exactly one of these emoji, for the robot's face: " + faces.String() + " " +
		"Then answer in a few short spoken sentences: no Markdown, no lists, no code, no links."
}
