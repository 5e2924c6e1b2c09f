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
//	                               │     └─▶ echo     what of it comes back to the microphone
//	                               ├─▶ mic      60 ms of sound becomes a packet
//	                               ├─▶ person   who says the sentences, when the robot listens or over its answer
//	                               └─▶ mcp      tools, and what they changed
package simrobot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
)

// Sentence is something a person says to the robot, as 16 kHz PCM. Times are
// counted from the first packet of an answer, and come to nothing where the
// robot has fallen silent by then.
type Sentence struct {
	Text string
	PCM  []int16

	// Over has it said over the answer to the sentence before, this long
	// after that began: by voice alone in realtime mode, with a press of the
	// button in manual mode. In auto mode the microphone is closed then.
	Over time.Duration
	// TapAfter and WakeAfter cut the answer to this sentence short, with a
	// tap or with Options.Wake.
	TapAfter, WakeAfter time.Duration
}

// Options say what a robot is and what it is to do.
type Options struct {
	OTA      string          // URL of the appliance's bootstrap
	MAC      string          // any spelling
	Firmware string          // one of Firmwares; "" is 2.2.4
	Mode     xiaozhi.Mode    // "" is auto, or realtime where echo is cancelled
	Framing  xiaozhi.Framing // 0 is what the bootstrap says
	AEC      AEC             // whose work it is to cancel the echo; "" is off
	Room     *Room           // where it stands; nil is UsualRoom

	Wake    string  // what wakes it: its channels open by this, and not by a tap
	WakePCM []int16 // how that sounds; its last 2 s go ahead of listen detect

	Say     []Sentence                    // one turn each
	SayAs   func(id device.ID) []Sentence // in place of Say, where robots that share options differ
	Events  []xiaozhi.Event               // sent when the channel has opened
	Stay    bool                          // keeps the channel when all is said
	Forever bool                          // Talk lasts until ctx ends: between channels it waits for Tap, WakeWord, Press or Sense

	StopReadingAfter time.Duration // of the first hello; 0 is never

	Upgrades bool // installs the firmware it is offered, and boots it; fetches assets, too
	Crashes  bool // what it installs never gets as far as a check-in

	AnswerWithin time.Duration               // of the end of a sentence; 0 is 30 s
	Record       bool                        // keeps what the speaker plays, for Sound
	Play         func(rate int, pcm []int16) // receives what the speaker plays, as it does; it must not block
	MoreTools    []device.Tool               // listed after the robot's own; they answer true
	FlashFile    string                      // holds the flash between runs; "" keeps it in memory
	Transcript   io.Writer                   // receives every frame as a line of JSON, secrets blanked
	Observe      func(Observation)

	dial func(ctx context.Context, url string, h http.Header) (channel, error)
}

// Robot is one simulated robot. Its methods belong to one goroutine, but for
// Tap, WakeWord, Press, Release, Sense and StopReading.
type Robot struct {
	o        Options
	id       device.ID
	firmware firmware
	flash    *flash
	checkIns
	body     body
	tools    []tool
	person   person
	stats    Stats
	speaker  recorder
	audio    xiaozhi.AudioParams // of the last server hello: it outlives a channel
	commands chan command
	deaf     atomic.Bool // reads its socket no more
	wakeOff  bool        // hears no wake word until its state changes, whatever becomes of the channel
	script   *transcript
}

// checkIns is what a robot needs for its check-ins, and has from them.
type checkIns struct {
	http    *http.Client
	boot    Bootstrap
	wanted  string // URL of an image that the upgrade tool was given, for the next boot
	flashed int    // images installed since the last answer that offered none
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
	if o.SayAs != nil {
		o.Say = o.SayAs(id)
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	kept, err := loadFlash(o.FlashFile, id)
	if err != nil {
		return nil, err
	}
	r := &Robot{
		o: o, id: id, firmware: f, flash: kept, checkIns: checkIns{http: newHTTPClient()},
		person: person{sentences: o.Say}, commands: make(chan command, 8), script: newTranscript(o.Transcript),
		audio: xiaozhi.AudioParams{SampleRate: 24000, FrameDuration: 60},
	}
	r.runs(kept.Running)
	r.speaker.on, r.speaker.heard = o.Record, o.Play
	r.tools = toolset(r)
	return r, nil
}

// complete puts in what was left out, and refuses what does not go together.
func (o *Options) complete() error {
	switch o.AEC {
	case "":
		o.AEC = AECOff
	case AECOff, AECDevice, AECServer:
	default:
		return fmt.Errorf("AEC %q: there are off, device and server", o.AEC)
	}
	switch o.Mode {
	case "":
		o.Mode = o.AEC.mode()
	case xiaozhi.Auto, xiaozhi.Manual, xiaozhi.Realtime:
	default:
		return fmt.Errorf("mode %q: there are auto, manual and realtime", o.Mode)
	}
	if o.Framing != 0 && !o.Framing.Valid() {
		return fmt.Errorf("framing %d: there are 1, 2 and 3", o.Framing)
	}
	if o.Room == nil {
		usual := UsualRoom()
		o.Room = &usual
	}
	if o.AnswerWithin == 0 {
		o.AnswerWithin = 30 * time.Second
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	if o.dial == nil {
		o.dial = dial
	}
	for i, s := range o.Say {
		switch {
		case s.Over > 0 && (i == 0 || o.Mode == xiaozhi.Auto):
			return fmt.Errorf("sentence %q is said over an answer: that takes an answer before it, and a mode other than auto", s.Text)
		case s.WakeAfter > 0 && o.Wake == "":
			return fmt.Errorf("sentence %q: its answer is cut short by a wake word, and there is none", s.Text)
		}
	}
	return o.Room.check()
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
