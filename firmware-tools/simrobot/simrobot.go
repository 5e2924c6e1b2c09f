// Package simrobot simulates a robot. It behaves as the Xiaozhi firmware does
// on a Stack-chan, its faults included: it checks in by OTA, opens its
// WebSocket only to talk, plays sound only in its Speaking state, queues 40
// packets and drops the newest beyond them, and is an MCP server with the
// tools of the real one. What would crash or hang a real robot ends the
// simulation with a [Crash].
//
// One goroutine owns a talk: the caller's, in [Robot.Talk]. A second one only
// receives. Time comes from package time alone, so a robot can run in a
// testing/synctest bubble.
//
//	reader ──messages──▶ session ──┬─▶ player   packets become sound, on its own clock
//	                               │     └─▶ echo     from the speaker to the microphone
//	                               ├─▶ mic      60 ms of sound becomes a packet
//	                               ├─▶ person   says the sentences, when the robot listens or over its answer
//	                               └─▶ mcp      tools, and their effects
package simrobot

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
)

// Sentence is spoken to the robot, as 16 kHz PCM. Times are counted from the first
// packet of an answer. They have no effect if the answer is shorter.
type Sentence struct {
	Text string
	PCM  []int16

	// Over is when it interrupts the answer to the previous sentence: by voice
	// alone in realtime mode, with a press of the button in manual mode. In auto
	// mode the microphone is closed then.
	Over time.Duration
	// TapAfter and WakeAfter interrupt the answer to this sentence, with a tap or
	// with Options.Wake.
	TapAfter, WakeAfter time.Duration
}

// Options describe a robot and its tasks.
type Options struct {
	OTA      string          // URL of the appliance's bootstrap
	MAC      string          // any spelling
	Firmware string          // one of Firmwares; "" is 2.2.4
	Mode     xiaozhi.Mode    // "" is auto, or realtime where echo is cancelled
	Framing  xiaozhi.Framing // 0 is the bootstrap's
	// Transport must be selected by the bootstrap; "" accepts either.
	Transport device.Transport
	AEC       AEC // where the echo is cancelled; "" is off

	Wake    string  // the wake word, which opens its channels in place of a tap
	WakePCM []int16 // its sound; the last 2 s are sent before listen detect

	Asleep  bool            // Talk begins without a channel; implies Forever
	Say     []Sentence      // one turn each
	Events  []xiaozhi.Event // sent when the channel has opened
	Stay    bool            // keeps the channel after the last answer
	Forever bool            // Talk lasts until ctx ends: between channels it waits for Tap, WakeWord, Press or Sense

	StopReadingAfter time.Duration // of the first hello; 0 is never

	Upgrades bool // installs and boots the firmware that it is offered; fetches assets, too
	Crashes  bool // new firmware crashes before its check-in

	Network     *Network       // for the sound of talks over MQTT; nil changes nothing
	Authorities *x509.CertPool // trusted by the firmware; nil is the system's, and TLS on port 8883 only

	AnswerWithin time.Duration               // of the end of a sentence; 0 is 30 s
	Record       bool                        // records the speaker, for Sound
	Play         func(rate int, pcm []int16) // receives the sound of the speaker in real time; it must not block
	MoreTools    []device.Tool               // listed after the robot's own; they answer true
	FlashFile    string                      // holds the flash between runs; "" keeps it in memory
	Transcript   io.Writer                   // receives every frame as a line of JSON, secrets blanked
	Observe      func(Observation)

	dial func(ctx context.Context, url string, h http.Header) (channel, error)
}

// Robot is one simulated robot. Its methods belong to one goroutine, except
// Tap, WakeWord, Press, Release, Sense and StopReading.
type Robot struct {
	o          Options
	id         device.ID
	firmware   firmware
	flash      *flash
	http       *http.Client
	wanted     string // URL of an image that the upgrade tool was given, for the next boot
	flashed    int    // images installed since the last answer without an offer
	body       body
	tools      []tool
	person     person
	stats      Stats
	speaker    speaker
	audio      xiaozhi.AudioParams // of the last server hello; outlives a channel
	commands   chan command
	notReading atomic.Bool // no longer reads its socket
	wakeOff    bool        // detects no wake word until its state changes, also in a later channel

	byMQTT      bool      // the last bootstrap had an mqtt section
	control     *control  // nil while it is not connected by MQTT
	unhandled   []arrival // texts that the last talk by MQTT did not handle
	lastSession string    // id of the latest talk by MQTT, sent until the next
	reconnectAt time.Time // when it connects again, if it is idle then
}

// New checks the options and returns a robot that is switched off.
func New(o Options) (*Robot, error) {
	id, err := device.ParseID(o.MAC)
	if err != nil {
		return nil, fmt.Errorf("the robot's MAC: %w", err)
	}
	f, err := findFirmware(o.Firmware)
	if err != nil {
		return nil, err
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	stored, err := loadFlash(o.FlashFile, id)
	if err != nil {
		return nil, err
	}
	r := &Robot{
		o: o, id: id, firmware: f, flash: stored, http: newHTTPClient(),
		person: person{sentences: o.Say}, commands: make(chan command, 8),
		audio: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60},
	}
	r.setBuild(stored.Running)
	r.speaker.records, r.speaker.output = o.Record, o.Play
	r.tools = toolset(r)
	return r, nil
}

// complete fills in the defaults, and refuses contradictions.
func (o *Options) complete() error {
	if !slices.Contains([]device.Transport{"", device.WebSocket, device.MQTT}, o.Transport) {
		return fmt.Errorf("transport %q: want websocket or mqtt", o.Transport)
	}
	o.Forever = o.Forever || o.Asleep
	o.AEC = cmp.Or(o.AEC, AECOff)
	if !slices.Contains([]AEC{AECOff, AECDevice, AECServer}, o.AEC) {
		return fmt.Errorf("AEC %q: want off, device or server", o.AEC)
	}
	o.Mode = cmp.Or(o.Mode, o.AEC.mode())
	if !slices.Contains([]xiaozhi.Mode{xiaozhi.Auto, xiaozhi.Manual, xiaozhi.Realtime}, o.Mode) {
		return fmt.Errorf("mode %q: want auto, manual or realtime", o.Mode)
	}
	if o.Framing != 0 && !o.Framing.Valid() {
		return fmt.Errorf("framing %d: want 1, 2 or 3", o.Framing)
	}
	o.AnswerWithin = cmp.Or(o.AnswerWithin, 30*time.Second)
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	if o.dial == nil {
		o.dial = dial
	}
	for i, s := range o.Say {
		switch {
		case s.Over > 0 && (i == 0 || o.Mode == xiaozhi.Auto):
			return fmt.Errorf("sentence %q interrupts an answer: it needs a sentence before it, and a mode other than auto", s.Text)
		case s.WakeAfter > 0 && o.Wake == "":
			return fmt.Errorf("sentence %q: a wake word is to interrupt its answer, but Wake is empty", s.Text)
		}
	}
	return nil
}

// ID returns the robot's id.
func (r *Robot) ID() device.ID { return r.id }

// Stats returns the robot's counters. They are complete when Talk has returned.
func (r *Robot) Stats() Stats { return r.stats }

// Sound returns the recorded sound of the speaker from its first sound on, with
// silence in between, and its rate in Hz. It needs Options.Record, and is complete
// when Talk has returned.
func (r *Robot) Sound() (rate int, pcm []int16) { return r.speaker.rate, r.speaker.pcm }

// Run switches the robot on: it boots and holds its talk.
func (r *Robot) Run(ctx context.Context) error {
	if err := r.Boot(ctx); err != nil {
		return err
	}
	return r.Talk(ctx)
}

// Crash is the error for something that would crash or hang a real robot.
type Crash struct {
	Cause string // what was sent, and its effect on a robot
}

func (c *Crash) Error() string { return "a real robot would crash: " + c.Cause }

func crash(format string, a ...any) error { return &Crash{Cause: fmt.Sprintf(format, a...)} }

// Errors that are not crashes.
var (
	// ErrMQTT is returned by CheckIn for a bootstrap that selects MQTT without an
	// endpoint.
	ErrMQTT = errors.New("the robot is to use MQTT, but the bootstrap has no endpoint for it")
	// ErrTransport is wrapped by CheckIn if the bootstrap selects another transport than
	// Options.
	ErrTransport = errors.New("the appliance selects another transport; perch robot set ROBOT transport=mqtt changes that")
	// ErrHello is returned by Talk when the server did not answer hello within 10 s.
	ErrHello = errors.New("no hello from the server within 10 s")
	// ErrUnanswered is wrapped by Talk for a sentence that got no spoken answer.
	ErrUnanswered = errors.New("no answer")
)
