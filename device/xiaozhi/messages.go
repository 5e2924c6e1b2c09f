// Package xiaozhi encodes and decodes the protocol of the Xiaozhi firmware between a robot and the
// appliance, in both directions: JSON text messages, three framings of binary audio and encrypted UDP
// datagrams. It opens no sockets and does not read the clock.
//
// It follows the source of the firmware (78/xiaozhi-esp32 up to 2.5), not its documentation. Fields that
// the firmware never reads or never sends are left out.
package xiaozhi

import "encoding/json"

// MaxMessage is the maximum size of a robot's message in bytes. The robot's frames have 16-bit lengths.
const MaxMessage = 65535

// FromRobot is a text message from a robot. Only these types implement it: Hello,
// ListenStart, ListenStop, ListenDetect, Abort, FromMCP, Event, Goodbye and
// UnknownFromRobot.
type FromRobot interface{ fromRobot(w *wire) }

// ToRobot is a text message to a robot. Only these types implement it: Welcome,
// TTSStart, SentenceStart, TTSStop, STT, LLM, ToMCP, Reboot, Alert, Notify,
// Goodbye, KeepAlive and UnknownToRobot.
type ToRobot interface{ toRobot(w *wire) }

// AudioParams describes the sound that one side sends: Opus, mono.
type AudioParams struct {
	SampleRate    int // Hz
	FrameDuration int // milliseconds per packet
}

// Features are the features that a robot announces in its hello.
type Features struct {
	AEC       bool `json:"aec,omitempty"`        // the robot leaves echo cancellation to the appliance
	MCP       bool `json:"mcp,omitempty"`        // the robot is an MCP server
	GlyphPush bool `json:"glyph_push,omitempty"` // the robot accepts glyphs of a font; firmware 2.4.0 or later
}

// Hello is a robot's first message.
type Hello struct {
	Version   int // number of the Framing
	Features  Features
	Transport string // "websocket" or "udp"
	Format    string // format of the robot's sound; empty means Opus, the firmware's only format
	Audio     AudioParams
}

// Mode determines which side ends an utterance, and when the microphone is open.
type Mode string

// The listen modes of the firmware.
const (
	Auto     Mode = "auto"     // ended by the appliance; the microphone is closed while the robot speaks
	Manual   Mode = "manual"   // ended by the robot with ListenStop (push to talk)
	Realtime Mode = "realtime" // ended by the appliance; the microphone stays open while the robot speaks
)

// ListenStart opens the microphone.
type ListenStart struct{ Mode Mode }

// ListenStop ends an utterance in manual mode.
type ListenStop struct{}

// ListenDetect reports what woke the robot: a wake word, or another cause that some builds of the
// firmware name, such as "face" or "head_pet_hold".
type ListenDetect struct {
	Text  string
	Typed bool // whether a person typed the text; only clients other than the firmware set it
}

// WakeWord is the only reason that the firmware sends in an Abort.
const WakeWord = "wake_word_detected"

// Abort requests that speech stops. The appliance must always respond with TTSStop, because the robot
// stays in its speaking state until then.
type Abort struct{ Reason string }

// FromMCP carries a JSON-RPC message of the robot's MCP server.
type FromMCP struct{ Payload json.RawMessage }

// Event is a sensor event of a robot. Only forks of the firmware send it.
type Event struct {
	Name string
	Data json.RawMessage // a JSON object, never nil
}

// Goodbye ends a session over MQTT; the connection stays open. Both sides send it. A robot ends its
// current session if Session is empty or the ID of that session.
type Goodbye struct{ Session string }

// UnknownFromRobot is a message of another type.
type UnknownFromRobot struct{ Type string }

// Welcome is the response to Hello. Its JSON always has a transport, "udp" if UDP is set and "websocket"
// otherwise, because the firmware crashes without that field.
type Welcome struct {
	Session string
	Audio   AudioParams
	UDP     *UDP // for a session over MQTT; nil for a WebSocket
}

// UDP holds the address and the secrets of the UDP datagrams that carry the sound of a session over MQTT.
type UDP struct {
	Server string // IPv4 address or host name
	Port   int
	Key    [KeySize]byte
	Nonce  [NonceSize]byte // see NewNonce
}

// TTSStart puts the robot into its speaking state: it closes the microphone and empties its queue of
// audio. Audio that arrives immediately afterwards may be lost.
type TTSStart struct{}

// SentenceStart shows a sentence. Because some builds of the firmware start to speak only at this
// message, it always precedes audio. Its text may be empty, but is always present.
type SentenceStart struct{ Text string }

// TTSStop ends speech. Up to v2.1.0 the firmware drops audio that it has not played yet.
type TTSStop struct{}

// STT shows the transcript of an utterance.
type STT struct{ Text string }

// LLM sets the robot's facial expression. Text is an emoji, which only browser clients show.
type LLM struct{ Emotion, Text string }

// ToMCP carries a JSON-RPC request to the robot's MCP server.
type ToMCP struct{ Payload json.RawMessage }

// Reboot restarts the robot. It is the only command of the firmware's "system" message.
type Reboot struct{}

// Alert shows a message in any state of the robot. All three fields are required.
type Alert struct{ Status, Message, Emotion string }

// Notify makes an idle robot play sound from a URL of the appliance. It needs firmware 2.5.0 (see the
// firmware's docs/notify.md). The robot sends no response; its request for the URL shows that it has
// accepted the message.
type Notify struct {
	URL       string // http or https; mono Ogg Opus, packets of 5 to 120 ms
	Subtitles []Subtitle
}

// Subtitle is a text that a robot shows while it plays the sound of a Notify.
type Subtitle struct {
	Start int    `json:"start_ms"` // milliseconds from the start of the sound
	Text  string `json:"text"`
}

// KeepAlive keeps a channel open: the firmware closes it after 120 s without a message, and pings do not
// count. The firmware does not support this type; it logs the message and ignores it.
type KeepAlive struct{}

// UnknownToRobot is a message of another type. The firmware logs and ignores it.
type UnknownToRobot struct{ Type string }
