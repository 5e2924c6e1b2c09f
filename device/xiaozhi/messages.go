// Package xiaozhi encodes and decodes the protocol between a robot and the appliance as
// the Xiaozhi firmware speaks it: JSON text messages, three framings of binary audio and
// encrypted UDP datagrams, in both directions. It opens no sockets and reads no clock.
//
// The source of truth is the firmware (78/xiaozhi-esp32 up to 2.5), not its
// documentation: fields that are never read or never sent are not here.
package xiaozhi

import "encoding/json"

// MaxMessage is the size of a robot's largest message: frames have 16-bit lengths.
const MaxMessage = 65535

// FromRobot is a text message from a robot. The set is closed: Hello,
// ListenStart, ListenStop, ListenDetect, Abort, FromMCP, Event, Goodbye and
// UnknownFromRobot.
type FromRobot interface{ fromRobot(w *wire) }

// ToRobot is a text message to a robot. The set is closed: Welcome,
// TTSStart, SentenceStart, TTSStop, STT, LLM, ToMCP, Reboot, Alert, Notify,
// Goodbye, KeepAlive and UnknownToRobot.
type ToRobot interface{ toRobot(w *wire) }

// AudioParams describes the sound that one side sends: Opus, mono.
type AudioParams struct {
	SampleRate    int // Hz
	FrameDuration int // milliseconds per packet
}

// Features are what a robot announces in its hello.
type Features struct {
	AEC       bool `json:"aec,omitempty"`        // the server cancels the echo
	MCP       bool `json:"mcp,omitempty"`        // the robot is an MCP server
	GlyphPush bool `json:"glyph_push,omitempty"` // v2.4.0 and later
}

// Hello is a robot's first message.
type Hello struct {
	Version   int // of the binary framing
	Features  Features
	Transport string
	Audio     AudioParams
}

// Mode says which side ends an utterance.
type Mode string

// The listen modes of the firmware.
const (
	Auto     Mode = "auto"     // the server ends it; the microphone is closed while it speaks
	Manual   Mode = "manual"   // the robot ends it with ListenStop (push to talk)
	Realtime Mode = "realtime" // the server ends it; the microphone stays open
)

// ListenStart opens the microphone.
type ListenStart struct{ Mode Mode }

// ListenStop ends an utterance in manual mode.
type ListenStop struct{}

// ListenDetect carries what woke the robot: a wake word, or another cause that a build
// names ("face", "head_pet_hold").
type ListenDetect struct {
	Text  string
	Typed bool // by a person; set by clients other than the firmware
}

// WakeWord is the only reason the firmware gives for an Abort.
const WakeWord = "wake_word_detected"

// Abort asks to stop speech. It must always be answered with TTSStop: the robot stays in
// its speaking state until then.
type Abort struct{ Reason string }

// FromMCP carries a JSON-RPC message of the robot's MCP server.
type FromMCP struct{ Payload json.RawMessage }

// Event is a sensor event of a robot. Only forks of the firmware send it.
type Event struct {
	Name string
	Data json.RawMessage // an object, never nil
}

// Goodbye ends a talk over MQTT; the connection stays open. Both sides send it. A robot
// ends its current talk if Session is empty or names that talk.
type Goodbye struct{ Session string }

// UnknownFromRobot is a message of another type.
type UnknownFromRobot struct{ Type string }

// Welcome answers Hello. It always has a transport, "websocket" or, with UDP,
// "udp": the firmware dereferences that field unchecked.
type Welcome struct {
	Session string
	Audio   AudioParams
	UDP     *UDP // for a talk over MQTT; nil for a WebSocket
}

// UDP is the address and the secrets of the sound of a talk over MQTT.
type UDP struct {
	Server string // IPv4 address or name
	Port   int
	Key    [KeySize]byte
	Nonce  [NonceSize]byte // see NewNonce
}

// TTSStart makes the robot speak: it closes the microphone and empties its
// queue of audio, so what arrives a moment later may be lost.
type TTSStart struct{}

// SentenceStart shows a sentence. Some builds start to speak only here, so it always
// precedes audio, and its text is always present.
type SentenceStart struct{ Text string }

// TTSStop ends speech. Up to v2.1.0 it cuts off what has not been played.
type TTSStop struct{}

// STT shows a transcript.
type STT struct{ Text string }

// LLM sets the face. Text is the emoji, which only browser clients show.
type LLM struct{ Emotion, Text string }

// ToMCP carries a JSON-RPC request to the robot's MCP server.
type ToMCP struct{ Payload json.RawMessage }

// Reboot is the only command of the firmware's "system" message.
type Reboot struct{}

// Alert shows a message in any state. All three fields are needed.
type Alert struct{ Status, Message, Emotion string }

// Notify makes an idle robot play sound from a URL of the appliance, from firmware 2.5.0
// on (docs/notify.md there). There is no answer: only the request for the sound shows
// that the robot accepted it.
type Notify struct {
	URL       string // http or https; mono Ogg Opus, packets of 5 to 120 ms
	Subtitles []Subtitle
}

// Subtitle is text that a robot shows from a given time of its sound.
type Subtitle struct {
	Start int    `json:"start_ms"` // milliseconds
	Text  string `json:"text"`
}

// KeepAlive resets a channel's timeout, which is 120 s without a message; pings do not
// count. The firmware does not know its type, logs it and ignores it.
type KeepAlive struct{}

// UnknownToRobot is a message of another type. The firmware logs and ignores it.
type UnknownToRobot struct{ Type string }
