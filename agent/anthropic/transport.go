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

// errTooLarge is returned for a response that exceeds limit.Answer.
var errTooLarge = errors.New("sends a response larger than 16 MB")

// redirected is the error for a redirect, which the transport does not follow.
type redirected struct {
	status int
	to     string // value of the Location header
}

func (*redirected) Error() string { return "it redirects" }

// transport limits what a server can do through the SDK. Without it, the SDK would read a
// response of any length, wait as long as a Retry-After header demands, and treat a redirect
// as a response.
type transport struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
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
	response.Header.Del("Retry-After-Ms") // the SDK would use it in place of Retry-After, without a limit
	b := &watchedBody{Body: remote.Body{ReadCloser: response.Body, Left: limit.Answer, Full: errTooLarge}}
	if response.StatusCode >= 400 {
		b.Left, b.Full = limit.Body, io.EOF // truncate the body instead of failing: the status is sufficient for an error
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

// watchKey is the context key of a request's *remote.Watch. The watch limits the wait for the
// first byte, including the SDK's retry, and each wait after that.
type watchKey struct{}

// watchedBody is the body of a response. It reports the first byte and each ping to the
// watch: the SDK hides pings, but a model that is thinking may send nothing else for a long
// time. Pings cannot prolong a turn without end, because the turn also has a time limit.
type watchedBody struct {
	remote.Body
	begun bool // whether the first byte was read
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	if n > 0 && !b.begun || bytes.Contains(p[:n], []byte("event: ping")) {
		b.begun = true
		b.Watch.Reset(0)
	}
	return n, err
}
