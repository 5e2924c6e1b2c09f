package transport

import (
	"io"
	"sync"
	"time"

	"perch/device/xiaozhi"
	"perch/gateway/robot/control"
	"perch/gateway/robot/udp"
)

// maxTexts is how many messages of a robot may wait for Receive.
const maxTexts = 16

// MQTT is the Transport of one session of a robot that is connected by MQTT. Messages pass through the
// robot's connection, which stays open after the session, and sound passes through UDP datagrams.
type MQTT struct {
	session string // session ID
	conn    *control.Conn
	sound   *udp.Stream
	onEnd   func()
	texts   chan []byte
	ended   chan struct{} // closed when either side has ended the session
	once    sync.Once     // makes Abandon end the session only once

	// Only Receive uses the following fields.
	jitter  udp.Jitter
	arrived udp.Arrived
}

// NewMQTT returns the transport of the session with the ID session. It calls onEnd when either side ends the
// session.
func NewMQTT(session string, conn *control.Conn, sound *udp.Stream, onEnd func()) *MQTT {
	return &MQTT{session: session, conn: conn, sound: sound, onEnd: onEnd, texts: make(chan []byte, maxTexts), ended: make(chan struct{})}
}

// Session returns the session ID.
func (t *MQTT) Session() string { return t.session }

// Deliver makes Receive return a message of the robot. It blocks while maxTexts messages wait, and drops the
// message if the session has ended.
func (t *MQTT) Deliver(text []byte) {
	select {
	case t.texts <- text:
	case <-t.ended:
	}
}

// Receive implements Transport. In place of a lost packet it returns an xiaozhi.Audio with Lost set. Its only
// error is io.EOF, after the end of the session.
func (t *MQTT) Receive() ([]byte, xiaozhi.Audio, bool, error) {
	for {
		now := time.Now()
		if audio, lost, ok := t.jitter.Next(now); ok {
			audio.Lost = lost
			return nil, audio, false, nil
		}
		var giveUp <-chan time.Time
		if due := t.jitter.Deadline(); !due.IsZero() {
			giveUp = time.After(due.Sub(now))
		}
		select {
		case text := <-t.texts:
			return text, xiaozhi.Audio{}, true, nil
		case t.arrived = <-t.sound.Arrived():
			t.jitter.Add(t.arrived.Datagram(), time.Now())
		case <-giveUp:
		case <-t.ended:
			return nil, xiaozhi.Audio{}, false, io.EOF
		}
	}
}

// SendText implements Transport.
func (t *MQTT) SendText(text []byte) error { return t.conn.Send(text) }

// SendAudio implements Transport. It returns no error: the MQTT connection shows whether the robot is
// still connected.
func (t *MQTT) SendAudio(a xiaozhi.Audio) error {
	t.sound.Send(a)
	return nil
}

// Audible implements Transport. The robot's first datagram shows where to send sound.
func (t *MQTT) Audible() <-chan struct{} { return t.sound.Audible() }

// Close implements Transport, and ignores the code and the reason. It sends a goodbye, unless the session has
// ended already. The robot's connection stays open.
func (t *MQTT) Close(int, string) {
	select {
	case <-t.ended:
	default:
		_ = t.conn.Send(xiaozhi.AppendToRobot(nil, "", xiaozhi.Goodbye{Session: t.session})) // if this fails, the connection ends
	}
	t.Abandon()
}

// Abandon ends the session without sending a goodbye.
func (t *MQTT) Abandon() {
	t.once.Do(func() {
		close(t.ended)
		t.sound.Close()
		t.onEnd()
	})
}
