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

// Limits of a WebSocket to a program.
const (
	dialTimeout = 5 * time.Second
	pingEvery   = 15 * time.Second
	quietFor    = 40 * time.Second // the connection is dropped after this time without a message or pong
	maxReceived = 200              // messages per second
)

// wire is a WebSocket connection to a program. It is embedded by links that use a WebSocket.
type wire struct {
	nopLink
	conn    *socket.Conn
	ended   chan error      // receives the reason when the connection has ended
	ctx     context.Context // ends with the connection
	stop    context.CancelFunc
	running sync.WaitGroup // counts the goroutines of receive and ping

	mu    sync.Mutex
	calls map[string]chan []byte // calls that wait for their response; key: ID of the call
}

// dial opens a WebSocket. It calls handle for every message, from one goroutine. If a message is the
// response to a call, handle must return the ID of that call, and otherwise "". handle must not
// retain the message.
func dial(ctx context.Context, url string, handle func(message []byte) (callID string)) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := socket.Dial(ctx, url, socket.Options{MaxMessage: limit.Message, SendWithin: callTimeout, Quiet: quietFor,
		PerSecond: maxReceived})
	if err != nil {
		return nil, unreachable(url, err)
	}
	w := &wire{conn: conn, ended: make(chan error, 1), calls: map[string]chan []byte{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.running.Go(func() { w.receive(handle) })
	w.running.Go(w.ping)
	return w, nil
}

// receive passes messages to handle, and responses to the waiting calls, until the connection ends.
func (w *wire) receive(handle func([]byte) string) {
	defer w.stop()
	for {
		_, message, err := w.conn.Receive()
		if err != nil {
			w.ended <- fmt.Errorf("the program has closed the connection: %w", err)
			return
		}
		id := handle(message)
		w.mu.Lock()
		response := w.calls[id]
		delete(w.calls, id)
		w.mu.Unlock()
		if response != nil {
			response <- slices.Clone(message)
		}
	}
}

// ping sends pings until the connection ends. Without pings, Perch would not notice that the program's machine
// was switched off.
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

// call sends v as JSON, and waits for the response, which the handle function of dial recognizes by
// the ID of the call.
func (w *wire) call(ctx context.Context, id string, v any) ([]byte, error) {
	return w.exchange(ctx, id, func() error { return w.send(v) })
}

// exchange is like call for a message that the function send sends.
func (w *wire) exchange(ctx context.Context, id string, send func() error) ([]byte, error) {
	response := make(chan []byte, 1)
	w.mu.Lock()
	w.calls[id] = response
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.calls, id)
		w.mu.Unlock()
	}()
	if err := send(); err != nil {
		return nil, err
	}
	select {
	case message := <-response:
		return message, nil
	case <-w.ctx.Done():
		return nil, fmt.Errorf("%w: the connection is closed", errNoAnswer)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errNoAnswer, context.Cause(ctx))
	}
}

func (w *wire) disconnected() <-chan error { return w.ended }

// close closes the connection, and waits for the goroutines.
func (w *wire) close() {
	w.conn.Close(socket.Normal, "")
	w.stop()
	w.running.Wait()
}
