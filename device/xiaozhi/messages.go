// Package xiaozhi is the wire between a robot and the appliance as the
// Xiaozhi firmware speaks it: JSON text messages and three framings of
// binary audio, both directions. Bytes in, values out; no sockets, no clocks.
//
// The source of truth is the firmware (78/xiaozhi-esp32 up to 2.5), not
// its documents: where a field is never read or never sent, it is not here.
package xiaozhi

import "encoding/json"

// MaxMessage is a robot's largest message: single frames have 16-bit lengths.
const MaxMessage = 65535

// FromRobot is a text message that a robot sends. The set is closed: Hello,
// ListenStart, ListenStop, ListenDetect, Abort, FromMCP, Event, Goodbye and
// UnknownFromRobot.
type FromRobot interface{ fromRobot(w *wire) }

// ToRobot is a text message that a robot is sent. The set is closed: Welcome,
// TTSStart, SentenceStart, TTSStop, STT, LLM, ToMCP, Reboot, Alert, Notify,
// Goodbye, KeepAlive and UnknownToRobot.
type ToRobot interface{ toRobot(w *wire) }

// AudioParams are the sound one side sends: Opus, mono.
type AudioParams struct {
	SampleRate    int // Hz
	FrameDuration int // milliseconds in a packet
}

// Features are what a robot offers in its hello.
type Features struct {
	AEC       bool `json:"aec,omitempty"`        // echo cancellation is the server's work
	MCP       bool `json:"mcp,omitempty"`        // it is an MCP server
	GlyphPush bool `json:"glyph_push,omitempty"` // v2.4.0 and later
}

// Hello is a robot's first message.
type Hello struct {
	Version   int // of the binary framing
	Features  Features
	Transport string
	Audio     AudioParams
}

// Mode is who ends an utterance.
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

// ListenDetect carries what woke the robot: a wake word, or any text a build
// gives for another cause ("face", "head_pet_hold").
type ListenDetect struct {
	Text  string
	Typed bool // by somebody, as clients say that are no firmware
}

// WakeWord is the only reason the firmware gives for an Abort.
const WakeWord = "wake_word_detected"

// Abort asks that speech stop. Every one must be answered with TTSStop: the
// robot stays in its speaking state until then.
type Abort struct{ Reason string }

// FromMCP carries a JSON-RPC message of the robot's MCP server.
type FromMCP struct{ Payload json.RawMessage }

// Event is something a robot sensed. Only forks of the firmware send it.
type Event struct {
	Name string
	Data json.RawMessage // an object, never nil
}

// Goodbye ends a talk over MQTT; the connection stays. Both sides send it. A
// robot ends the talk that it is in if Session is empty or that of the talk.
type Goodbye struct{ Session string }

// UnknownFromRobot is a message of a type that is not in the set.
type UnknownFromRobot struct{ Type string }

// Welcome answers Hello. It always has a transport, "websocket" or, with UDP,
// "udp": the firmware dereferences that field unchecked.
type Welcome struct {
	Session string
	Audio   AudioParams
	UDP     *UDP // of a talk over MQTT; nil for a WebSocket
}

// UDP is where a talk over MQTT has its sound, and the secrets of it.
type UDP struct {
	Server string // IPv4 address or name
	Port   int
	Key    [KeySize]byte
	Nonce  [NonceSize]byte // see NewNonce
}

// TTSStart makes the robot speak: it closes the microphone and empties its
// queue of audio, so what arrives a moment later may be lost.
type TTSStart struct{}

// SentenceStart shows a sentence. Some builds only begin to speak here, so it
// always precedes audio, and its text is never absent.
type SentenceStart struct{ Text string }

// TTSStop ends speech. Up to v2.1.0 it cuts off what was not yet played.
type TTSStop struct{}

// STT shows the transcript.
type STT struct{ Text string }

// LLM sets the face. Text is the emoji, which only browser clients show.
type LLM struct{ Emotion, Text string }

// ToMCP carries a JSON-RPC request to the robot's MCP server.
type ToMCP struct{ Payload json.RawMessage }

// Reboot is the only command of the firmware's "system" message.
type Reboot struct{}

// Alert shows a message in any state. All three fields are needed.
type Alert struct{ Status, Message, Emotion string }

// Notify has a robot that is idle play sound from a URL of ours, from firmware
// 2.5.0 on (docs/notify.md there). It is not answered: only the request for the
// sound shows that it was taken.
type Notify struct {
	URL       string // http or https; mono Ogg Opus, packets of 5 to 120 ms
	Subtitles []Subtitle
}

// Subtitle is a text that a robot shows from a time of its sound on.
type Subtitle struct {
	Start int    `json:"start_ms"` // milliseconds
	Text  string `json:"text"`
}

// KeepAlive feeds the clock of a channel, which runs out after 120 s without a
// message; pings do not count. It has a type the firmware does not know, which
// it notes in its log and ignores.
type KeepAlive struct{}

// UnknownToRobot is a message of a type that is not in the set. The firmware
// logs and ignores such a message.
type UnknownToRobot struct{ Type string }
