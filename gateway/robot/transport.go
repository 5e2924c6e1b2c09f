package robot

import (
	"perch/device/xiaozhi"
	"perch/gateway/robot/tools"
	"perch/socket"
)

// transport is the channel to a robot. Receive is called by one goroutine and
// the Sends by one other; Close by any, and more than once.
type transport interface {
	// Begin returns where the sound of the session with that id is, for the
	// appliance's hello; nil where sound comes as the texts do.
	Begin(session string) *xiaozhi.UDP
	// Toolbox returns the robot's tools where they outlast the session, whose requests
	// to them go by send while it lasts; nil where they are the session's own.
	Toolbox(send func(xiaozhi.Request) error) *tools.Client
	// Audible is closed once sound reaches the robot; it is nil where it always does.
	Audible() <-chan struct{}
	// Receive waits for a text or audio, which is valid until the next call.
	Receive() (text []byte, audio xiaozhi.Audio, isText bool, err error)
	SendText(text []byte) error
	SendAudio(a xiaozhi.Audio) error
	// Close ends the channel and wakes Receive.
	Close(code int, reason string)
}

// webSocket is the transport of the firmware.
type webSocket struct {
	conn    *socket.Conn
	framing xiaozhi.Framing
	buf     []byte
	bad     func(error) // gets the errors of frames that cannot be parsed
}

// Begin implements transport.
func (*webSocket) Begin(string) *xiaozhi.UDP { return nil }

// Audible implements transport.
func (*webSocket) Audible() <-chan struct{} { return nil }

// Toolbox implements transport.
func (*webSocket) Toolbox(func(xiaozhi.Request) error) *tools.Client { return nil }

func (t *webSocket) Receive() ([]byte, xiaozhi.Audio, bool, error) {
	for {
		isText, data, err := t.conn.Receive()
		if err != nil || isText {
			return data, xiaozhi.Audio{}, isText, err
		}
		audio, err := t.framing.Parse(data)
		if err == nil {
			return nil, audio, false, nil
		}
		t.bad(err)
	}
}

func (t *webSocket) SendText(text []byte) error { return t.conn.SendText(text) }

func (t *webSocket) SendAudio(a xiaozhi.Audio) error {
	t.buf = t.framing.Append(t.buf[:0], a)
	return t.conn.SendBinary(t.buf)
}

func (t *webSocket) Close(code int, reason string) { t.conn.Close(code, reason) }
