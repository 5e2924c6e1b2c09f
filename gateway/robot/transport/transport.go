// Package transport has the two kinds of channel between a session and a robot: a WebSocket, or an MQTT
// connection for messages with UDP datagrams for sound.
package transport

import (
	"perch/device/xiaozhi"
	"perch/socket"
)

// Transport is the channel of one session. Receive must be called by one goroutine only, and SendText and
// SendAudio by one goroutine only. Close may be called by any goroutine, more than once.
type Transport interface {
	// Receive waits for a text message or a packet of audio. Both are valid until the next call. After an error
	// the channel cannot be used any more; io.EOF means that the channel has ended.
	Receive() (text []byte, audio xiaozhi.Audio, isText bool, err error)
	SendText(text []byte) error
	SendAudio(a xiaozhi.Audio) error
	// Audible returns a Go channel that is closed once sound can reach the robot, or nil if sound can always
	// reach the robot.
	Audible() <-chan struct{}
	// Close closes the channel and wakes Receive. code and reason are those of a WebSocket close frame.
	Close(code int, reason string)
}

// WebSocket is the Transport of a robot that is connected by WebSocket.
type WebSocket struct {
	conn      *socket.Conn
	framing   xiaozhi.Framing
	onInvalid func(error)
	buf       []byte
}

// NewWebSocket returns a transport on a connection. It calls onInvalid with the error of each frame that
// does not match the framing.
func NewWebSocket(conn *socket.Conn, f xiaozhi.Framing, onInvalid func(error)) *WebSocket {
	return &WebSocket{conn: conn, framing: f, onInvalid: onInvalid}
}

// Receive implements Transport. It skips frames that do not match the framing.
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
		t.onInvalid(err)
	}
}

// SendText implements Transport.
func (t *WebSocket) SendText(text []byte) error { return t.conn.SendText(text) }

// SendAudio implements Transport.
func (t *WebSocket) SendAudio(a xiaozhi.Audio) error {
	t.buf = t.framing.Append(t.buf[:0], a)
	return t.conn.SendBinary(t.buf)
}

// Audible implements Transport. It returns nil.
func (*WebSocket) Audible() <-chan struct{} { return nil }

// Close implements Transport.
func (t *WebSocket) Close(code int, reason string) { t.conn.Close(code, reason) }
