// Package transport has the channels on which sessions talk to robots: a WebSocket, or an MQTT
// connection for texts with datagrams for sound.
package transport

import (
	"perch/device/xiaozhi"
	"perch/socket"
)

// Transport is the channel of one session. One goroutine calls Receive and one other the Sends;
// any may call Close, and more than once.
type Transport interface {
	// Receive waits for a text or audio, which is valid until the next call.
	Receive() (text []byte, audio xiaozhi.Audio, isText bool, err error)
	SendText(text []byte) error
	SendAudio(a xiaozhi.Audio) error
	// Audible is closed once sound reaches the robot; it is nil if it always does.
	Audible() <-chan struct{}
	// Close ends the channel and wakes Receive.
	Close(code int, reason string)
}

// WebSocket is a Transport.
type WebSocket struct {
	conn    *socket.Conn
	framing xiaozhi.Framing
	invalid func(error)
	buf     []byte
}

// NewWebSocket returns a transport on a connection. It calls invalid with the error of each frame
// that does not fit the framing.
func NewWebSocket(conn *socket.Conn, f xiaozhi.Framing, invalid func(error)) *WebSocket {
	return &WebSocket{conn: conn, framing: f, invalid: invalid}
}

// Receive implements Transport.
func (t *WebSocket) Receive() ([]byte, xiaozhi.Audio, bool, error) {
	for {
		isText, data, err := t.conn.Receive()
		if err != nil || isText {
			return data, xiaozhi.Audio{}, isText, err
		}
		audio, err := t.framing.Parse(data)
		if err == nil {
			return nil, audio, false, nil
		}
		t.invalid(err)
	}
}

// SendText implements Transport.
func (t *WebSocket) SendText(text []byte) error { return t.conn.SendText(text) }

// SendAudio implements Transport.
func (t *WebSocket) SendAudio(a xiaozhi.Audio) error {
	t.buf = t.framing.Append(t.buf[:0], a)
	return t.conn.SendBinary(t.buf)
}

// Audible implements Transport.
func (*WebSocket) Audible() <-chan struct{} { return nil }

// Close implements Transport.
func (t *WebSocket) Close(code int, reason string) { t.conn.Close(code, reason) }
