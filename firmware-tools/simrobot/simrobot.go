// Package simrobot simulates a Stack-chan robot with the Xiaozhi firmware, including faults of the
// firmware. The command perch-tools robot and the tests of the appliance use it. The robot checks in
// at its OTA URL, opens a channel only for a conversation, accepts packets of sound only in its Speaking
// state, drops packets while its queue is full, and is an MCP server with the tools of the real
// firmware. A message that would crash or hang a real robot ends the simulation with a [Crash].
//
// A turn is a sentence that the simulated person says, and the answer to it. A channel is the
// connection for a conversation: a WebSocket, or MQTT with UDP. A check-in is the HTTP request that a
// robot sends when it starts, and the bootstrap is the response. Dotty is a fork of the firmware.
//
// The goroutine that calls [Robot.Talk] owns the conversation. Other goroutines receive messages,
// send MQTT pings, download notifications and run slow tools. All times come from package time,
// so a robot can run in a testing/synctest bubble.
//
//	reader ──messages──▶ session ──┬─▶ player   turns packets into sound, on its own clock
//	                               │     └─▶ echo     from the speaker to the microphone
//	                               ├─▶ mic      turns each 60 ms of sound into a packet
//	                               ├─▶ person   says sentences: when the robot listens, or to interrupt it
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

// Sentence is a sentence that the person says to the robot.
//
// The times are measured from the first packet of an answer. 0 means never. A time has no
// effect if the answer is over by then.
type Sentence struct {
	Text string
	PCM  []int16 // the sentence as sound, 16 kHz

	// Over is the time at which the sentence interrupts the answer to the previous sentence: by
	// voice alone in realtime mode, with a press of the button in manual mode. It is invalid in
	// auto mode, where the microphone is closed during answers.
	Over time.Duration
	// TapAfter is the time at which a tap interrupts the answer to this sentence.
	TapAfter time.Duration
	// WakeAfter is the time at which the wake word Options.Wake interrupts the answer to this
	// sentence.
	WakeAfter time.Duration
}

// Options configure a robot, and what the person says to it. OTA and MAC are required.
type Options struct {
	OTA      string          // bootstrap URL of the appliance
	MAC      string          // MAC address in any spelling
	Firmware string          // one of Firmwares; empty for 2.2.4
	Mode     xiaozhi.Mode    // empty for auto, or for realtime if the echo is cancelled
	Framing  xiaozhi.Framing // 0 for the framing in the bootstrap
	// Transport is the transport that the bootstrap must select; empty accepts both.
	Transport device.Transport
	AEC       AEC // where the echo is cancelled; empty for off

	Wake    string  // wake word that opens channels; empty for a tap
	WakePCM []int16 // the wake word as sound, 16 kHz; the robot sends the last 2 s of it

	Asleep  bool            // start without a channel; implies Forever
	Say     []Sentence      // one turn per sentence
	Events  []xiaozhi.Event // sent as soon as the channel is open
	Stay    bool            // keep the channel open after the last answer
	Forever bool            // when a channel closes, wait for the next command (such as Tap) until ctx ends

	StopReadingAfter time.Duration // time after the first hello at which the robot stops reading; 0 for never

	Upgrades bool // install and boot offered firmware, and download assets
	Crashes  bool // installed firmware crashes before its check-in

	Network     *Network       // conditions for audio datagrams, with MQTT; nil for a perfect network
	Authorities *x509.CertPool // authorities that the robot trusts for MQTT, which then always uses TLS; nil for the system's authorities

	AnswerWithin time.Duration               // maximum wait for an answer after the end of a sentence; 0 for 30 s
	Record       bool                        // record what the speaker plays, for the method Sound
	Play         func(rate int, pcm []int16) // receives the speaker's sound in real time; must not block
	MoreTools    []device.Tool               // additional tools, which always return true
	FlashFile    string                      // file that stores the flash between runs; empty for memory only
	Transcript   io.Writer                   // receives every frame as a line of JSON, with secrets blanked; may be nil
	Observe      func(Observation)           // receives every observation; must not block; may be nil

	dial func(ctx context.Context, url string, h http.Header) (channel, error) // opens a WebSocket; nil for the function dial
}

// Robot is a simulated robot. Only Tap, WakeWord, PressButton, Release, SendEvent and StopReading may
// be called from goroutines other than the one that runs the robot.
type Robot struct {
	o          Options
	id         device.ID
	firmware   firmware
	flash      *flash
	http       *http.Client
	imageURL   string // image to install at the next boot, set by the upgrade tool; empty for none
	installs   int    // images installed since the last bootstrap that offered no image
	body       body
	tools      []tool
	person     person
	stats      Stats
	speaker    speaker
	audio      xiaozhi.AudioParams // sample rate and frame duration in the last server hello; the next channel begins with these
	commands   chan command
	notReading atomic.Bool // the robot no longer reads its socket
	wakeOff    bool        // the wake word detector is off until the robot speaks, stops listening or reboots

	byMQTT      bool      // the transport is MQTT, selected by the last bootstrap
	control     *control  // nil while disconnected from the MQTT server
	unhandled   []arrival // texts that arrived by MQTT before the last channel closed
	lastSession string    // session ID of the last channel by MQTT; the robot's messages contain it while no channel is open
	reconnectAt time.Time // time of the next attempt to connect to the MQTT server
}

// New checks the options and returns a robot that is switched off. Run switches it on. New reads
// Options.FlashFile, and creates the file if necessary.
func New(o Options) (*Robot, error) {
	id, err := device.ParseID(o.MAC)
	if err != nil {
		return nil, fmt.Errorf("the robot's MAC: %w", err)
	}
	f, err := findFirmware(o.Firmware)
	if err != nil {
		return nil, err
	}
	if err := o.setDefaults(); err != nil {
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

// setDefaults fills in the defaults, and returns an error for invalid options.
func (o *Options) setDefaults() error {
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
			return fmt.Errorf("sentence %q interrupts an answer: this requires a previous sentence, and a mode other than auto", s.Text)
		case s.WakeAfter > 0 && o.Wake == "":
			return fmt.Errorf("sentence %q: WakeAfter requires a wake word", s.Text)
		}
	}
	return nil
}

// ID returns the robot ID.
func (r *Robot) ID() device.ID { return r.id }

// Stats returns the robot's counters. They are complete once Talk has returned.
func (r *Robot) Stats() Stats { return r.stats }

// Sound returns the recorded sound of the speaker and its rate in Hz. The recording begins
// with the first sound, includes the silence between sounds, and is complete once Talk has
// returned. It requires Options.Record.
func (r *Robot) Sound() (rate int, pcm []int16) { return r.speaker.rate, r.speaker.pcm }

// Run switches the robot on: it calls Boot and Talk.
func (r *Robot) Run(ctx context.Context) error {
	if err := r.Boot(ctx); err != nil {
		return err
	}
	return r.Talk(ctx)
}

// Crash is the error for a message that would crash or hang a real robot.
type Crash struct {
	Cause string // the message, and its effect on a robot
}

// Error implements error.
func (c *Crash) Error() string { return "a real robot would crash: " + c.Cause }

// crash returns a Crash with a formatted cause.
func crash(format string, a ...any) error { return &Crash{Cause: fmt.Sprintf(format, a...)} }

// Errors that are not crashes.
var (
	// ErrMQTT is wrapped by the error of CheckIn if the bootstrap selects MQTT and the robot knows
	// no endpoint, or if the bootstrap selects no transport at all.
	ErrMQTT = errors.New("the bootstrap selects MQTT, but has no endpoint for it")
	// ErrTransport is wrapped by the error of CheckIn if the bootstrap does not select
	// Options.Transport.
	ErrTransport = errors.New("the appliance selects another transport; perch robot set ROBOT transport=websocket or transport=mqtt changes it")
	// ErrHello is wrapped by the error of Talk if the server sends no hello within 10 s.
	ErrHello = errors.New("no hello from the server within 10 s")
	// ErrUnanswered is wrapped by the error of Talk if a sentence gets no spoken answer.
	ErrUnanswered = errors.New("no answer")
)
