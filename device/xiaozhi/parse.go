package xiaozhi

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrMessage is wrapped by the errors of ParseFromRobot and ParseToRobot.
var ErrMessage = errors.New("bad message")

// typed is the JSON value of source in a detect message whose text was typed.
const typed = `"text"`

// wire is the JSON form of all messages. It has every field of every message.
type wire struct {
	Session   string          `json:"session_id,omitempty"`
	Type      string          `json:"type"`
	Version   int             `json:"version,omitempty"`
	Features  *Features       `json:"features,omitempty"`
	Transport string          `json:"transport,omitempty"`
	Audio     *wireAudio      `json:"audio_params,omitempty"`
	UDP       *wireUDP        `json:"udp,omitempty"`
	State     string          `json:"state,omitempty"`
	Mode      Mode            `json:"mode,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Emotion   string          `json:"emotion,omitempty"`
	Text      *string         `json:"text,omitempty"`
	Source    json.RawMessage `json:"source,omitempty"`
	Command   string          `json:"command,omitempty"`
	Status    string          `json:"status,omitempty"`
	Message   string          `json:"message,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Name      string          `json:"name,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	AudioURL  string          `json:"audio_url,omitempty"`
	Subtitles []Subtitle      `json:"subtitles,omitempty"`
}

// wireUDP is the JSON form of UDP.
type wireUDP struct {
	Server string `json:"server"`
	Port   int    `json:"port"`
	Key    string `json:"key"`   // hexadecimal
	Nonce  string `json:"nonce"` // hexadecimal
}

// wireAudio is the JSON form of AudioParams.
type wireAudio struct {
	Format        string `json:"format,omitempty"`
	SampleRate    int    `json:"sample_rate,omitempty"`
	Channels      int    `json:"channels,omitempty"`
	FrameDuration int    `json:"frame_duration,omitempty"`
}

// text returns the text, or "" if the message has none.
func (w wire) text() string {
	if w.Text == nil {
		return ""
	}
	return *w.Text
}

// parseWire decodes a message and checks that it has a type. Errors wrap ErrMessage.
func parseWire(text []byte) (wire, error) {
	var w wire
	if len(text) > MaxMessage {
		return w, fmt.Errorf("%w: %d bytes", ErrMessage, len(text))
	}
	if err := json.Unmarshal(text, &w); err != nil {
		return w, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if w.Type == "" {
		return w, fmt.Errorf("%w: no type", ErrMessage)
	}
	return w, nil
}

// SessionOf returns the session ID in a robot's text message, or "" if the message has none or is not
// JSON. The firmware sends the ID of its last session in all messages except hello, even after the
// session has ended.
func SessionOf(text []byte) string {
	var w struct {
		Session string `json:"session_id"`
	}
	if json.Unmarshal(text, &w) != nil {
		return ""
	}
	return w.Session
}

// ParseFromRobot parses a text message from a robot. Except for Goodbye, the result does not contain the
// session ID; see SessionOf.
func ParseFromRobot(text []byte) (FromRobot, error) {
	w, err := parseWire(text)
	if err != nil {
		if m, ok := unescapedError(text); ok {
			return m, nil
		}
		return nil, err
	}
	switch w.Type {
	case "hello":
		return w.hello(), nil
	case "listen":
		return w.listen()
	case "abort":
		return Abort{Reason: w.Reason}, nil
	case "mcp":
		if !isObject(w.Payload) {
			return nil, fmt.Errorf("%w: mcp without a payload object", ErrMessage)
		}
		return FromMCP{Payload: w.Payload}, nil
	case "event":
		return w.event()
	case "goodbye":
		return Goodbye{Session: w.Session}, nil
	}
	return UnknownFromRobot{Type: w.Type}, nil
}

// hello returns the message as a Hello.
func (w wire) hello() Hello {
	h := Hello{Version: w.Version, Transport: w.Transport, Audio: w.audio()}
	if w.Features != nil {
		h.Features = *w.Features
	}
	if w.Audio != nil && w.Audio.Format != opus {
		h.Format = w.Audio.Format
	}
	return h
}

// audio returns the audio parameters, or their zero value if the message has none.
func (w wire) audio() AudioParams {
	if w.Audio == nil {
		return AudioParams{}
	}
	return AudioParams{SampleRate: w.Audio.SampleRate, FrameDuration: w.Audio.FrameDuration}
}

// listen returns the message as a ListenStart, ListenStop or ListenDetect.
func (w wire) listen() (FromRobot, error) {
	switch w.State {
	case "start":
		switch w.Mode {
		case Auto, Manual, Realtime:
			return ListenStart{Mode: w.Mode}, nil
		case "ptt": // some clients' word for push to talk
			return ListenStart{Mode: Manual}, nil
		}
		// Clients other than the firmware may send no mode or other modes. Auto is the firmware's
		// default.
		return ListenStart{Mode: Auto}, nil
	case "stop":
		return ListenStop{}, nil
	case "detect":
		return ListenDetect{Text: w.text(), Typed: string(w.Source) == typed}, nil
	}
	return nil, fmt.Errorf("%w: listen with state %q", ErrMessage, w.State)
}

// event returns the message as an Event.
func (w wire) event() (FromRobot, error) {
	if w.Name == "" {
		return nil, fmt.Errorf("%w: event without a name", ErrMessage)
	}
	switch {
	case len(w.Data) == 0 || string(w.Data) == "null":
		w.Data = json.RawMessage("{}")
	case !isObject(w.Data):
		return nil, fmt.Errorf("%w: event %q with data that is not an object", ErrMessage, w.Name)
	}
	return Event{Name: w.Name, Data: w.Data}, nil
}

// isObject reports whether valid JSON is an object.
func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// ParseToRobot parses a text message to a robot. It also returns errors for messages that would crash or
// hang the firmware.
func ParseToRobot(text []byte) (ToRobot, error) {
	w, err := parseWire(text)
	if err != nil {
		return nil, err
	}
	switch w.Type {
	case "hello":
		return w.welcome()
	case "tts":
		return w.tts()
	case "stt":
		return STT{Text: w.text()}, nil
	case "llm":
		return LLM{Emotion: w.Emotion, Text: w.text()}, nil
	case "mcp":
		if !isObject(w.Payload) {
			return nil, fmt.Errorf("%w: mcp without a payload object", ErrMessage)
		}
		return ToMCP{Payload: w.Payload}, nil
	case "system":
		if w.Command == "reboot" {
			return Reboot{}, nil
		}
	case "alert":
		return Alert{Status: w.Status, Message: w.Message, Emotion: w.Emotion}, nil
	case "notify":
		return Notify{URL: w.AudioURL, Subtitles: w.Subtitles}, nil
	case "goodbye":
		return Goodbye{Session: w.Session}, nil
	case keepAlive:
		return KeepAlive{}, nil
	}
	return UnknownToRobot{Type: w.Type}, nil
}

// welcome returns the message as a Welcome.
func (w wire) welcome() (ToRobot, error) {
	m := Welcome{Session: w.Session, Audio: w.audio()}
	switch {
	case w.Transport == "websocket" && w.UDP == nil:
	case w.Transport == "udp" && w.UDP != nil:
		m.UDP = &UDP{Server: w.UDP.Server, Port: w.UDP.Port}
		if !decodeHex(m.UDP.Key[:], w.UDP.Key) || !decodeHex(m.UDP.Nonce[:], w.UDP.Nonce) {
			return nil, fmt.Errorf("%w: hello with a key or nonce that is not 32 hexadecimal digits", ErrMessage)
		}
	default:
		return nil, fmt.Errorf("%w: hello with transport %q, which crashes or hangs a robot", ErrMessage, w.Transport)
	}
	return m, nil
}

// decodeHex decodes hexadecimal text to dst. It reports whether the text is valid and fills dst.
func decodeHex(dst []byte, text string) bool {
	if len(text) != hex.EncodedLen(len(dst)) {
		return false
	}
	_, err := hex.Decode(dst, []byte(text))
	return err == nil
}

// tts returns the message as a TTSStart, TTSStop, SentenceStart or UnknownToRobot.
func (w wire) tts() (ToRobot, error) {
	switch w.State {
	case "start":
		return TTSStart{}, nil
	case "stop":
		return TTSStop{}, nil
	case "sentence_start":
		if w.Text == nil {
			return nil, fmt.Errorf("%w: sentence_start without a text", ErrMessage)
		}
		return SentenceStart{Text: *w.Text}, nil
	case "":
		return nil, fmt.Errorf("%w: tts without a state, which crashes a robot", ErrMessage)
	}
	return UnknownToRobot{Type: "tts/" + w.State}, nil
}
