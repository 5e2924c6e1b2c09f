// Package socket provides WebSocket connections for servers and clients: for robots, skins, avatar relays and Home
// Assistant. One goroutine may receive while another one sends. Every send has a deadline, and the size and the rate of
// received messages can be limited. Close closes the TCP connection without waiting for the other side's close frame,
// because a robot never sends one.
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

// Options configures a connection.
type Options struct {
	MaxMessage int           // maximum size of a received message in bytes; for a larger message Receive returns ErrTooBig; 0 is no limit
	SendWithin time.Duration // time limit of a send; 10 s if 0
	Header     http.Header   // additional headers of the request that Dial sends

	// Subprotocols are the subprotocols that Accept supports, in order of preference. Accept selects the first one
	// that the client supports too.
	Subprotocols []string
	// Buffer is the size of the read buffer and of the write buffer of Accept, in bytes; 4096 if 0. Messages may be
	// larger.
	Buffer int
	// Quiet is the maximum time that Receive waits for a message, counted from the call or from the latest pong that
	// arrived during the call. After this time Receive returns ErrQuiet. 0 is no limit.
	Quiet time.Duration
	// PerSecond is the maximum rate of received messages. Excess messages stay in the TCP buffers, and so block the sender.
	// After a second without messages, PerSecond messages can be received at once. 0 is no limit. Pings, pongs and
	// small fragments always have a separate limit, idleFrames.
	PerSecond int
}

// defaultBuffer is the default size of a buffer, in bytes.
const defaultBuffer = 4096

// errResponseTooLong is the error for a response to the upgrade request that is too long.
var errResponseTooLong = errors.New("the response to the upgrade request is too long; the server is not a WebSocket server")

// ErrTooBig is returned by Receive for a message that is larger than MaxMessage.
var ErrTooBig = errors.New("message too big")

// ErrQuiet is returned by Receive if Options.Quiet has passed. It wraps io.EOF.
var ErrQuiet = fmt.Errorf("no message and no pong in time: %w", io.EOF)

// Conn is a WebSocket connection. One goroutine may call Receive while another one sends. Ping, Close and Drop are safe
// for concurrent use.
type Conn struct {
	ws          *websocket.Conn
	sendTimeout time.Duration
	quiet       time.Duration // see Options.Quiet
	pace        limit.Pace    // limits received messages
	buf         []byte        // the message that Receive has returned
	once        sync.Once     // lets only the first call of Close or Drop close the connection
	over        chan struct{} // closed when the connection is closed
	reason      string        // see CloseReason
}

// Accept upgrades an HTTP request to a WebSocket. It accepts every Origin, which the caller must check. If it returns an
// error, it has already written the response.
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	up := websocket.Upgrader{
		ReadBufferSize: cmp.Or(o.Buffer, defaultBuffer), WriteBufferSize: cmp.Or(o.Buffer, defaultBuffer), HandshakeTimeout: 10 * time.Second,
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

// Refusal is the error of Dial if the server responded with an HTTP status instead of an upgrade.
type Refusal struct {
	URL    string
	Status int    // HTTP status
	Text   string // first 500 bytes of the body
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("refused: %s answered %d %s: %s", r.URL, r.Status, http.StatusText(r.Status), r.Text)
}

// Dial opens a WebSocket to a URL, within 10 s. The error is a *Refusal if the server responded without an upgrade. Errors
// contain the URL without its query, which may contain a key.
func Dial(ctx context.Context, url string, o Options) (*Conn, error) {
	return dial(ctx, url, o, new(net.Dialer).DialContext)
}

// dial is like Dial, but opens the TCP connection by the function connect.
func dial(ctx context.Context, url string, o Options, connect func(ctx context.Context, network, address string) (net.Conn, error)) (*Conn, error) {
	withoutQuery, _, _ := strings.Cut(url, "?")
	stop := func() bool { return true }
	over := make(chan struct{})
	var conn *opening
	d := websocket.Dialer{HandshakeTimeout: 10 * time.Second, ReadBufferSize: defaultBuffer, WriteBufferSize: defaultBuffer}
	// The TLS handshake is not left to the library, because frames can be counted only after decryption.
	open := func(secure bool) func(context.Context, string, string) (net.Conn, error) {
		return func(dialling context.Context, network, address string) (net.Conn, error) {
			tcp, err := connect(dialling, network, address)
			if err != nil {
				return nil, err
			}
			// During the handshake the library respects the deadline of a context, but not its cancellation.
			stop = context.AfterFunc(ctx, func() { _ = tcp.Close() })
			c := tcp
			if secure {
				host, _, _ := net.SplitHostPort(address) // the library passes a valid address
				inTLS := tls.Client(tcp, &tls.Config{ServerName: host})
				if err := inTLS.HandshakeContext(dialling); err != nil {
					_ = tcp.Close()
					return nil, err
				}
				c = inTLS
			}
			conn = newOpening(c, over)
			return conn, nil
		}
	}
	d.NetDialContext, d.NetDialTLSContext = open(false), open(true)
	ws, response, err := d.DialContext(ctx, url, o.Header)
	if !stop() {
		return nil, fmt.Errorf("open %s: %w", withoutQuery, ctx.Err())
	}
	if err != nil {
		if response != nil {
			text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
			return nil, &Refusal{URL: withoutQuery, Status: response.StatusCode, Text: string(text)}
		}
		return nil, fmt.Errorf("open %s: %w", withoutQuery, err)
	}
	conn.open = true // no other goroutine is reading now
	return wrap(ws, o, over), nil
}

// wrap returns a Conn for an open WebSocket.
func wrap(ws *websocket.Conn, o Options, over chan struct{}) *Conn {
	ws.SetReadLimit(int64(o.MaxMessage))
	o.SendWithin = cmp.Or(o.SendWithin, 10*time.Second)
	c := &Conn{ws: ws, sendTimeout: o.SendWithin, quiet: o.Quiet, buf: make([]byte, 0, 1024), over: over}
	if o.PerSecond > 0 {
		c.pace = limit.PerSecond(o.PerSecond)
	}
	if c.quiet > 0 {
		ws.SetPongHandler(func(string) error { return c.extendDeadline() })
	}
	return c
}

// extendDeadline sets the read deadline to Options.Quiet from now.
func (c *Conn) extendDeadline() error { return c.ws.SetReadDeadline(time.Now().Add(c.quiet)) }

// Ping sends a ping. It does not wait for the pong.
func (c *Conn) Ping() error {
	return c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.sendTimeout))
}

// Receive waits for the next message and returns it. data is valid until the next call. After an error the connection
// cannot be used any more. The error is io.EOF if the connection has ended, with or without a close frame, and ErrQuiet if
// Options.Quiet has passed. It is ErrTooBig for a message larger than Options.MaxMessage. Another error means that the other
// side has broken the protocol.
func (c *Conn) Receive() (isText bool, data []byte, err error) {
	if c.quiet > 0 {
		if err := c.extendDeadline(); err != nil {
			return false, nil, endError(err)
		}
	}
	kind, r, err := c.ws.NextReader()
	if err != nil {
		if closed, is := errors.AsType[*websocket.CloseError](err); is && closed.Code != websocket.CloseAbnormalClosure {
			c.reason = closed.Text
		}
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

// CloseReason returns the reason in the other side's close frame, or "" if there is none. It may be called by the
// goroutine that calls Receive, once Receive has returned an error.
func (c *Conn) CloseReason() string { return c.reason }

// endError returns the error of Receive for an error of the library.
func endError(err error) error {
	var closed *websocket.CloseError
	var broken net.Error // for example a TCP reset, which a robot causes by closing a connection with unread data
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return ErrTooBig
	case errors.As(err, &broken) && broken.Timeout():
		return ErrQuiet
	case errors.As(err, &closed), errors.As(err, &broken), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.EOF
	}
	return fmt.Errorf("receive: %w", err)
}

// SendText sends a text message.
func (c *Conn) SendText(text []byte) error { return c.send(websocket.TextMessage, text) }

// SendBinary sends a binary message.
func (c *Conn) SendBinary(data []byte) error { return c.send(websocket.BinaryMessage, data) }

// send sends a message within Options.SendWithin. kind is a message type of the library.
func (c *Conn) send(kind int, data []byte) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(c.sendTimeout)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	return c.ws.WriteMessage(kind, data)
}

// Close sends a close frame and closes the connection, which makes a running Receive return. Only the first call of
// Close or Drop has an effect.
func (c *Conn) Close(code int, reason string) {
	c.once.Do(func() {
		close(c.over)
		frame := websocket.FormatCloseMessage(code, plain.Clip(reason, 120)) // the protocol allows 123 bytes of valid UTF-8
		// An error is ignored, since the other side may have disconnected already.
		_ = c.ws.WriteControl(websocket.CloseMessage, frame, time.Now().Add(time.Second))
		_ = c.ws.Close()
	})
}

// Drop closes the TCP connection without a close frame, as a robot does. Only the first call of Close or Drop has an
// effect.
func (c *Conn) Drop() {
	c.once.Do(func() {
		close(c.over)
		_ = c.ws.Close()
	})
}
