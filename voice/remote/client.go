// Package remote is what the speech engines behind HTTP share: one client per
// engine, deadlines for a server that goes quiet, one sentence for whatever
// goes wrong, and the sound of an answer as 24 kHz PCM.
package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"perch/voice"
)

// Options of a Client.
type Options struct {
	Service   string        // what the server is called in a sentence, "the speech server"
	URL       string        // what every path is below, with its /v1; used as it is given
	Key       string        // may be empty
	KeyHeader string        // header that carries the key; "Authorization" where empty, as a bearer token
	FirstByte time.Duration // the longest wait for the first byte of an answer; 0 is 10 s
	Idle      time.Duration // the longest silence between two pieces of it; 0 is 10 s
	// Dial opens connections in place of the network; tests give it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// connectTimeout is for TCP, and again for TLS.
	connectTimeout = 5 * time.Second
	// patience is the wait where Options name none: a small recognizer on a
	// Raspberry Pi takes several seconds over a long utterance.
	patience = 10 * time.Second
	// idleTimeout is short, because a connection that a router has forgotten
	// costs a turn, and opening one on the local network costs nothing.
	idleTimeout = 30 * time.Second
	mostIdle    = 2
	mostHeader  = 32 << 10
	mostKey     = 512
)

// Client calls one server. It is safe for concurrent use.
type Client struct {
	o     Options
	base  *url.URL
	place string // the server, as sentences name it
	http  *http.Client
	life  context.Context // ends with Close
	end   context.CancelFunc
}

// New checks the options and returns a client. It opens no connection. Its
// errors hold neither the key nor what the URL may hide.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.Fragment != "" {
		return nil, errors.New("the url of a speech server is like http://192.168.1.9:8000/v1")
	}
	o.Key = strings.TrimSpace(o.Key)
	if len(o.Key) > mostKey || strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the key of a speech server is one line of at most 512 plain characters; check the key file")
	}
	if o.FirstByte < 0 || o.Idle < 0 {
		return nil, errors.New("a deadline cannot be negative")
	}
	if o.KeyHeader == "" {
		o.KeyHeader = "Authorization"
	}
	if o.FirstByte == 0 {
		o.FirstByte = patience
	}
	if o.Idle == 0 {
		o.Idle = patience
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	c := &Client{o: o, base: base}
	c.life, c.end = context.WithCancel(context.Background())
	shown := url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path}
	c.place = c.scrub(o.Service + " at " + shown.String())
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, connectTimeout)
				defer cancel()
				return o.Dial(ctx, network, address)
			},
			TLSHandshakeTimeout:    connectTimeout,
			MaxIdleConns:           mostIdle,
			MaxIdleConnsPerHost:    mostIdle,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: mostHeader,
			DisableCompression:     true, // sound does not shrink, and what is small may unpack to anything
		},
		// A key is for the server it was given for. net/http would take a
		// header of its own name along to wherever a redirect points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
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
	Path        string // below the client's URL, "audio/speech"
	Query       url.Values
	ContentType string
	Body        []byte
	// Live is given in place of Body where that is still being made: it is
	// sent in chunks as it comes. Its reads end with the context.
	Live func(context.Context) io.Reader
}

// Call sends r and returns the answer once its header is there. An answer
// must be closed. The error is a *Fault, or ctx's where that has ended.
func (c *Client) Call(ctx context.Context, r Request) (*Answer, error) {
	within, cancel := context.WithCancelCause(ctx)
	a := &Answer{client: c, ctx: ctx, within: within, path: r.Path, arrival: voice.NewArrival(c.o.Idle)}
	a.watch = newWatch(c.o.FirstByte, func() { cancel(errSlow) })
	release := context.AfterFunc(c.life, func() { cancel(errClosed) })
	a.end = func() {
		a.watch.end()
		release()
		cancel(nil)
	}
	req, err := c.request(within, r, a.watch)
	if err != nil {
		a.end()
		return nil, c.fault(0, c.place+" cannot be asked: "+c.scrub(err.Error()))
	}
	response, err := c.http.Do(req)
	if err != nil {
		defer a.end()
		return nil, a.broken(err)
	}
	a.watch.answered()
	a.response = response
	if response.StatusCode/100 != 2 {
		defer a.Close()
		return nil, a.refused()
	}
	if packed := response.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		defer a.Close()
		return nil, c.Fault("packs its answer (Content-Encoding: " + c.scrub(packed) + ") though it was asked not to; switch that off there, or in the proxy before it")
	}
	return a, nil
}

func (c *Client) request(ctx context.Context, r Request, w *watch) (*http.Request, error) {
	// Connecting has a deadline of its own, and a sentence of its own.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { w.sending(true) },
	})
	at := c.base.JoinPath(r.Path)
	if len(r.Query) > 0 {
		query := at.Query()
		for name, values := range r.Query {
			query[name] = values
		}
		at.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Live != nil:
		req.Body, req.ContentLength = &upload{from: r.Live(ctx), watch: w}, -1
	case len(r.Body) > 0:
		req.GetBody = func() (io.ReadCloser, error) {
			return &upload{from: bytes.NewReader(r.Body), watch: w}, nil
		}
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(r.Body))
		// With no value the header is not sent. It tells net/http that the
		// request may be sent again where the server had just closed the
		// connection: saying or hearing something twice changes nothing there.
		req.Header["Idempotency-Key"] = nil
	}
	req.Header.Set("Accept-Encoding", "identity")
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	switch {
	case c.o.Key == "":
	case c.o.KeyHeader == "Authorization":
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	default:
		req.Header.Set(c.o.KeyHeader, c.o.Key)
	}
	return req, nil
}
