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

// Serving are the connections that go on after their request: how many there may be, and
// how they end.
type Serving struct {
	what         string // the word for several, such as "clients"
	most, ofPeer int
	limit        *ConnectionLimit
	ctx          context.Context // ends with Run
	cancel       context.CancelFunc

	mu  sync.Mutex // of what begins and the end
	all sync.WaitGroup
}

// NewServing serves so many connections in all, and so many of them from one address.
// What is the word for them in an error.
func NewServing(what string, most, mostOfPeer int) *Serving {
	s := &Serving{what: what, most: most, ofPeer: mostOfPeer, limit: NewConnectionLimit(most, mostOfPeer)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Enter counts the connection that a request goes on as until leave is called, which may be
// called again. The connection has to end with ctx. It returns a *Fault, with status 503,
// where there are too many, or none are served any more.
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

// Connected is how many connections there are.
func (s *Serving) Connected() int {
	open, _ := s.limit.Open()
	return open
}

// Run lets connections begin until ctx ends, ends all, and returns when they have left.
func (s *Serving) Run(ctx context.Context) {
	<-ctx.Done()
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.all.Wait()
}
