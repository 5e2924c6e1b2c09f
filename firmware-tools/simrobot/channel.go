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
	"perch/gateway/socket"
)

// channel is the robot's WebSocket. One goroutine receives, one other sends.
type channel interface {
	Receive() (isText bool, data []byte, err error)
	SendText(text []byte) error
	SendBinary(data []byte) error
	Drop() // closes TCP without a word, as a robot ends every talk
}

// helloLimit is how long the firmware waits for the WebSocket, and then again
// for the server's hello.
const helloLimit = 10 * time.Second

func dial(ctx context.Context, url string, h http.Header) (channel, error) {
	ctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	c, err := socket.Dial(ctx, url, socket.Options{MaxMessage: mostReply, Header: h})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// upgradeHeader is what the firmware sends with its upgrade request: no
// User-Agent, no Origin, and a Host without its port.
func (r *Robot) upgradeHeader(framing xiaozhi.Framing) http.Header {
	h := http.Header{}
	h.Set("User-Agent", "")
	h.Set("Protocol-Version", strconv.Itoa(int(framing)))
	h.Set("Device-Id", r.id.MAC())
	h.Set("Client-Id", r.flash.UUID)
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

// arrival is one message as it came, and when.
type arrival struct {
	at     time.Time
	isText bool
	data   []byte
	err    error // the channel is gone; nothing follows
}

// receive hands over all that arrives, until the channel is gone or stop is
// closed.
func receive(c channel, to chan<- arrival, stop <-chan struct{}) {
	for {
		isText, data, err := c.Receive()
		a := arrival{at: time.Now(), isText: isText, data: append([]byte(nil), data...), err: err}
		select {
		case to <- a:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// sendText sends a message of the firmware's, who writes single frames with a
// 16-bit length only.
func (s *session) sendText(now time.Time, text []byte) error {
	if len(text) > xiaozhi.MaxMessage {
		return fmt.Errorf("the robot cannot send %d bytes in one frame: its channel breaks", len(text))
	}
	s.r.script.write(now, "robot", true, text)
	if err := s.ch.SendText(text); err != nil {
		return &gone{err}
	}
	return nil
}

func (s *session) send(now time.Time, m xiaozhi.FromRobot) error {
	return s.sendText(now, xiaozhi.AppendFromRobot(nil, s.id, m))
}

func (s *session) sendAudio(now time.Time, packet []byte) error {
	s.frame = s.framing.Append(s.frame[:0], xiaozhi.Audio{Opus: packet})
	s.r.script.write(now, "robot", false, s.frame)
	if err := s.ch.SendBinary(s.frame); err != nil {
		return &gone{err}
	}
	s.r.stats.Sent++
	return nil
}

// gone is a channel that the server has closed, or that broke.
type gone struct{ cause error }

func (g *gone) Error() string { return "the channel is gone: " + g.cause.Error() }
func (g *gone) Unwrap() error { return g.cause }
