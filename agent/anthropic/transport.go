package anthropic

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"perch/limit"
	"perch/remote"
)

var errTooMuch = errors.New("sends an answer larger than 16 MB")

// redirected is a redirect, which is not followed.
type redirected struct {
	status int
	to     string
}

func (*redirected) Error() string { return "it sends elsewhere" }

// transport bounds what the SDK does: it would read any length, wait as long as
// a server says, and take a redirect for an answer.
type transport struct{ inner http.RoundTripper }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		response.Body.Close()
		return nil, &redirected{response.StatusCode, response.Header.Get("Location")}
	}
	if after := response.Header.Get("Retry-After"); after != "" {
		seconds, err := strconv.ParseFloat(after, 64)
		if err != nil || !(seconds >= 0 && seconds <= limit.Moment.Seconds()) {
			response.Header.Set("X-Should-Retry", "false")
		}
	}
	response.Header.Del("Retry-After-Ms") // the SDK would take it over Retry-After, at any length
	b := &watched{Body: remote.Body{ReadCloser: response.Body, Left: limit.Answer, Full: errTooMuch}}
	if response.StatusCode >= 400 {
		b.Left, b.Full = limit.Body, io.EOF // the status says most of it
	}
	b.Watch, _ = r.Context().Value(watchKey{}).(*remote.Watch)
	response.Body = b
	return response, nil
}

// CloseIdleConnections has http.Client's reach the transport within.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.inner.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// watchKey is where a message's context has its watch, which runs until the first
// byte, over all tries, and then between signs of life.
type watchKey struct{}

// watched is a body whose first byte is a sign of life. The SDK passes pings over:
// a model that thinks may send nothing else, and the turn has bounds of its own.
type watched struct {
	remote.Body
	begun bool
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	if n > 0 && !b.begun || bytes.Contains(p[:n], []byte("event: ping")) {
		b.begun = true
		b.Watch.Lives(0)
	}
	return n, err
}
