// Package media reads the sound of HTTP answers as 24 kHz PCM for engines that use such
// servers, and explains a speech server's errors.
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

	"perch/remote"
	"perch/voice"
)

// Options of a Client.
type Options struct {
	Service   string        // the server's name in a sentence, such as "the speech server"
	URL       string        // base of every path; used unchanged
	Key       string        // may be empty
	KeyHeader string        // header for the key; empty for "Authorization" with a bearer token
	Hint      string        // addition to errors about the URL, such as ", which mostly ends in /v1"
	FirstByte time.Duration // longest wait for the first byte of an answer; 0 is remote.Patience
	Idle      time.Duration // longest pause within an answer; 0 is remote.Patience
	// Dial opens connections in place of the network, for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	connectWithin = 5 * time.Second // for TCP, and again for TLS
	// keptFor is short, because a connection that a router has dropped costs a turn, and
	// opening one on the local network costs nothing.
	keptFor = 30 * time.Second
	maxKey  = 512
)

// Client calls one speech server. It is safe for concurrent use.
type Client struct {
	*remote.Client
	idle time.Duration
	hint string
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
		ctx, cancel := context.WithTimeout(ctx, connectWithin)
		defer cancel()
		return o.Dial(ctx, network, address)
	}
	transport.ForceAttemptHTTP2, transport.MaxIdleConns, transport.IdleConnTimeout, transport.MaxResponseHeaderBytes = false, 2, keptFor, 32<<10
	return &Client{idle: o.Idle, hint: o.Hint, Client: remote.NewClient(remote.Options{
		Server: remote.Server{Service: o.Service, Address: remote.Address(base), Key: o.Key, Setting: "key_file", Check: "model, voice and url",
			Kind: voice.ErrUnavailable, ConnectWithin: connectWithin},
		Base: base, KeyHeader: o.KeyHeader, Header: http.Header{"Accept-Encoding": {"identity"}},
		First: o.FirstByte, Idle: o.Idle, Transport: transport,
	})}, nil
}

// Check validates the options.
func (o Options) Check() error {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.Fragment != "" {
		return errors.New("the url of a speech server is like http://192.168.1.9:8000/v1")
	}
	key := strings.TrimSpace(o.Key)
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the key of a speech server is one line of at most 512 plain characters; check the key file")
	}
	if o.FirstByte < 0 || o.Idle < 0 {
		return errors.New("a deadline cannot be negative")
	}
	return nil
}

// errEnough ends a trial at the first sound.
var errEnough = errors.New("enough")

// Speaks checks that an engine begins to synthesize "Hi.".
func Speaks(ctx context.Context, engine voice.Synthesizer) error {
	err := engine.Synthesize(ctx, "Hi.", voice.Options{}, func([]int16) error { return errEnough })
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Call calls remote.Client.Call. Requests to a speech server have no side effects, so they
// may be repeated.
func (c *Client) Call(ctx context.Context, r remote.Request) (*remote.Answer, error) {
	r.Repeatable = true
	a, err := c.Client.Call(ctx, r)
	if f, ok := errors.AsType[*remote.Fault](err); ok && f.Status > 0 {
		return nil, c.explain(f)
	}
	return a, err
}

// explain adds to an error what a speech server rejects.
func (c *Client) explain(f *remote.Fault) *remote.Fault {
	about, said := strings.ToLower(f.Code+" "+f.Reason), " ("+c.StatusText(f.Refusal)+"); "
	missing := f.Status == http.StatusNotFound || f.Status == http.StatusMethodNotAllowed
	what := ""
	switch {
	case !missing && !f.Unanswerable() || strings.Contains(about, "quota"):
	case strings.Contains(about, "voice"):
		what = "does not take the voice" + said + "check voice"
	case strings.Contains(about, "model"):
		what = "does not take the model" + said + "check model"
	case missing:
		what = "has no " + c.Quote(strings.TrimPrefix(f.Path, "/")) + said + "check the url" + c.hint
	}
	if what != "" {
		f.Sentence = c.Name() + " " + what
	}
	return f
}
