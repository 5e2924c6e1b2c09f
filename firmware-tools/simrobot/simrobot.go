// Package simrobot is a robot made of software. It behaves as the Xiaozhi
// firmware does on a Stack-chan, its faults included: it checks in by OTA,
// opens its WebSocket only to talk, hears sound only while it is in its
// Speaking state, keeps 40 packets and drops the newest beyond them, and is
// an MCP server with the tools of the real one. What would crash or hang a
// real robot ends the simulation with a [Crash] that says so.
//
// One goroutine owns a talk: the caller's, in [Robot.Talk]. A second one only
// receives. Time comes from package time alone, so a robot may live in a
// testing/synctest bubble.
//
//	reader ──messages──▶ session ──┬─▶ player   packets become sound, on its own clock
//	                               ├─▶ mic      60 ms of sound becomes a packet
//	                               ├─▶ person   who says the sentences, when the robot listens
//	                               └─▶ mcp      tools, and what they changed
package simrobot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
)

// Sentence is something a person says to the robot, as 16 kHz PCM.
type Sentence struct {
	Text string
	PCM  []int16
}

// Options say what a robot is and what it is to do.
type Options struct {
	OTA      string          // URL of the appliance's bootstrap
	MAC      string          // any spelling
	Firmware string          // one of Firmwares; "" is 2.2.4
	Mode     xiaozhi.Mode    // "" is auto
	Framing  xiaozhi.Framing // 0 is what the bootstrap says

	Say    []Sentence      // one turn each
	Events []xiaozhi.Event // sent when the channel has opened
	Stay   bool            // keeps the channel when all is said

	AnswerWithin time.Duration // of the end of a sentence; 0 is 30 s
	Record       bool          // keeps what the speaker plays, for Sound
	MoreTools    []device.Tool // listed after the robot's own; they answer true
	FlashFile    string        // holds the flash between runs; "" keeps it in memory
	Transcript   io.Writer     // receives every frame as a line of JSON, secrets blanked
	Observe      func(Happening)

	dial func(ctx context.Context, url string, h http.Header) (channel, error)
}

// Robot is one simulated robot. Its methods belong to one goroutine, but for
// Tap and WakeWord.
type Robot struct {
	o        Options
	id       device.ID
	firmware firmware
	flash    *flash
	http     *http.Client
	boot     Bootstrap
	body     body
	tools    []tool
	person   person
	stats    Stats
	speaker  recorder
	audio    xiaozhi.AudioParams // of the last server hello: it outlives a channel
	commands chan command
	script   *transcript
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
	switch o.Mode {
	case "":
		o.Mode = xiaozhi.Auto
	case xiaozhi.Auto, xiaozhi.Manual, xiaozhi.Realtime:
	default:
		return nil, fmt.Errorf("mode %q: there are auto, manual and realtime", o.Mode)
	}
	if o.Framing != 0 && !o.Framing.Valid() {
		return nil, fmt.Errorf("framing %d: there are 1, 2 and 3", o.Framing)
	}
	if o.AnswerWithin == 0 {
		o.AnswerWithin = 30 * time.Second
	}
	if o.Observe == nil {
		o.Observe = func(Happening) {}
	}
	if o.dial == nil {
		o.dial = dial
	}
	kept, err := loadFlash(o.FlashFile, id)
	if err != nil {
		return nil, err
	}
	r := &Robot{
		o: o, id: id, firmware: f, flash: kept, http: newHTTPClient(),
		person: person{sentences: o.Say}, commands: make(chan command, 8), script: newTranscript(o.Transcript),
		audio: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60},
	}
	r.speaker.on = o.Record
	r.tools = toolset(r)
	return r, nil
}

// ID is the robot's id.
func (r *Robot) ID() device.ID { return r.id }

// Stats are what the robot has counted. They are complete when Talk has
// returned.
func (r *Robot) Stats() Stats { return r.stats }

// Sound is what the speaker played, from its first sound on, with the times
// in between as silence, and its rate in Hz. It needs Options.Record, and is
// complete when Talk has returned.
func (r *Robot) Sound() (rate int, pcm []int16) { return r.speaker.rate, r.speaker.pcm }

// Run switches the robot on: it boots and holds its talk.
func (r *Robot) Run(ctx context.Context) error {
	if err := r.Boot(ctx); err != nil {
		return err
	}
	return r.Talk(ctx)
}

// Crash is what would crash or hang a real robot.
type Crash struct {
	Cause string // what was sent, and what it does to a robot
}

func (c *Crash) Error() string { return "a real robot would not survive this: " + c.Cause }

func crash(format string, a ...any) error { return &Crash{Cause: fmt.Sprintf(format, a...)} }

// Errors of a robot that is well.
var (
	// ErrMQTT is returned by CheckIn for a bootstrap that makes a robot use
	// MQTT, which this one does not speak.
	ErrMQTT = errors.New("the robot would use MQTT, not a WebSocket")
	// ErrHello is returned by Talk when the server did not answer hello within 10 s.
	ErrHello = errors.New("no hello from the server within 10 s")
	// ErrUnanswered is wrapped by Talk for a sentence that got no spoken answer.
	ErrUnanswered = errors.New("no answer")
)
