package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// GoingAway is the reason that a peer is sent when the appliance stops.
const GoingAway = "the appliance is stopping"

// Serving bounds the number of connections that go on after their request, and ends them.
type Serving struct {
	what         string // the word for several, such as "clients"
	most, ofPeer int
	limit        *ConnectionLimit
	ctx          context.Context // ends with Run
	cancel       context.CancelFunc

	mu  sync.Mutex // separates Enter and the end of Run
	all sync.WaitGroup
}

// NewServing returns a Serving for so many connections in all, and so many from one address.
// What is the word for them in an error.
func NewServing(what string, most, mostOfPeer int) *Serving {
	s := &Serving{what: what, most: most, ofPeer: mostOfPeer, limit: NewConnectionLimit(most, mostOfPeer)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Enter counts the connection of a request until leave is called, which may be called again. The
// connection must end with ctx. Enter returns a *Fault with status 503 if there are too many
// connections, or Run has ended.
func (s *Serving) Enter(r *http.Request) (ctx context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, nil, &Fault{Word: "stopping", Sentence: GoingAway, HTTP: http.StatusServiceUnavailable}
	}
	release, err := s.limit.Acquire(PeerOf(r.RemoteAddr))
	if err != nil {
		most, from := s.most, ""
		if errors.Is(err, ErrTooManyOfPeer) {
			most, from = s.ofPeer, " from this address"
		}
		return nil, nil, &Fault{Word: "too_many_" + s.what, HTTP: http.StatusServiceUnavailable,
			Sentence: fmt.Sprintf("%d %s are connected%s, and no more are let in; close some", most, s.what, from)}
	}
	s.all.Add(1)
	ctx, cancel := context.WithCancel(s.ctx)
	unbind := func() bool { return true }
	if key, bound := r.Context().Value(boundTo{}).(context.Context); bound {
		unbind = context.AfterFunc(key, cancel)
	}
	return ctx, sync.OnceFunc(func() {
		unbind()
		cancel()
		release()
		s.all.Done()
	}), nil
}

// Connected returns the number of connections.
func (s *Serving) Connected() int {
	open, _ := s.limit.Open()
	return open
}

// Run waits for the end of ctx, ends all connections, and returns when they have left.
func (s *Serving) Run(ctx context.Context) {
	<-ctx.Done()
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.all.Wait()
}
