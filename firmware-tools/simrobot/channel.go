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

// channel is the robot's WebSocket, or its MQTT and UDP. One goroutine receives, one
// other sends.
type channel interface {
	Receive() (isText bool, data []byte, err error)
	SendText(text []byte) error
	SendBinary(data []byte) error
	Drop() // closes TCP without a close frame, as a robot ends every talk
}

// helloLimit is how long the firmware waits for the WebSocket, and then as long
// for the server's hello.
const helloLimit = 10 * time.Second

// dialAgain is the time between the three attempts of dotty's build to open a
// channel for an event.
const dialAgain = 500 * time.Millisecond

func (r *Robot) connect(ctx context.Context, how opening, framing xiaozhi.Framing) (c channel, err error) {
	if r.byMQTT {
		control, err := r.online(ctx)
		if err != nil {
			return nil, err
		}
		return newTalkChannel(control, r), nil
	}
	tries := 1
	if how.do == doSense && r.firmware.events {
		tries = 3
	}
	for try := range tries {
		if try > 0 {
			if err := sleep(ctx, dialAgain); err != nil {
				return nil, err
			}
		}
		if c, err = r.o.dial(ctx, r.flash.WebSocket.URL, r.upgradeHeader(framing)); err == nil {
			return c, nil
		}
	}
	return nil, err
}

func dial(ctx context.Context, url string, h http.Header) (channel, error) {
	ctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	c, err := socket.Dial(ctx, url, socket.Options{MaxMessage: limit.File, Header: h})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// upgradeHeader returns the headers of the firmware's upgrade request: no
// User-Agent, no Origin, and a Host without its port.
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

// arrival is a message, with its time.
type arrival struct {
	at     time.Time
	isText bool
	data   []byte
	err    error // the channel is closed; the last arrival
}

// receive forwards messages until the channel is closed or ctx ends.
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

// StopReading stops the robot from reading its socket, as if its network task
// hung: the server's messages pile up, while the robot goes on sending. One more
// message may be read. It may be called from any goroutine, and cannot be undone.
func (r *Robot) StopReading() { r.notReading.Store(true) }

// sendText sends a message in a single frame, whose length has 16 bits in the firmware.
func (s *session) sendText(now time.Time, text []byte) error {
	if len(text) > xiaozhi.MaxMessage {
		return fmt.Errorf("the robot cannot send %d bytes in one frame: its channel breaks", len(text))
	}
	s.r.record(now, "robot", true, text)
	if err := s.ch.SendText(text); err != nil {
		return &gone{err}
	}
	return nil
}

func (s *session) send(now time.Time, m xiaozhi.FromRobot) error {
	return s.sendText(now, xiaozhi.AppendFromRobot(nil, s.id, m))
}

// sendAudio sends a packet of the microphone. Only framing 2 has a timestamp.
func (s *session) sendAudio(now time.Time, a xiaozhi.Audio) error {
	s.frame = s.framing.Append(s.frame[:0], a)
	s.r.record(now, "robot", false, s.frame)
	if err := s.ch.SendBinary(s.frame); err != nil {
		return &gone{err}
	}
	s.r.stats.Sent++
	if a.Timestamp != 0 && s.framing == xiaozhi.Framing2 {
		s.r.stats.Stamped++
	}
	return nil
}

// unopened is the error for a channel that could not be opened.
type unopened struct{ error }

func (u *unopened) Unwrap() error { return u.error }

// gone is the error for a channel that the server closed, or that broke.
type gone struct{ cause error }

func (g *gone) Error() string { return "the channel is gone: " + g.cause.Error() }
func (g *gone) Unwrap() error { return g.cause }
