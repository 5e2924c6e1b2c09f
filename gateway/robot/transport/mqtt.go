package transport

import (
	"io"
	"sync"
	"time"

	"perch/device/xiaozhi"
	"perch/gateway/robot/control"
	"perch/gateway/robot/udp"
)

// textsAhead is how many messages of a robot may wait for its session.
const textsAhead = 16

// MQTT is the Transport of one talk of a robot that is connected by MQTT: texts pass through its
// connection, which outlasts the talk, and sound through datagrams.
type MQTT struct {
	session string
	conn    *control.Conn
	sound   *udp.Talk
	ended   func()
	texts   chan []byte
	over    chan struct{} // closed when the talk has ended, on either side
	once    sync.Once

	// Receive uses these.
	jitter  udp.Jitter
	arrived udp.Arrived
}

// NewMQTT returns the transport of a session with an id. It calls ended when the talk has ended,
// on either side.
func NewMQTT(session string, conn *control.Conn, sound *udp.Talk, ended func()) *MQTT {
	return &MQTT{session: session, conn: conn, sound: sound, ended: ended, texts: make(chan []byte, textsAhead), over: make(chan struct{})}
}

// Session returns the session's id.
func (t *MQTT) Session() string { return t.session }

// Deliver gives the session a text of the robot.
func (t *MQTT) Deliver(text []byte) {
	select {
	case t.texts <- text:
	case <-t.over:
	}
}

// Receive implements Transport. A packet of sound that is lost has Lost set.
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
		case <-t.over:
			return nil, xiaozhi.Audio{}, false, io.EOF
		}
	}
}

// SendText implements Transport.
func (t *MQTT) SendText(text []byte) error { return t.conn.Send(text) }

// SendAudio implements Transport. It returns no error: the robot's connection shows whether it is there.
func (t *MQTT) SendAudio(a xiaozhi.Audio) error {
	t.sound.Send(a)
	return nil
}

// Audible implements Transport: the robot's first datagram shows where it is.
func (t *MQTT) Audible() <-chan struct{} { return t.sound.Audible() }

// Close implements Transport. It says goodbye, unless the robot has ended the talk; the robot's
// connection remains.
func (t *MQTT) Close(int, string) {
	select {
	case <-t.over:
	default:
		_ = t.conn.Send(xiaozhi.AppendToRobot(nil, "", xiaozhi.Goodbye{Session: t.session})) // if it cannot be sent, the connection ends
	}
	t.Abandon()
}

// Abandon ends the talk without a goodbye.
func (t *MQTT) Abandon() {
	t.once.Do(func() {
		close(t.over)
		t.sound.Close()
		t.ended()
	})
}
