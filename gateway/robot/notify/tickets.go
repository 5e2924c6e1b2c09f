package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"perch/gateway/httpserver"
)

// Path is where robots fetch streams, by the name of a ticket and ".ogg".
const Path = "/xiaozhi/notify/"

const (
	ticketLives = 2 * time.Minute
	fetchFirst  = 500 * time.Millisecond // after which a robot that does not fetch is notified again: it still plays
	fetchMost   = 10 * time.Second       // the same, if it does not for longer: it is busy otherwise
)

// ErrNotFetched is returned by Play if the robot has not fetched the sound.
var ErrNotFetched = errors.New("the robot has not fetched the sound")

// ErrCut is wrapped by Play if the robot has not played all of the sound.
var ErrCut = errors.New("the robot has broken off the sound")

// ErrNoTicket is returned by Serve for an unknown name.
var ErrNoTicket error = &httpserver.Fault{Word: "no_such_sound", HTTP: http.StatusNotFound,
	Sentence: "there is no sound under this address: it was fetched before, or it has waited for more than two minutes"}

// Tickets are the streams that robots may fetch, each once. The zero value has none.
type Tickets struct {
	mu   sync.Mutex
	open map[string]*ticket
}

// ticket is the right to fetch one stream.
type ticket struct {
	stream  *Stream
	ctx     context.Context // of the announcement
	fetched chan struct{}   // closed once the robot has come for it
	done    chan error      // with a slot for how that ended
}

// Play makes a robot fetch a stream: send notifies it of the stream's path, again and again until
// it comes. Play returns when the robot has played all of it.
func (t *Tickets) Play(ctx context.Context, s *Stream, send func(path string) error) error {
	name, issued := rand.Text(), &ticket{stream: s, ctx: ctx, fetched: make(chan struct{}), done: make(chan error, 1)}
	t.mu.Lock()
	if t.open == nil {
		t.open = map[string]*ticket{}
	}
	t.open[name] = issued
	t.mu.Unlock()
	defer t.withdraw(name)
	lives := time.After(ticketLives)
	for wait := fetchFirst; ; wait = min(2*wait, fetchMost) {
		if err := send(Path + name + ".ogg"); err != nil {
			return err
		}
		select {
		case <-issued.fetched:
			return issued.wait(ctx)
		case <-time.After(wait):
		case <-lives:
			return ErrNotFetched
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// withdraw removes a ticket and returns it, or nil if somebody else has it.
func (t *Tickets) withdraw(name string) *ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	withdrawn := t.open[name]
	delete(t.open, name)
	return withdrawn
}

// wait waits for the end of the stream.
func (t *ticket) wait(ctx context.Context) error {
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), <-t.done) // the stream ends with ctx
	}
}

// Serve sends a robot the sound of a ticket.
func (t *Tickets) Serve(w http.ResponseWriter, r *http.Request, name string) error {
	fetched := t.withdraw(name)
	if fetched == nil {
		return ErrNoTicket
	}
	close(fetched.fetched)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(fetched.ctx, cancel) // a talk has begun
	defer stop()
	w.Header().Set("Content-Type", "audio/ogg")
	w.Header().Set("Cache-Control", "no-store")
	err := fetched.stream.send(ctx, w)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrCut, err)
	}
	fetched.done <- err
	if err != nil { // the answer cannot be ended, and is not taken for a whole one
		_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // a test's writer may have no deadlines
	}
	return err
}
