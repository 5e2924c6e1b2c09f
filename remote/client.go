// Package remote is the common part of the drivers of other servers: an HTTP client with
// limits, a watch on silence, lines and server-sent events, error sentences, the removal of
// keys from text, and the condition of an engine. It implements no protocol: each driver
// handles its server's statuses.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	Server                  // how error sentences name it, and its key
	Base      *url.URL      // base of every path
	KeyHeader string        // for the key; empty for "Authorization" with a bearer token
	Header    http.Header   // sent with every request
	First     time.Duration // until an answer begins, including connecting unless ConnectWithin is set
	Idle      time.Duration // longest pause within an answer
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

// NewTransport returns a transport with limits for every wait and buffer. Compression is
// off: it would delay pieces, and a small body can hide a large one.
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

// NewHTTP returns a client of net/http that follows no redirect: that would send a key and a
// conversation to a place that the owner did not name.
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

// Close cancels running calls and closes every connection. It may be called more than once.
func (c *Client) Close() {
	c.end()
	c.http.CloseIdleConnections()
}

// Request is one call.
type Request struct {
	Method      string
	Base        *url.URL // overrides the client's
	Path        string   // below Base, such as "audio/speech"; empty is the base itself
	Query       url.Values
	ContentType string
	Header      http.Header // for this request only
	Body        []byte
	JSON        any // if not nil, replaces Body and ContentType
	// Live replaces Body if that is still being made: it is sent in chunks as it comes.
	// Its reads end with the context.
	Live func(context.Context) io.Reader
	// Repeatable allows sending the request again if the server had just closed the
	// connection, because it has no side effects.
	Repeatable bool
	Bare       bool          // omits the key and the client's headers
	Within     time.Duration // for the whole call, including connecting, in place of the client's deadlines
	Pace       Pace          // of the answer, once it has begun
}

// Call sends r and returns the answer once its header has arrived. The answer must be
// closed. The error is a *Fault, or ctx's if that has ended.
func (c *Client) Call(ctx context.Context, r Request) (*Answer, error) {
	if r.JSON != nil {
		var err error
		if r.Body, err = json.Marshal(r.JSON); err != nil {
			return nil, c.Fault("cannot be asked: " + c.Quote(err.Error()))
		}
		r.ContentType = "application/json"
	}
	atOnce := c.ConnectWithin == 0 || r.Within > 0
	a := &Answer{client: c, ctx: ctx, watch: NewWatch(ctx, cmp.Or(r.Within, c.o.First), c.o.Idle)}
	a.release = context.AfterFunc(c.life, func() { a.watch.cancel(errClosed) })
	req, err := c.request(a.watch, r, atOnce)
	if err != nil {
		a.stop()
		return nil, c.Fault("cannot be asked: " + c.Quote(err.Error()))
	}
	if atOnce {
		a.watch.Start()
	}
	response, err := c.http.Do(req)
	if err != nil {
		defer a.stop()
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

// Fetch sends r and returns the whole answer; see Call and Answer.Whole.
func (c *Client) Fetch(ctx context.Context, r Request, most int) ([]byte, error) {
	a, err := c.Call(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.Whole(most)
}

// request makes the request. Its clock runs from the start or, if connecting has its own
// deadline, while the server has something to read.
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
	if r.Path != "" { // joining would remove a final slash
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
			// A nil value sends no header, but makes net/http treat the request
			// as repeatable.
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

// Answer is a server's answer while it arrives.
type Answer struct {
	Header  http.Header
	client  *Client
	ctx     context.Context // the caller's
	watch   *Watch
	release func() bool
	body    Body
}

func (a *Answer) stop() {
	a.release()
	a.watch.Stop()
}

// Close ends the call. If the answer was read to its end, the connection is reused.
func (a *Answer) Close() {
	// Cancelled first, so that closing does not wait for more of the body.
	a.stop()
	_ = a.body.Close()
}

// Kind returns the media type of the answer, such as "audio/pcm", and its parameters.
func (a *Answer) Kind() (string, map[string]string) {
	kind, parameters, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return "", nil
	}
	return kind, parameters
}

// Lives records a sign of life; see Watch.Lives.
func (a *Answer) Lives(within time.Duration) { a.watch.Lives(within) }

// Wrote records text that has arrived; see Watch.Wrote.
func (a *Answer) Wrote(worth time.Duration) { a.watch.Wrote(worth) }

// Read implements io.Reader with deadlines. Its error is io.EOF, a *Fault, or the caller's
// context's.
func (a *Answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.broken(err)
	}
	return n, err
}

// Whole reads an answer of at most most bytes. All of it must arrive within the time for its
// first byte, or a server could hold a turn one byte at a time.
func (a *Answer) Whole(most int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(a, int64(most)+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > most:
		return nil, a.client.Fault("answers with more than there can be to say; check the url")
	}
	return body, nil
}

// Words returns the text of an answer that is an error, or was not expected to be text; see
// Message.
func (a *Answer) Words() (code, message string, err error) {
	body, err := io.ReadAll(io.LimitReader(a, limit.Data))
	if kind, _ := a.Kind(); !strings.Contains(kind, "html") {
		code, message = Message(body)
	}
	return code, message, err
}

// refused returns the fault for a status other than 2xx, even if the rest cannot be read.
func (a *Answer) refused(status int, path string) error {
	code, message, err := a.Words()
	if ended := a.ctx.Err(); err != nil && ended != nil {
		return ended
	}
	return a.client.Refused(a.client.Quote(code), Refusal{Status: status, Path: path, Reason: message,
		After: a.Header.Get("Retry-After"), To: a.Header.Get("Location")})
}

// broken returns why there is no answer, or no more of it.
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
