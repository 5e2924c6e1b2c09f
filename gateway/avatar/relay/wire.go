package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"perch/limit"
	"perch/socket"
)

// Bounds of a WebSocket to a program.
const (
	dialWithin   = 5 * time.Second
	pingEvery    = 15 * time.Second
	quietFor     = 40 * time.Second
	mostReceived = 200 // messages per second
)

// wire is a WebSocket connection to a program, embedded by links that use one. A goroutine
// receives.
type wire struct {
	nopLink
	conn    *socket.Conn
	over    chan error      // receives why the connection has ended
	ctx     context.Context // ends with the connection
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]chan []byte // calls, by the id in their answer
}

// dial opens a WebSocket and calls handle for every message, from one goroutine; handle must not
// retain the message. It returns the id of the call that the message answers, or "".
func dial(ctx context.Context, url string, handle func(message []byte) (answers string)) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := socket.Dial(ctx, url, socket.Options{MaxMessage: limit.Message, SendWithin: callWithin, Quiet: quietFor,
		PerSecond: mostReceived})
	if err != nil {
		return nil, unreachable(url, err)
	}
	w := &wire{conn: conn, over: make(chan error, 1), waiting: map[string]chan []byte{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.running.Go(func() { w.receive(handle) })
	w.running.Go(w.ping)
	return w, nil
}

func (w *wire) receive(handle func([]byte) string) {
	defer w.stop()
	for {
		_, message, err := w.conn.Receive()
		if err != nil {
			w.over <- fmt.Errorf("the program has closed the connection: %w", err)
			return
		}
		id := handle(message)
		w.mu.Lock()
		answer := w.waiting[id]
		delete(w.waiting, id)
		w.mu.Unlock()
		if answer != nil {
			answer <- slices.Clone(message)
		}
	}
}

// ping sends pings, since a machine that vanished closes nothing.
func (w *wire) ping() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if w.conn.Ping() != nil {
				return
			}
		case <-w.ctx.Done():
			return
		}
	}
}

// send sends v as JSON.
func (w *wire) send(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.conn.SendText(text)
}

var errNoAnswer = errors.New("the program does not answer")

// call sends v as JSON and returns the message that answers with that id.
func (w *wire) call(ctx context.Context, id string, v any) ([]byte, error) {
	return w.exchange(ctx, id, func() error { return w.send(v) })
}

// exchange calls send and returns the message that answers with that id.
func (w *wire) exchange(ctx context.Context, id string, send func() error) ([]byte, error) {
	answer := make(chan []byte, 1)
	w.mu.Lock()
	w.waiting[id] = answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.waiting, id)
		w.mu.Unlock()
	}()
	if err := send(); err != nil {
		return nil, err
	}
	select {
	case message := <-answer:
		return message, nil
	case <-w.ctx.Done():
		return nil, fmt.Errorf("%w: it has closed the connection", errNoAnswer)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errNoAnswer, context.Cause(ctx))
	}
}

func (w *wire) disconnected() <-chan error { return w.over }

// close closes the connection and waits for its goroutines.
func (w *wire) close() {
	w.conn.Close(socket.Normal, "")
	w.stop()
	w.running.Wait()
}
