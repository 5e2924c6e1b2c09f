// Package remote holds what the clients of other servers share, most of them drivers of engines
// (recognizers, synthesizers and brains): an HTTP client with deadlines and size limits, a watch that
// ends calls to silent servers, readers of lines and of server-sent events, error sentences, the removal
// of keys from text, and the condition of an engine. It implements no server's API.
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
	Server                  // the server's name in error sentences, and its key
	Base      *url.URL      // URL that the paths of requests are added to
	KeyHeader string        // name of the header with the key; empty means "Authorization" with a bearer token
	Header    http.Header   // headers of every request
	First     time.Duration // maximum wait until the first sign of life; includes connecting if ConnectWithin is 0
	Idle      time.Duration // maximum wait after a sign of life, which Answer.ResetWait and Answer.AddWait record
	// Transport carries the requests; nil means the result of NewTransport.
	Transport http.RoundTripper
}

// Client calls one server. It is safe for concurrent use.
type Client struct {
	Server
	o    Options
	http *http.Client
	life context.Context // cancelled by Close
	end  context.CancelFunc
}

// connectWithin is the maximum time for the TCP connection, and again for the TLS handshake.
const connectWithin = 5 * time.Second

// errClosed is the cause of a call that Close has cancelled.
var errClosed = errors.New("the connection is closed")

// NewTransport returns a transport that limits the time for connecting, the idle connections and the
// size of a header; the Watch of a call limits the wait for the response. The transport does not accept
// compressed responses: compression delays pieces of a stream, and a small compressed body
// may expand to a very large one.
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

// NewHTTP returns an http.Client that does not follow redirects: a redirect could send the key
// and the conversation to a host that the owner has not configured.
func NewHTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewClient returns a client without opening a connection.
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

// Request describes one call.
type Request struct {
	Method      string
	Base        *url.URL // if not nil, used instead of the client's base
	Path        string   // path below Base, such as "audio/speech"; empty means Base itself
	Query       url.Values
	ContentType string
	Header      http.Header // headers of this request only
	Body        []byte
	JSON        any // if not nil, replaces Body and ContentType
	// Live replaces Body if the body is still being produced, such as live sound: it
	// returns a reader that is sent in chunks, and whose reads end when the context ends.
	Live func(context.Context) io.Reader
	// Repeatable marks a request without side effects: it is sent again if the server
	// has just closed a reused connection.
	Repeatable bool
	Bare       bool          // whether to omit the key and the client's headers
	Within     time.Duration // if not 0, the maximum time for the whole call, including connecting; replaces Options.First
	Pace       Pace          // bounds the wait for further pieces of the body; may be nil
}

// Call sends r and returns the response once its header has arrived. The caller must close the
// Answer. A status other than 2xx is an error. The error is a *Fault, or ctx's error if ctx has ended.
func (c *Client) Call(ctx context.Context, r Request) (*Answer, error) {
	if r.JSON != nil {
		var err error
		if r.Body, err = json.Marshal(r.JSON); err != nil {
			return nil, c.Fault("cannot be asked: " + c.Quote(err.Error()))
		}
		r.ContentType = "application/json"
	}
	fromStart := c.ConnectWithin == 0 || r.Within > 0
	a := &Answer{client: c, ctx: ctx, watch: NewWatch(ctx, cmp.Or(r.Within, c.o.First), c.o.Idle)}
	a.release = context.AfterFunc(c.life, func() { a.watch.cancel(errClosed) })
	req, err := c.request(a.watch, r, fromStart)
	if err != nil {
		a.stop()
		return nil, c.Fault("cannot be asked: " + c.Quote(err.Error()))
	}
	if fromStart {
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
	if encoding := a.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		defer a.Close()
		return nil, c.Fault("compresses its answer (Content-Encoding: " + c.Quote(encoding) +
			"), which the request did not allow; turn that off there, or in the proxy before it")
	}
	return a, nil
}

// Fetch sends r and returns the whole body of the response; see Call and Answer.Whole.
func (c *Client) Fetch(ctx context.Context, r Request, maxBytes int) ([]byte, error) {
	a, err := c.Call(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.Whole(maxBytes)
}

// request makes the HTTP request for r. If fromStart is false, connecting has its own
// deadline, and the clock of w starts when there is a connection.
func (c *Client) request(w *Watch, r Request, fromStart bool) (*http.Request, error) {
	ctx := w.Context()
	newBody := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(r.Body)) }
	if !fromStart {
		newBody = func() io.ReadCloser { return &upload{from: bytes.NewReader(r.Body), watch: w} }
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { w.sending(true) },
		})
	}
	base := c.o.Base
	if r.Base != nil {
		base = r.Base
	}
	copied := *base
	target := &copied
	if r.Path != "" { // JoinPath with an empty path would remove a trailing slash
		target = base.JoinPath(r.Path)
	}
	if len(r.Query) > 0 {
		query := target.Query()
		maps.Copy(query, r.Query)
		target.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target.String(), nil)
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
		req.GetBody = func() (io.ReadCloser, error) { return newBody(), nil }
		req.Body, req.ContentLength = newBody(), int64(len(r.Body))
		if r.Repeatable {
			// With a nil value net/http does not send the header, but treats the
			// request as repeatable.
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

// Answer is the successful response to a call. Its body is read while it arrives.
type Answer struct {
	Header  http.Header
	client  *Client
	ctx     context.Context // the context of the caller
	watch   *Watch
	release func() bool // detaches the call from Client.Close
	body    Body
}

// stop cancels the call.
func (a *Answer) stop() {
	a.release()
	a.watch.Stop()
}

// Close ends the call. The connection is reused if the body was read to its end.
func (a *Answer) Close() {
	a.stop() // before closing the body, which would otherwise wait for the rest of the body
	_ = a.body.Close()
}

// Kind returns the media type of the body, such as "audio/pcm", and its parameters. It
// returns "" if the server has sent no valid media type.
func (a *Answer) Kind() (string, map[string]string) {
	kind, parameters, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return "", nil
	}
	return kind, parameters
}

// ResetWait calls Watch.Reset, after a sign of life of the server.
func (a *Answer) ResetWait(within time.Duration) { a.watch.Reset(within) }

// AddWait calls Watch.Add, after text has arrived.
func (a *Answer) AddWait(d time.Duration) { a.watch.Add(d) }

// Read reads the body within the client's deadlines. Its error is io.EOF, a *Fault, or the
// error of the caller's context.
func (a *Answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.broken(err)
	}
	return n, err
}

// Whole reads the rest of the body, and returns an error if the rest has more than maxBytes bytes.
// Unless the request has a Pace, the whole body must arrive within the time allowed for its first
// byte, so a server that sends single bytes cannot delay a turn.
func (a *Answer) Whole(maxBytes int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(a, int64(maxBytes)+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxBytes:
		return nil, a.client.Fault("sends an answer that is too long; check the url")
	}
	return body, nil
}

// ErrorText reads the body of an error, or text that the server has sent in place of the requested
// media type, and returns the error's code and message; see Message. An HTML page has neither.
func (a *Answer) ErrorText() (code, message string, err error) {
	body, err := io.ReadAll(io.LimitReader(a, limit.Data))
	if kind, _ := a.Kind(); !strings.Contains(kind, "html") {
		code, message = Message(body)
	}
	return code, message, err
}

// refused returns the error for a status other than 2xx. It returns a *Fault even if the body cannot
// be read, but the error of the caller's context if that context has ended.
func (a *Answer) refused(status int, path string) error {
	code, message, err := a.ErrorText()
	if ended := a.ctx.Err(); err != nil && ended != nil {
		return ended
	}
	return a.client.Refused(a.client.Quote(code), Refusal{Status: status, Path: path, Reason: message,
		After: a.Header.Get("Retry-After"), To: a.Header.Get("Location")})
}

// broken converts an error of net/http, before or within the response, to a *Fault or the
// error of the caller's context.
func (a *Answer) broken(err error) error {
	c := a.client
	var fault *Fault
	silent := a.watch.Silent()
	switch {
	case a.ctx.Err() != nil:
		return a.ctx.Err()
	case errors.As(err, &fault):
		return fault
	case silent != "" && a.body.trickles:
		return c.fault(CodeSilent, "sends its answer far slower than it is played; is it overloaded, or too slow for this voice?")
	case silent != "":
		return c.fault(CodeSilent, silent)
	case errors.Is(context.Cause(a.watch.Context()), errClosed):
		return &Fault{Code: CodeClosed, Sentence: errClosed.Error(), Kind: c.Kind}
	}
	return c.Unreachable(err, a.Header != nil)
}
