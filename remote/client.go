// Package remote is what every driver of a server that is not ours needs: an HTTP
// client with bounds, a watch on silence, lines and server-sent events, one
// sentence for whatever goes wrong, the scrubbing of keys, and the condition of
// an engine. It knows no protocol: each driver has the statuses of its own.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"perch/limit"
)

// Options of a Client.
type Options struct {
	Server                  // how sentences speak of it, and its key
	Base      *url.URL      // what every path is below
	KeyHeader string        // that carries the key; "Authorization" where empty, as a bearer token
	Header    http.Header   // sent with every request
	First     time.Duration // until an answer begins; with connecting, unless that has a deadline of its own
	Idle      time.Duration // the longest silence in the middle of one
	// Transport carries the requests; nil is NewTransport.
	Transport http.RoundTripper
}

// Client calls one server. It is safe for concurrent use.
type Client struct {
	Server
	o    Options
	http *http.Client
	life context.Context // ends with Close
	end  context.CancelFunc
}

const connectWithin = 5 * time.Second // for TCP, and again for TLS

var errClosed = errors.New("the engine is closed")

// NewTransport is how a server is reached over HTTP: every wait and every store
// is bounded. Compression is off: it would hold pieces back, and a small body
// can hide a large one.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: connectWithin, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    connectWithin,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
}

// NewHTTP is a client of net/http that follows no redirect: it would carry a key
// and a conversation to a place that the owner did not name.
func NewHTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewClient returns a client. It opens no connection.
func NewClient(o Options) *Client {
	o.KeyHeader = cmp.Or(o.KeyHeader, "Authorization")
	if o.Transport == nil {
		o.Transport = NewTransport()
	}
	c := &Client{Server: o.Server, o: o, http: NewHTTP(o.Transport)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Close ends the calls that are under way and closes every connection. It
// may be called more than once.
func (c *Client) Close() {
	c.end()
	c.http.CloseIdleConnections()
}

// Request is one call.
type Request struct {
	Method      string
	Base        *url.URL // in place of the client's
	Path        string   // below it, "audio/speech"; empty is the base itself
	Query       url.Values
	ContentType string
	Header      http.Header // sent with this request alone
	Body        []byte
	// Live is given in place of Body where that is still being made: it is
	// sent in chunks as it comes. Its reads end with the context.
	Live func(context.Context) io.Reader
	// Repeatable is a request that may be sent again where the server had just
	// closed the connection, because doing it twice changes nothing there.
	Repeatable bool
	Bare       bool          // neither the key nor the client's headers are sent
	Within     time.Duration // for all of it, connecting too, in place of the client's deadlines
	Pace       Pace          // of the answer, once it has begun
}

// Call sends r and returns the answer once its header is there. An answer
// must be closed. The error is a *Fault, or ctx's where that has ended.
func (c *Client) Call(ctx context.Context, r Request) (*Answer, error) {
	atOnce := c.ConnectWithin == 0 || r.Within > 0
	a := &Answer{client: c, ctx: ctx, watch: NewWatch(ctx, cmp.Or(r.Within, c.o.First), c.o.Idle)}
	a.release = context.AfterFunc(c.life, func() { a.watch.cancel(errClosed) })
	req, err := c.request(a.watch, r, atOnce)
	if err != nil {
		a.end()
		return nil, c.Fault("cannot be asked: " + c.Quote(err.Error()))
	}
	if atOnce {
		a.watch.Begin()
	}
	response, err := c.http.Do(req)
	if err != nil {
		defer a.end()
		return nil, a.broken(err)
	}
	a.watch.begun()
	a.Header = response.Header
	a.body = Body{ReadCloser: response.Body, Left: limit.Answer, Watch: a.watch, Pace: r.Pace,
		Full: c.Fault("sends an answer larger than 16 MB; check the url")}
	if response.StatusCode/100 != 2 {
		defer a.Close()
		return nil, a.refused(response.StatusCode, "/"+strings.Trim(r.Path, "/"))
	}
	if packed := a.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		defer a.Close()
		return nil, c.Fault("packs its answer (Content-Encoding: " + c.Quote(packed) +
			") though it was asked not to; switch that off there, or in the proxy before it")
	}
	return a, nil
}

// request makes the request. Its clock runs from the beginning, or, where
// connecting has a deadline of its own, while the server has something to take in.
func (c *Client) request(w *Watch, r Request, atOnce bool) (*http.Request, error) {
	ctx := w.Context()
	whole := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(r.Body)) }
	if !atOnce {
		whole = func() io.ReadCloser { return &upload{from: bytes.NewReader(r.Body), watch: w} }
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { w.sending(true) },
		})
	}
	base := c.o.Base
	if r.Base != nil {
		base = r.Base
	}
	copied := *base
	at := &copied
	if r.Path != "" { // else joining would take a last slash away
		at = base.JoinPath(r.Path)
	}
	if len(r.Query) > 0 {
		query := at.Query()
		maps.Copy(query, r.Query)
		at.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if !r.Bare {
		maps.Copy(req.Header, c.o.Header)
	}
	switch {
	case r.Live != nil:
		req.Body, req.ContentLength = &upload{from: r.Live(ctx), watch: w}, -1
	case len(r.Body) > 0:
		req.GetBody = func() (io.ReadCloser, error) { return whole(), nil }
		req.Body, req.ContentLength = whole(), int64(len(r.Body))
		if r.Repeatable {
			// With no value the header is not sent. net/http takes that
			// for a request that may be repeated.
			req.Header["Idempotency-Key"] = nil
		}
	}
	maps.Copy(req.Header, r.Header)
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	switch {
	case c.Key == "" || r.Bare:
	case c.o.KeyHeader == "Authorization":
		req.Header.Set("Authorization", "Bearer "+c.Key)
	default:
		req.Header.Set(c.o.KeyHeader, c.Key)
	}
	return req, nil
}

// Answer is what a server answers with, while it arrives.
type Answer struct {
	Header  http.Header
	client  *Client
	ctx     context.Context // the caller's
	watch   *Watch
	release func() bool
	body    Body
}

func (a *Answer) end() {
	a.release()
	a.watch.Stop()
}

// Close ends the call. A connection whose answer was read to its end is kept
// for the next.
func (a *Answer) Close() {
	// Cancelled first, so that closing does not wait for more of the body.
	a.end()
	_ = a.body.Close()
}

// Kind is the media type of the answer, "audio/pcm", and its parameters.
func (a *Answer) Kind() (string, map[string]string) {
	kind, parameters, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return "", nil
	}
	return kind, parameters
}

// Lives takes note of a sign of life: see Watch.Lives.
func (a *Answer) Lives(within time.Duration) { a.watch.Lives(within) }

// Wrote takes note of text that has come: see Watch.Wrote.
func (a *Answer) Wrote(worth time.Duration) { a.watch.Wrote(worth) }

// Read implements io.Reader under the deadlines. Its error is io.EOF, a *Fault,
// or the caller's context's.
func (a *Answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.broken(err)
	}
	return n, err
}

// Whole reads an answer of at most so many bytes. All of it has as long as
// its beginning may take, or a server could hold a turn by one byte at a time.
func (a *Answer) Whole(most int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(a, int64(most)+1))
	if err == nil && len(body) > most {
		err = a.client.Fault("answers with more than there can be to say; check the url")
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

// Words are what an answer says that is no success, or that was to be no words:
// see Message.
func (a *Answer) Words() (code, message string, err error) {
	body, err := io.ReadAll(io.LimitReader(a, limit.Data))
	if kind, _ := a.Kind(); !strings.Contains(kind, "html") {
		code, message = Message(body)
	}
	return code, message, err
}

// refused is the fault of a status other than 2xx. The status is enough where
// the rest cannot be read.
func (a *Answer) refused(status int, path string) error {
	code, message, err := a.Words()
	if ended := a.ctx.Err(); err != nil && ended != nil {
		return ended
	}
	return a.client.Refused(a.client.Quote(code), Refusal{Status: status, Path: path, Reason: message,
		After: a.Header.Get("Retry-After"), To: a.Header.Get("Location")})
}

// broken says why there is no answer, or no more of it.
func (a *Answer) broken(err error) error {
	c := a.client
	var known *Fault
	silent := a.watch.Silent()
	switch {
	case a.ctx.Err() != nil:
		return a.ctx.Err()
	case errors.As(err, &known):
		return known
	case silent != "" && a.body.trickles:
		return c.fault(CodeSilent, "sends its answer far slower than it is played; is it overloaded, or too slow for this voice?")
	case silent != "":
		return c.fault(CodeSilent, silent)
	case errors.Is(context.Cause(a.watch.Context()), errClosed):
		return &Fault{Code: CodeClosed, Sentence: errClosed.Error(), Kind: c.Kind}
	}
	return c.Unreachable(err, a.Header != nil)
}
