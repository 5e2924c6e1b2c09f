package simrobot

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"perch/device/xiaozhi"
	"perch/limit"
	"perch/socket"
)

// channel is a connection for a conversation: a WebSocket, or MQTT with UDP. One goroutine may
// receive while another sends.
type channel interface {
	Receive() (isText bool, data []byte, err error)
	SendText(text []byte) error
	SendBinary(data []byte) error
	Drop() // closes a WebSocket without a close frame, as the firmware does
}

// helloTimeout bounds the opening of a WebSocket or of the connection to the MQTT server, each write to
// the MQTT server, and the wait for the server's hello.
const helloTimeout = 10 * time.Second

// redialDelay is the time between attempts to open a WebSocket for an event. Dotty's firmware makes
// three attempts, other firmware only one.
const redialDelay = 500 * time.Millisecond

// connect opens a channel with the transport that the last bootstrap selected.
func (r *Robot) connect(ctx context.Context, op opening, framing xiaozhi.Framing) (c channel, err error) {
	if r.byMQTT {
		control, err := r.connectMQTT(ctx)
		if err != nil {
			return nil, err
		}
		return newMQTTChannel(control, r), nil
	}
	tries := 1
	if op.do == doSense && r.firmware.events {
		tries = 3
	}
	for try := range tries {
		if try > 0 {
			if err := sleep(ctx, redialDelay); err != nil {
				return nil, err
			}
		}
		if c, err = r.o.dial(ctx, r.flash.WebSocket.URL, r.upgradeHeader(framing)); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// dial opens a WebSocket. It is the default value of Options.dial.
func dial(ctx context.Context, url string, h http.Header) (channel, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	c, err := socket.Dial(ctx, url, socket.Options{MaxMessage: limit.File, Header: h})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// upgradeHeader returns the headers of the firmware's WebSocket upgrade request: no
// User-Agent, no Origin, and a Host without the port.
func (r *Robot) upgradeHeader(framing xiaozhi.Framing) http.Header {
	h := http.Header{"User-Agent": {""}, "Protocol-Version": {strconv.Itoa(int(framing))}, "Device-Id": {r.id.MAC()}, "Client-Id": {r.flash.UUID}}
	if u, err := url.Parse(r.flash.WebSocket.URL); err == nil {
		h.Set("Host", u.Hostname())
	}
	switch token := r.flash.WebSocket.Token; {
	case token == "":
	case strings.Contains(token, " "):
		h.Set("Authorization", token)
	default:
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}

// arrival is a received message, or the end of a channel or of the connection to the MQTT server.
type arrival struct {
	at     time.Time // time of arrival
	isText bool
	data   []byte
	err    error // reason for the end; nil for a message
}

// receive passes the messages of c, and the end of c, to the Go channel named to. It returns when c is
// closed or ctx ends. After StopReading it reads at most one more message, and then waits for the end of ctx.
func (r *Robot) receive(ctx context.Context, c channel, to chan<- arrival) {
	for !r.notReading.Load() {
		isText, data, err := c.Receive()
		a := arrival{at: time.Now(), isText: isText, data: append([]byte(nil), data...), err: err}
		select {
		case to <- a:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
	<-ctx.Done()
}

// StopReading makes the robot stop reading its socket, as if its network task hung. The
// server's messages pile up, while the robot continues to send. The robot may read one more
// message. StopReading may be called from any goroutine, and cannot be undone.
func (r *Robot) StopReading() { r.notReading.Store(true) }

// sendText sends a message in a single frame. It returns an error for a message of more than
// xiaozhi.MaxMessage bytes, because the firmware has only 16 bits for the length.
func (s *session) sendText(now time.Time, text []byte) error {
	if len(text) > xiaozhi.MaxMessage {
		return fmt.Errorf("the robot cannot send %d bytes in one frame: its channel would break", len(text))
	}
	s.r.record(now, "robot", true, text)
	if err := s.ch.SendText(text); err != nil {
		return &closedError{err}
	}
	return nil
}

// send sends a message of the protocol.
func (s *session) send(now time.Time, m xiaozhi.FromRobot) error {
	return s.sendText(now, xiaozhi.AppendFromRobot(nil, s.id, m))
}

// sendAudio sends a packet of sound. Its timestamp is lost unless the framing is 2.
func (s *session) sendAudio(now time.Time, a xiaozhi.Audio) error {
	s.frame = s.framing.Append(s.frame[:0], a)
	s.r.record(now, "robot", false, s.frame)
	if err := s.ch.SendBinary(s.frame); err != nil {
		return &closedError{err}
	}
	s.r.stats.Sent++
	if a.Timestamp != 0 && s.framing == xiaozhi.Framing2 {
		s.r.stats.Stamped++
	}
	return nil
}

// openError is the error for a channel that could not be opened.
type openError struct{ error }

func (e *openError) Unwrap() error { return e.error }

// closedError is the error for a channel that the server closed, or that broke.
type closedError struct{ cause error }

func (e *closedError) Error() string { return "the channel has closed: " + e.cause.Error() }
func (e *closedError) Unwrap() error { return e.cause }
