// Package socket is a WebSocket, server or client: one goroutine receives, one sends, every
// send has a deadline, every message a size limit, and closing closes TCP itself, because a
// robot never answers a close frame.
package socket

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"perch/limit"
	"perch/plain"
)

// Close codes (RFC 6455 section 7.4.1).
const (
	Normal      = websocket.CloseNormalClosure
	GoingAway   = websocket.CloseGoingAway
	BadProtocol = websocket.CloseProtocolError
	Violation   = websocket.ClosePolicyViolation
	TooBig      = websocket.CloseMessageTooBig
	ServerError = websocket.CloseInternalServerErr
	TryLater    = websocket.CloseTryAgainLater
)

// Options of a socket.
type Options struct {
	MaxMessage int           // bytes in a received message; a larger one ends the socket with TooBig; 0 is no limit
	SendWithin time.Duration // 0 is 10 s
	Header     http.Header   // sent by Dial

	// Subprotocols are the ones supported by Accept, in order of preference. Its answer
	// names the first that the other side supports too.
	Subprotocols []string
	// Buffer is the size of each of the two buffers in bytes; 0 is 4096. Messages may be
	// larger.
	Buffer int
	// Quiet is how long nothing may arrive, not even a pong, until the connection counts
	// as broken; 0 is for ever.
	Quiet time.Duration
	// PerSecond is how many messages are received per second; more wait in the network
	// and block their sender. After a second without any, as many are received at once.
	// 0 is no limit. Frames without a message, such as pings, always have a separate
	// limit.
	PerSecond int
}

const usualBuffer = 4096

// errAnswer is the error for an upgrade answer that is too long.
var errAnswer = errors.New("the answer to the upgrade does not end; something else than a WebSocket server listens there")

// ErrTooBig is returned by Receive for a message over MaxMessage.
var ErrTooBig = errors.New("message too big")

// Conn is a WebSocket.
type Conn struct {
	ws         *websocket.Conn
	sendWithin time.Duration
	quiet      time.Duration
	pace       limit.Pace // of messages
	buf        []byte
	once       sync.Once
	over       chan struct{} // closed with the connection
}

// Accept answers an upgrade request. It then limits the rate of pings, pongs and empty
// fragments. It accepts every Origin; the caller must check it. On an error the answer has
// been written.
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	up := websocket.Upgrader{
		ReadBufferSize: cmp.Or(o.Buffer, usualBuffer), WriteBufferSize: cmp.Or(o.Buffer, usualBuffer), HandshakeTimeout: 10 * time.Second,
		Subprotocols: o.Subprotocols,
		CheckOrigin:  func(*http.Request) bool { return true },
	}
	over := make(chan struct{})
	ws, err := up.Upgrade(pacing{w, over}, r, nil)
	if err != nil {
		return nil, fmt.Errorf("upgrade to a WebSocket: %w", err)
	}
	return wrap(ws, o, over), nil
}

// Refusal is the error of Dial if the server answered with an HTTP status instead of an upgrade.
type Refusal struct {
	URL    string
	Status int    // HTTP status
	Text   string // the beginning of the body, at most 500 bytes
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("refused: %s answered %d %s: %s", r.URL, r.Status, http.StatusText(r.Status), r.Text)
}

// Dial opens a WebSocket to url. Like Accept it limits the rate of pings, pongs and empty
// fragments. The error is a *Refusal if the server answered without an upgrade. It names url
// without its query, which may contain a key.
func Dial(ctx context.Context, url string, o Options) (*Conn, error) {
	return dial(ctx, url, o, new(net.Dialer).DialContext)
}

func dial(ctx context.Context, url string, o Options, connect func(ctx context.Context, network, address string) (net.Conn, error)) (*Conn, error) {
	shown, _, _ := strings.Cut(url, "?")
	stop := func() bool { return true }
	over := make(chan struct{})
	var within *opening
	d := websocket.Dialer{HandshakeTimeout: 10 * time.Second, ReadBufferSize: usualBuffer, WriteBufferSize: usualBuffer}
	// Frames can be counted only within TLS, so TLS is not left to the library.
	open := func(secure bool) func(context.Context, string, string) (net.Conn, error) {
		return func(dialling context.Context, network, address string) (net.Conn, error) {
			tcp, err := connect(dialling, network, address)
			if err != nil {
				return nil, err
			}
			// In the handshake the library respects a context's deadline, but not its end.
			stop = context.AfterFunc(ctx, func() { _ = tcp.Close() })
			c := tcp
			if secure {
				host, _, _ := net.SplitHostPort(address) // as the library has joined it
				inTLS := tls.Client(tcp, &tls.Config{ServerName: host})
				if err := inTLS.HandshakeContext(dialling); err != nil {
					_ = tcp.Close()
					return nil, err
				}
				c = inTLS
			}
			within = newOpening(c, over)
			return within, nil
		}
	}
	d.NetDialContext, d.NetDialTLSContext = open(false), open(true)
	ws, answer, err := d.DialContext(ctx, url, o.Header)
	if !stop() {
		return nil, fmt.Errorf("open %s: %w", shown, ctx.Err())
	}
	if err != nil {
		if answer != nil {
			text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
			return nil, &Refusal{URL: shown, Status: answer.StatusCode, Text: string(text)}
		}
		return nil, fmt.Errorf("open %s: %w", shown, err)
	}
	within.open = true // nothing reads it now
	return wrap(ws, o, over), nil
}

func wrap(ws *websocket.Conn, o Options, over chan struct{}) *Conn {
	ws.SetReadLimit(int64(o.MaxMessage))
	o.SendWithin = cmp.Or(o.SendWithin, 10*time.Second)
	c := &Conn{ws: ws, sendWithin: o.SendWithin, quiet: o.Quiet, buf: make([]byte, 0, 1024), over: over}
	if o.PerSecond > 0 {
		c.pace = limit.PerSecond(o.PerSecond)
	}
	if c.quiet > 0 {
		ws.SetPongHandler(func(string) error { return c.alive() })
	}
	return c
}

// alive extends the read deadline by the allowed silence.
func (c *Conn) alive() error { return c.ws.SetReadDeadline(time.Now().Add(c.quiet)) }

// Ping sends a ping. It may be called while another goroutine sends.
func (c *Conn) Ping() error {
	return c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.sendWithin))
}

// Receive waits for the next message. The bytes are valid until the next call. Any error is
// final: io.EOF if the connection has ended, with or without a close frame, since a robot
// sends none.
func (c *Conn) Receive() (isText bool, data []byte, err error) {
	if c.quiet > 0 {
		if err := c.alive(); err != nil {
			return false, nil, endError(err)
		}
	}
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return false, nil, endError(err)
	}
	c.pace.Took(1)
	c.pace.Wait(c.over)
	c.buf = c.buf[:0]
	for {
		if len(c.buf) == cap(c.buf) {
			c.buf = append(c.buf, 0)[:len(c.buf)]
		}
		n, err := r.Read(c.buf[len(c.buf):cap(c.buf)])
		c.buf = c.buf[:len(c.buf)+n]
		if err == io.EOF {
			return kind == websocket.TextMessage, c.buf, nil
		}
		if err != nil {
			return false, nil, endError(err)
		}
	}
}

// endError converts the errors of an ended connection to io.EOF.
func endError(err error) error {
	var closed *websocket.CloseError
	var broken net.Error // a robot with unread data leaves with a reset
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return ErrTooBig
	case errors.As(err, &closed), errors.As(err, &broken), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.EOF
	}
	return fmt.Errorf("receive: %w", err)
}

// SendText sends a text message.
func (c *Conn) SendText(text []byte) error { return c.send(websocket.TextMessage, text) }

// SendBinary sends a binary message.
func (c *Conn) SendBinary(data []byte) error { return c.send(websocket.BinaryMessage, data) }

func (c *Conn) send(kind int, data []byte) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(c.sendWithin)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	return c.ws.WriteMessage(kind, data)
}

// Close sends a close frame, if that is possible at once, and closes the connection, which
// ends a running Receive. It is safe for concurrent use and may be called more than once.
func (c *Conn) Close(code int, reason string) {
	c.once.Do(func() {
		close(c.over)
		frame := websocket.FormatCloseMessage(code, plain.Clip(reason, 120)) // half a character would violate the protocol
		// The other side may be gone; nothing depends on this frame.
		_ = c.ws.WriteControl(websocket.CloseMessage, frame, time.Now().Add(time.Second))
		_ = c.ws.Close()
	})
}

// Drop closes TCP without a close frame, as a robot does. After Close it does nothing, and
// Close after it does nothing.
func (c *Conn) Drop() {
	c.once.Do(func() {
		close(c.over)
		_ = c.ws.Close()
	})
}
