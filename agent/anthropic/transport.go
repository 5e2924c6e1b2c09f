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

// redirected reports a redirect, which is not followed.
type redirected struct {
	status int
	to     string
}

func (*redirected) Error() string { return "it sends elsewhere" }

// transport bounds the SDK, which would read any length, wait as long as a server
// says, and treat a redirect as an answer.
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
	response.Header.Del("Retry-After-Ms") // the SDK would prefer it to Retry-After, without a bound
	b := &watched{Body: remote.Body{ReadCloser: response.Body, Left: limit.Answer, Full: errTooMuch}}
	if response.StatusCode >= 400 {
		b.Left, b.Full = limit.Body, io.EOF // the status is enough
	}
	b.Watch, _ = r.Context().Value(watchKey{}).(*remote.Watch)
	response.Body = b
	return response, nil
}

// CloseIdleConnections forwards to the inner transport.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.inner.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// watchKey is the context key of a message's watch, which runs until the first byte,
// across retries, and then between signs of life.
type watchKey struct{}

// watched is a body that reports its first byte to the watch. The SDK hides pings,
// but a thinking model may send nothing else; the turn has its own time limits.
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
