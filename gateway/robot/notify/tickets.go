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

// Path is the path under which robots fetch sounds. A ticket's name and ".ogg" follow it.
const Path = "/xiaozhi/notify/"

// Times of a ticket.
const (
	ticketTTL = 2 * time.Minute
	// minNotifyWait is how long to wait before a robot that does not fetch the sound is notified again:
	// it may still be playing another sound. The wait doubles each time.
	minNotifyWait = 500 * time.Millisecond
	maxNotifyWait = 10 * time.Second
)

// ErrNotFetched is returned by Play if the robot has not fetched the sound within two minutes.
var ErrNotFetched = errors.New("the robot has not fetched the sound")

// ErrCut is wrapped by the error of Play and Serve if the robot has begun to fetch the sound, but not received
// all of it: the robot has broken off, the synthesis has failed, or the announcement was stopped.
var ErrCut = errors.New("the robot has broken off the sound")

// ErrNoTicket is returned by Serve if there is no open ticket with the name.
var ErrNoTicket error = &httpserver.Fault{Word: "no_such_sound", HTTP: http.StatusNotFound,
	Sentence: "there is no sound at this address: it was fetched before, or it has expired after two minutes"}

// Tickets holds the streams that robots may fetch, each once. The zero value is ready for use.
type Tickets struct {
	mu   sync.Mutex
	open map[string]*ticket
}

// ticket is the right to fetch one stream.
type ticket struct {
	stream  *Stream
	ctx     context.Context // ends with the announcement
	fetched chan struct{}   // closed when the robot begins to fetch the stream
	done    chan error      // receives the result of the fetch; has a buffer for it
}

// Play makes a robot play a stream, and returns when the robot has played all of it. It calls send to
// send the robot the stream's path, repeatedly until the robot fetches the stream, and then calls fetched.
// Besides errors of send and ctx, it returns ErrNotFetched, or an error that wraps ErrCut.
func (t *Tickets) Play(ctx context.Context, s *Stream, send func(path string) error, fetched func()) error {
	name, issued := rand.Text(), &ticket{stream: s, ctx: ctx, fetched: make(chan struct{}), done: make(chan error, 1)}
	t.mu.Lock()
	if t.open == nil {
		t.open = map[string]*ticket{}
	}
	t.open[name] = issued
	t.mu.Unlock()
	defer t.withdraw(name)
	expired := time.After(ticketTTL)
	for wait := minNotifyWait; ; wait = min(2*wait, maxNotifyWait) {
		if err := send(Path + name + ".ogg"); err != nil {
			return err
		}
		select {
		case <-issued.fetched:
			fetched()
			return issued.wait(ctx)
		case <-time.After(wait):
		case <-expired:
			return ErrNotFetched
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// withdraw removes the ticket with a name and returns it, or nil if none exists.
func (t *Tickets) withdraw(name string) *ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	withdrawn := t.open[name]
	delete(t.open, name)
	return withdrawn
}

// wait waits for the end of the fetch.
func (t *ticket) wait(ctx context.Context) error {
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), <-t.done) // does not block for long: Serve ends with ctx too
	}
}

// Serve sends a robot the stream of the ticket with a name, and returns when the robot has played all of it. It
// returns ErrNoTicket, or an error that wraps ErrCut.
func (t *Tickets) Serve(w http.ResponseWriter, r *http.Request, name string) error {
	issued := t.withdraw(name)
	if issued == nil {
		return ErrNoTicket
	}
	close(issued.fetched)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(issued.ctx, cancel)
	defer stop()
	w.Header().Set("Content-Type", "audio/ogg")
	w.Header().Set("Cache-Control", "no-store")
	err := issued.stream.send(ctx, w)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrCut, err)
	}
	issued.done <- err
	if err != nil { // breaks the connection, so that the robot does not take the response for complete
		_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // fails only for a test's writer without deadlines
	}
	return err
}
