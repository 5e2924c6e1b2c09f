// Package media is the HTTP client of the engines that use a speech server: the packages assist,
// elevenlabs, openai and voicevox. It converts the sound of a response to 24 kHz PCM, and explains
// the errors of such a server.
package media

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"perch/limit"
	"perch/remote"
	"perch/voice"
)

// Options are the options of a Client.
type Options struct {
	Service   string        // the server's name in a sentence, such as "the speech server"
	URL       string        // base URL, such as "http://192.168.1.9:8000/v1"; the paths of requests are appended to it
	Key       string        // API key; empty for none
	KeyHeader string        // header of the key; empty for "Authorization" with a bearer token
	Hint      string        // text after "check the url" in errors, such as ", which mostly ends in /v1"
	FirstByte time.Duration // maximum wait for the first byte of a response; 0 means remote.Patience
	Idle      time.Duration // maximum pause within a response; 0 means remote.Patience
	// Dial opens connections in tests; nil means net.Dialer's DialContext.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	connectTimeout = 5 * time.Second // for the TCP connection, and again for the TLS handshake
	// idleConnTimeout is short. Reusing a connection that a router has dropped makes a turn
	// fail, while opening a new one in the local network takes hardly any time.
	idleConnTimeout = 30 * time.Second
	maxKeyLength    = 512 // bytes
)

// Client calls one speech server. It is safe for concurrent use.
type Client struct {
	*remote.Client
	idle time.Duration // Options.Idle or its default
	hint string        // Options.Hint
}

// New checks the options and returns a client. It opens no connection. Its errors contain
// neither the key nor a password in the URL.
func New(o Options) (*Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	o.Key = strings.TrimSpace(o.Key)
	o.FirstByte = cmp.Or(o.FirstByte, remote.Patience)
	o.Idle = cmp.Or(o.Idle, remote.Patience)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	transport := remote.NewTransport()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return o.Dial(ctx, network, address)
	}
	transport.ForceAttemptHTTP2, transport.MaxIdleConns, transport.IdleConnTimeout, transport.MaxResponseHeaderBytes = false, 2, idleConnTimeout, 32<<10
	return &Client{idle: o.Idle, hint: o.Hint, Client: remote.NewClient(remote.Options{
		Server: remote.Server{Service: o.Service, Address: remote.Address(base), Key: o.Key, Setting: "key_file", Check: "model, voice and url",
			Kind: voice.ErrUnavailable, ConnectWithin: connectTimeout},
		Base: base, KeyHeader: o.KeyHeader, Header: http.Header{"Accept-Encoding": {"identity"}},
		First: o.FirstByte, Idle: o.Idle, Transport: transport,
	})}, nil
}

// Check returns an error if the options are invalid. The error contains neither the key nor the URL.
func (o Options) Check() error {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.Fragment != "" {
		return errors.New("the url of a speech server is like http://192.168.1.9:8000/v1")
	}
	key := strings.TrimSpace(o.Key)
	if len(key) > maxKeyLength || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the key of a speech server is one line of at most 512 plain characters; check the key file")
	}
	if o.FirstByte < 0 || o.Idle < 0 {
		return errors.New("within cannot be negative")
	}
	return nil
}

// errEnough ends CheckSynthesizer's synthesis at the first sound.
var errEnough = errors.New("enough")

// CheckSynthesizer returns an error if an engine does not begin to synthesize "Hi.".
func CheckSynthesizer(ctx context.Context, engine voice.Synthesizer) error {
	err := engine.Synthesize(ctx, "Hi.", voice.Options{}, func([]int16) error { return errEnough })
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Get returns the body of the response to a GET request. A body of more than limit.File bytes is an error.
func (c *Client) Get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	response, err := c.Call(ctx, remote.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return nil, err
	}
	defer response.Close()
	return response.Whole(limit.File)
}

// IsRefusal reports whether err is the error for a response with a status below 500 other than 2xx, for example because
// the server does not know the path.
func IsRefusal(err error) bool {
	f, ok := errors.AsType[*remote.Fault](err)
	return ok && f.Status != 0 && f.Status < http.StatusInternalServerError
}

// Call sends r like remote.Client.Call, and explains errors that the server returns. It marks r as
// repeatable, because requests to a speech server have no side effects.
func (c *Client) Call(ctx context.Context, r remote.Request) (*remote.Answer, error) {
	r.Repeatable = true
	a, err := c.Client.Call(ctx, r)
	if f, ok := errors.AsType[*remote.Fault](err); ok && f.Status > 0 {
		return nil, c.explain(f)
	}
	return a, err
}

// explain replaces the sentence of an error if the server rejected the voice, the model or the
// path.
func (c *Client) explain(f *remote.Fault) *remote.Fault {
	reason, status := strings.ToLower(f.Code+" "+f.Reason), " ("+c.StatusText(f.Refusal)+"); "
	missing := f.Status == http.StatusNotFound || f.Status == http.StatusMethodNotAllowed
	problem := ""
	switch {
	case !missing && !f.Unanswerable() || strings.Contains(reason, "quota"):
	case strings.Contains(reason, "voice"):
		problem = "does not accept the voice" + status + "check voice"
	case strings.Contains(reason, "model"):
		problem = "does not accept the model" + status + "check model"
	case missing:
		problem = "has no " + c.Quote(strings.TrimPrefix(f.Path, "/")) + status + "check the url" + c.hint
	}
	if problem != "" {
		f.Sentence = c.Name() + " " + problem
	}
	return f
}
