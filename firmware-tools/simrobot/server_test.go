package simrobot

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testMAC = "A0-B1-C2-D3-E4-F5"

// sent is a message of the robot.
type sent struct {
	at   time.Time
	text string // empty for a packet of sound
	data []byte // frame with a packet of sound; nil for a text
}

// server is both the channel of a simulated robot and the server at its other end, which a test
// controls.
type server struct {
	t       *testing.T
	to      chan arrival   // messages to the robot
	from    chan sent      // messages of the robot
	closed  chan struct{}  // closed when the robot closes the channel
	heard   int            // packets of sound that next has skipped
	decoder *voice.Decoder // used by drain
}

func (s *server) Receive() (bool, []byte, error) {
	select {
	case a := <-s.to:
		return a.isText, a.data, a.err
	case <-s.closed:
		return false, nil, io.EOF
	}
}

func (s *server) SendText(text []byte) error {
	s.from <- sent{at: time.Now(), text: string(text)}
	return nil
}

func (s *server) SendBinary(data []byte) error {
	s.from <- sent{at: time.Now(), data: slices.Clone(data)}
	return nil
}

func (s *server) Drop() { close(s.closed) }

// text sends text messages.
func (s *server) text(messages ...string) {
	for _, m := range messages {
		s.to <- arrival{isText: true, data: []byte(m)}
	}
}

// sound sends n packets at once.
func (s *server) sound(n int) {
	for range n {
		s.to <- arrival{data: tone}
	}
}

func (s *server) hangUp() { s.to <- arrival{err: io.EOF} }

// next waits for the robot's next text message, which must contain want, and returns the time at which
// it was sent. Packets of sound before the message are counted in s.heard.
func (s *server) next(want string) time.Time {
	s.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case m := <-s.from:
			if m.text == "" {
				s.heard++
				continue
			}
			if !strings.Contains(m.text, want) {
				s.t.Fatalf("the robot sent %s, want %s", m.text, want)
			}
			return m.at
		case <-limit:
			s.t.Fatalf("the robot never sent %s", want)
		}
	}
}

// quiet returns the number of packets of sound that the robot sends within d. A text message of the
// robot fails the test.
func (s *server) quiet(d time.Duration) int {
	s.t.Helper()
	n, limit := 0, time.After(d)
	for {
		select {
		case m := <-s.from:
			if m.text != "" {
				s.t.Fatalf("the robot sent %s within %v", m.text, d)
			}
			n++
		case <-limit:
			return n
		}
	}
}

const (
	hello      = `{"type":"hello","transport":"websocket","session_id":"s1","audio_params":{"sample_rate":24000,"frame_duration":60}}`
	ttsStart   = `{"type":"tts","state":"start"}`
	ttsStop    = `{"type":"tts","state":"stop"}`
	sentence   = `{"type":"tts","state":"sentence_start","text":"It is noon."}`
	stt        = `{"type":"stt","text":"what time is it"}`
	listenAuto = `{"session_id":"s1","type":"listen","state":"start","mode":"auto"}`
)

// tone is a packet of 60 ms of sound.
var tone = func() []byte {
	e, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		panic(err)
	}
	var packet []byte
	if err := e.Encode(sine(voice.SpeakerFrame, voice.SpeakerRate), func(p []byte) error { packet = append(packet, p...); return nil }); err != nil {
		panic(err)
	}
	return packet
}()

func sine(n, rate int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(i)/float64(rate)))
	}
	return pcm
}

// second returns a sentence of 960 ms, which is sixteen packets of the microphone.
func second(text string) Sentence {
	return Sentence{Text: text, PCM: sine(16*voice.MicFrame, voice.MicRate)}
}

// talk runs a robot in a synctest bubble, and calls script for each channel that the robot opens. It
// returns when Talk returns or, with Options.Stay, when the first call of script returns. err is as in
// live.
func talk(t *testing.T, o Options, script func(s *server, r *Robot)) (stats Stats, err error) {
	t.Helper()
	return live(t, o, func(n *network, r *Robot) {
		for {
			select {
			case s := <-n.channels:
				script(s, r)
			case err := <-n.done:
				n.done <- err
				return
			}
			if o.Stay {
				return
			}
		}
	})
}

// network passes all channels of a robot to a test.
type network struct {
	t        *testing.T
	channels chan *server
	dials    chan time.Time // times of the attempts to open a channel
	refuse   atomic.Int32   // number of attempts that fail from now on
	done     chan error     // receives the error of Talk
}

// live runs a robot in a synctest bubble until script returns. err is the error of Talk, or nil if Talk
// had not returned before.
func live(t *testing.T, o Options, script func(n *network, r *Robot)) (stats Stats, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t, channels: make(chan *server, 10), dials: make(chan time.Time, 100), done: make(chan error, 1)}
		o.dial = func(context.Context, string, http.Header) (channel, error) {
			n.dials <- time.Now()
			if n.refuse.Add(-1) >= 0 {
				return nil, errors.New("refused")
			}
			s := &server{t: t, to: make(chan arrival, 1000), from: make(chan sent, 10000), closed: make(chan struct{})}
			n.channels <- s
			return s, nil
		}
		r := newRobot(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { n.done <- r.Talk(ctx) }()
		defer func() {
			cancel()
			if err = <-n.done; errors.Is(err, context.Canceled) {
				err = nil
			}
			stats = r.Stats()
		}()
		script(n, r)
	})
	return stats, err
}

// channel waits until the robot opens its next channel, exchanges hellos, and returns the channel.
func (n *network) channel() *server {
	n.t.Helper()
	select {
	case s := <-n.channels:
		s.opens()
		return s
	case <-time.After(time.Hour):
		n.t.Fatal("the robot opened no channel in an hour")
		return nil
	}
}

// opens answers the robot's hello, and waits for text messages of the robot that contain texts. It
// returns the time of the last one.
func (s *server) opens(texts ...string) (at time.Time) {
	s.t.Helper()
	s.next(`"type":"hello"`)
	s.text(hello)
	for _, want := range texts {
		at = s.next(want)
	}
	return at
}

// greet answers the robot's hello, and waits until the robot listens in auto mode.
func (s *server) greet() time.Time {
	s.t.Helper()
	return s.opens(listenAuto)
}

// firstTexts returns parts of the text messages that a firmware sends on an open channel before it
// listens.
func firstTexts(firmware string) []string {
	if firmware == "dotty" {
		return []string{`"state_changed"`}
	}
	return nil
}

// speaks makes the robot enter its Speaking state, and sends n packets at once.
func (s *server) speaks(n int) {
	s.text(ttsStart)
	time.Sleep(20 * time.Millisecond)
	s.sound(n)
}

// pace sends n packets, one every 60 ms.
func (s *server) pace(n int) {
	for range n {
		s.sound(1)
		time.Sleep(voice.FrameDuration)
	}
}

// on returns a function for Options.Observe that passes the observations of type T to do.
func on[T Observation](do func(T)) func(Observation) {
	return func(h Observation) {
		if h, is := h.(T); is {
			do(h)
		}
	}
}
