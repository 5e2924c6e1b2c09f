package httpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Times of a stream.
const (
	// keepAlive is how long a stream is silent before it sends a comment. The comment keeps proxies from
	// closing the connection, and shows whether the client still reads.
	keepAlive = 15 * time.Second
	// sendTimeout is how long a client may take to read a message before it is disconnected.
	sendTimeout = 10 * time.Second
)

// Message is one server-sent event.
type Message struct {
	ID    string
	Event string
	Data  any // sent as JSON
}

// Stream sends server-sent events (HTML Living Standard, section 9.2) until next fails or the client
// disconnects. next must wait for the next message and return it. The context of next ends when the
// client disconnects, or when a keep-alive is due; in the latter case Stream calls next again.
func Stream(ctx context.Context, w http.ResponseWriter, next func(context.Context) (Message, error)) error {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	write := func(text string) error {
		_ = control.SetWriteDeadline(time.Now().Add(sendTimeout)) // fails only for a test's writer without deadlines
		if _, err := fmt.Fprint(w, text); err != nil {
			return err
		}
		return control.Flush()
	}
	if err := write(": welcome\n\n"); err != nil {
		return err
	}
	for {
		waiting, cancel := context.WithTimeout(ctx, keepAlive)
		m, err := next(waiting)
		quiet := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err != nil && quiet:
			err = write(": still here\n\n")
		case err == nil:
			var text string
			if text, err = m.text(); err == nil {
				err = write(text)
			}
		}
		if err != nil {
			return err
		}
	}
}

// text returns the message as lines of an event stream.
func (m Message) text() (string, error) {
	data, err := json.Marshal(m.Data)
	if err != nil {
		return "", fmt.Errorf("encode an event: %w", err)
	}
	return fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", m.ID, m.Event, data), nil
}
