package remote

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"perch/voice"
)

// Answer is what a server answers with, while it arrives.
type Answer struct {
	client   *Client
	ctx      context.Context // the caller's
	within   context.Context // the call's
	path     string
	response *http.Response
	watch    *watch
	end      func()
	begun    bool
	arrival  *voice.Arrival // of its sound
	trickles bool           // it was that which a read waited for in vain
}

// Close ends the call. A connection whose answer was read to its end is kept
// for the next.
func (a *Answer) Close() {
	// Cancelled first, so that closing does not wait for more of the body.
	a.end()
	_ = a.response.Body.Close()
}

// Kind is the media type of the answer, "audio/pcm", and its parameters.
func (a *Answer) Kind() (string, map[string]string) {
	kind, parameters, err := mime.ParseMediaType(a.response.Header.Get("Content-Type"))
	if err != nil {
		return "", nil
	}
	return kind, parameters
}

// Read implements io.Reader under the deadlines, those of a sound that arrives.
// Its error is io.EOF, a *Fault, or the caller's context's.
func (a *Answer) Read(p []byte) (int, error) {
	waiting := time.Now()
	if a.begun {
		a.trickles = a.arrival.Trickles()
		a.watch.arm(a.arrival.Left())
	}
	n, err := a.response.Body.Read(p)
	if a.begun {
		a.arrival.Waited(time.Since(waiting))
	}
	if n > 0 {
		a.begun = true
	}
	if a.begun {
		a.watch.rest()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.broken(err)
	}
	return n, err
}

// Whole reads an answer of at most so many bytes. All of it has as long as
// a pause may be, or a server could hold a turn by one byte at a time.
func (a *Answer) Whole(most int) ([]byte, error) {
	body, err := a.beginning(most + 1)
	if err == nil && len(body) > most {
		err = a.client.fault(0, a.client.place+" answers with more than there can be to say; check the url")
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

// beginning reads up to so many bytes, and returns what it has with an error.
func (a *Answer) beginning(most int) ([]byte, error) {
	if a.begun {
		a.watch.arm(a.client.o.Idle)
	}
	body, err := io.ReadAll(io.LimitReader(a.response.Body, int64(most)))
	a.watch.rest()
	if err != nil {
		err = a.broken(err)
	}
	return body, err
}
