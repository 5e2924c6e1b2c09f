package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// GoingAway is the reason that peers receive when the appliance stops.
const GoingAway = "the appliance is stopping"

// Serving limits the number of long-lived connections, such as WebSockets, and ends them when the appliance
// stops.
type Serving struct {
	plural              string // what error messages call the connected programs, in the plural, such as "clients"
	maxTotal, maxOfPeer int
	limit               *ConnectionLimit
	ctx                 context.Context // ends when Run stops the connections
	cancel              context.CancelFunc

	mu   sync.Mutex // excludes Enter while Run cancels ctx
	open sync.WaitGroup
}

// NewServing returns a Serving for maxTotal connections, and maxOfPeer from each peer (see PeerOf). plural is
// what error messages call the connected programs, such as "clients".
func NewServing(plural string, maxTotal, maxOfPeer int) *Serving {
	s := &Serving{plural: plural, maxTotal: maxTotal, maxOfPeer: maxOfPeer, limit: NewConnectionLimit(maxTotal, maxOfPeer)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Enter counts the connection of a request until leave is called; calling leave again does nothing. The
// caller must end the connection when the returned context ends. Enter returns a *Fault with status 503 if
// there are too many connections, or if the appliance is stopping.
func (s *Serving) Enter(r *http.Request) (ctx context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, nil, &Fault{Word: "stopping", Sentence: GoingAway, HTTP: http.StatusServiceUnavailable}
	}
	release, err := s.limit.Acquire(PeerOf(r.RemoteAddr))
	if err != nil {
		limit, from := s.maxTotal, ""
		if errors.Is(err, ErrTooManyOfPeer) {
			limit, from = s.maxOfPeer, " from this address"
		}
		return nil, nil, &Fault{Word: "too_many_" + s.plural, HTTP: http.StatusServiceUnavailable,
			Sentence: fmt.Sprintf("%d %s are connected%s, and that is the limit; close some", limit, s.plural, from)}
	}
	s.open.Add(1)
	ctx, cancel := context.WithCancel(s.ctx)
	unbind := func() bool { return true }
	if key, bound := r.Context().Value(boundTo{}).(context.Context); bound {
		unbind = context.AfterFunc(key, cancel)
	}
	return ctx, sync.OnceFunc(func() {
		unbind()
		cancel()
		release()
		s.open.Done()
	}), nil
}

// Connected returns the number of open connections.
func (s *Serving) Connected() int {
	open, _ := s.limit.Open()
	return open
}

// Run waits until ctx ends. It then ends the contexts of all connections, and waits for their leave functions.
func (s *Serving) Run(ctx context.Context) {
	<-ctx.Done()
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.open.Wait()
}
