// Package hass is a client of Home Assistant's two APIs: the WebSocket API, including its Assist
// pipelines, and the REST API. It is used by the recognizer, the synthesizer and the agent that call
// Home Assistant's engines. If Perch runs as an app of Home Assistant, it lists the users with this package.
//
// A Conn has two goroutines: one reads and one writes. The reading goroutine never waits for a
// caller: it puts responses into bounded queues. A caller that stops waiting for a response does not
// affect the connection.
package hass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"perch/limit"
	"perch/remote"
)

// Options of a Client. URL and Token are required.
type Options struct {
	URL   string // such as "http://homeassistant.local:8123"; may have a path
	Token string // a long-lived access token
	// ConnectWithin bounds the time to connect and authenticate, and the time of each write; 0 is 5 s.
	ConnectWithin time.Duration
}

// Client is a client of one Home Assistant server. It is safe for concurrent use.
type Client struct {
	remote.Server
	o    Options
	base *url.URL
	web  *remote.Client  // client of the REST API
	life context.Context // ends when the client is closed
	end  context.CancelFunc
}

// New returns a client, without opening a connection. The errors of New contain neither the token
// nor a password in the URL.
func New(o Options) (*Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	o.Token = strings.TrimSpace(o.Token)
	o.ConnectWithin = cmp.Or(o.ConnectWithin, 5*time.Second)
	c := &Client{o: o, base: base, Server: remote.Server{Service: "Home Assistant", Address: base.String(), Key: o.Token,
		Setting: "token_file", Check: "agent, engine, voice and language", ConnectWithin: o.ConnectWithin}}
	c.life, c.end = context.WithCancel(context.Background())
	transport := remote.NewTransport()
	transport.Proxy, transport.ForceAttemptHTTP2 = nil, false // Home Assistant is on the local network
	transport.DialContext = (&net.Dialer{Timeout: o.ConnectWithin}).DialContext
	transport.TLSHandshakeTimeout, transport.IdleConnTimeout = o.ConnectWithin, 30*time.Second
	c.web = remote.NewClient(remote.Options{Server: c.Server, Base: base, Transport: transport})
	return c, nil
}

// Check returns an error if the options are invalid. The error does not contain the token.
func (o Options) Check() error {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" ||
		base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return errors.New("the url of Home Assistant is like http://homeassistant.local:8123")
	}
	token := strings.TrimSpace(o.Token)
	if token == "" {
		return fmt.Errorf(
			"no token is given; make a long-lived access token at the end of your profile page in Home Assistant, and set token_file")
	}
	if len(token) > limit.Data || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the token of Home Assistant is one line of plain characters; check the token file")
	}
	if o.ConnectWithin < 0 {
		return errors.New("a deadline cannot be negative")
	}
	return nil
}

// Close cancels running calls and closes all connections. It may be called more than once.
func (c *Client) Close() {
	c.end()
	c.web.Close()
}

// socketURL returns the URL of the WebSocket API.
func (c *Client) socketURL() string {
	u := c.base.JoinPath("api/websocket")
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	return u.String()
}
