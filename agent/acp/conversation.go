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

// talk is a conversation. Its turn is a lock that can be waited for.
type talk struct {
	turn      chan struct{}
	session   *session // this and the next are guarded by Brain.mu
	users     int
	used      time.Time
	forgotten bool // while in use
}

// enter waits for the turn of a conversation, which is not dropped until leave.
func (b *Brain) enter(ctx context.Context, id string) (*talk, error) {
	k, err := b.talkFor(id)
	if err != nil {
		return nil, err
	}
	select {
	case k.turn <- struct{}{}:
		return k, nil
	case <-ctx.Done():
		b.release(k)
		return nil, ctx.Err()
	}
}

func (b *Brain) talkFor(id string) (*talk, error) {
	var oldest *talk
	defer func() {
		if oldest != nil {
			b.discard(oldest) // it locks
		}
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	k, known := b.talks[id]
	if !known {
		if len(b.talks) >= limit.Talks {
			if oldest = b.dropOldest(); oldest == nil {
				return nil, fmt.Errorf("%w: it is in %d conversations already", agent.ErrAway, limit.Talks)
			}
		}
		k = &talk{turn: make(chan struct{}, 1)}
		b.talks[id] = k
	}
	k.users++
	k.used = b.o.Now()
	return k, nil
}

func (b *Brain) leave(k *talk) {
	<-k.turn
	b.release(k)
}

func (b *Brain) release(k *talk) {
	b.mu.Lock()
	k.users--
	over := k.forgotten && k.users == 0
	b.mu.Unlock()
	if over {
		b.discard(k)
	}
}

// Forget makes the next turn of a conversation start a new session. A running turn
// is not affected.
func (b *Brain) Forget(conversation string) {
	b.mu.Lock()
	k, known := b.talks[conversation]
	if !known {
		b.mu.Unlock()
		return
	}
	delete(b.talks, conversation)
	k.forgotten = true
	over := k.users == 0
	b.mu.Unlock()
	if over {
		b.discard(k)
	}
}

// dropOldest removes the oldest unused conversation and returns it, or nil. The caller
// holds the lock.
func (b *Brain) dropOldest() *talk {
	oldest := limit.First(b.talks, func(x, y *talk) int { return cmp.Or(min(x.users, 1)-min(y.users, 1), x.used.Compare(y.used)) })
	k := b.talks[oldest]
	if k.users > 0 {
		return nil // all are in use
	}
	delete(b.talks, oldest)
	return k
}

// session returns an open session for a conversation: its present one while that is
// fresh, the spare one, or a new one. The tools of its turn are available by then.
func (b *Brain) session(ctx context.Context, k *talk, tools *thinker.TurnTools) (*session, error) {
	c, err := b.running(ctx)
	if err != nil {
		return nil, err
	}
	if s := b.sessionOf(k); s != nil {
		if drained := s.drained(); drained != nil {
			select {
			case <-drained:
			case <-s.conn.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(b.o.Grace):
			}
		}
		if s.conn == c && c.why() == nil && b.fresh(s) && s.drained() == nil {
			if s.endpoint != nil {
				s.endpoint.StartTurn(ctx, tools)
			}
			return b.ready(ctx, k, s)
		}
		b.discard(k)
		if c, err = b.running(ctx); err != nil {
			return nil, err
		}
	}
	s := b.takeSpare(c)
	if s == nil {
		if s, err = c.open(b.o.Dir, b.endpoint(ctx, c, tools), b.o.Now()); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	k.session = s
	b.mu.Unlock()
	return b.ready(ctx, k, s)
}

func (b *Brain) sessionOf(k *talk) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return k.session
}

func (b *Brain) takeSpare(c *conn) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spare.session
	if s == nil || s.conn != c || !b.fresh(s) {
		return nil
	}
	b.spare.session = nil
	return s
}

// fresh reports whether a session may be used for another turn.
func (b *Brain) fresh(s *session) bool {
	now := b.o.Now()
	return s.turns < b.o.Turns && now.Sub(s.used) < b.o.Idle && now.Sub(s.begun) < b.o.Age
}

// discard drops a conversation's session.
func (b *Brain) discard(k *talk) {
	b.mu.Lock()
	s := k.session
	k.session = nil
	b.mu.Unlock()
	if s != nil {
		s.conn.drop(s)
	}
}

// ready waits until a conversation's session is open. An agent that fails to open one
// is stopped, unless it has other running turns: it may recover after a login or a
// restart.
func (b *Brain) ready(ctx context.Context, k *talk, s *session) (*session, error) {
	var err error
	select {
	case <-ctx.Done():
		return nil, ctx.Err() // the next turn uses it
	case <-time.After(b.o.Start):
		err = fmt.Errorf("%w: %s opened no session in %v", agent.ErrAway, b.name(), b.o.Start)
	case <-s.opened:
		switch over := s.conn.why(); {
		case s.err == nil:
			return s, nil
		case over != nil:
			err = over
		case needsLogin(s.err):
			err = b.login()
		default:
			err = fmt.Errorf("%w: %s opens no session: %s", agent.ErrAway, b.name(), b.redacted(s.err.Error(), limit.Name))
		}
	}
	b.discard(k)
	if !s.conn.inUse() {
		s.conn.shutdown(err)
	}
	return nil, err
}

func (b *Brain) login() error {
	return fmt.Errorf("%w: %s needs a login; run it once by hand as the user of the appliance, or put its key into env", agent.ErrAway, b.name())
}

// needsLogin also checks the message, because agents use the code for other errors too.
func needsLogin(err error) bool {
	var e *rpcError
	if !errors.As(err, &e) || e.Code != codeAgent {
		return false
	}
	words := []string{"auth", "login", "log in", "logged in", "sign in", "api key", "api_key", "apikey", "credential"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(e.Message), word) })
}

// errForgotten is returned if the agent does not know the session and has not yet
// sent anything of the turn.
var errForgotten = errors.New("the session is not known any more")

// refused handles a prompt that was answered by an error.
func (b *Brain) refused(s *session, failure error, began bool) error {
	if over := s.conn.why(); over != nil {
		return over
	}
	said := strings.ToLower(failure.Error())
	if !began && strings.Contains(said, "session") && strings.Contains(said, "not found") {
		return fmt.Errorf("%w: %s: %w", agent.ErrAway, b.name(), errForgotten)
	}
	if needsLogin(failure) {
		err := b.login()
		b.mu.Lock()
		b.loginErr = err
		b.mu.Unlock()
		s.conn.shutdown(err)
		return err
	}
	return fmt.Errorf("%w: %s could not answer: %s", agent.ErrAway, b.name(), b.redacted(failure.Error(), limit.Name))
}

// words returns the text to send: the preamble at the beginning of a session, and
// what was said.
func (b *Brain) words(s *session, t agent.Turn) []string {
	s.turns++
	s.used = b.o.Now()
	if s.introduced {
		return []string{plain.Clip(t.Text, limit.Body)}
	}
	s.introduced = true
	return []string{preamble() + recent(t), plain.Clip(t.Text, limit.Body)}
}

// Bounds of what is sent.
const (
	mostRecent   = 4   // exchanges that a new session receives
	mostExchange = 300 // bytes of each side
)

// recent returns the latest exchanges, so that a new session can continue an old one.
func recent(t agent.Turn) string {
	var to strings.Builder
	if t.Language != "" {
		fmt.Fprintf(&to, " Answer in the language %q.", plain.Clip(t.Language, 35))
	}
	history := t.History[max(0, len(t.History)-mostRecent):]
	if len(history) > 0 {
		to.WriteString("\n\nWhat was said before:")
	}
	for _, e := range history {
		fmt.Fprintf(&to, "\nthey: %s\nyou: %s", plain.Clip(e.Heard, mostExchange), plain.Clip(e.Said, mostExchange))
	}
	return to.String()
}

// preamble returns the text that an agent receives once per session.
func preamble() string {
	var faces strings.Builder
	for _, e := range agent.OfferedEmotions() {
		faces.WriteString(e.Emoji)
	}
	return "You are talking with people through a small robot, which speaks your answers aloud. " +
		"Begin each answer with exactly one of these emoji, for the robot's face: " + faces.String() + " " +
		"Then answer in a few short spoken sentences: no Markdown, no lists, no code, no links."
}
