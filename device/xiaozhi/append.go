package xiaozhi

import (
	"encoding/json"
	"fmt"
)

// AppendFromRobot appends the text message as a robot of that session sends
// it. The firmware puts the session id in everything but hello.
func AppendFromRobot(dst []byte, session string, m FromRobot) []byte {
	w := wire{Session: session}
	switch m := m.(type) {
	case Hello:
		w = wire{Type: "hello", Version: m.Version, Features: &m.Features, Transport: m.Transport, Audio: m.Audio.wire()}
	case ListenStart:
		w.Type, w.State, w.Mode = "listen", "start", m.Mode
	case ListenStop:
		w.Type, w.State = "listen", "stop"
	case ListenDetect:
		w.Type, w.State, w.Text = "listen", "detect", &m.Text
		if m.Typed {
			w.Source = json.RawMessage(typed)
		}
	case Abort:
		w.Type, w.Reason = "abort", m.Reason
	case FromMCP:
		w.Type, w.Payload = "mcp", m.Payload
	case Event:
		w.Type, w.Name, w.Data = "event", m.Name, m.Data
	case UnknownFromRobot:
		w.Type = m.Type
	}
	return appendJSON(dst, w)
}

// AppendToRobot appends the text message as the appliance sends it in that
// session.
func AppendToRobot(dst []byte, session string, m ToRobot) []byte {
	w := wire{Session: session}
	switch m := m.(type) {
	case Welcome:
		w = wire{Session: m.Session, Type: "hello", Transport: "websocket", Audio: m.Audio.wire()}
	case TTSStart:
		w.Type, w.State = "tts", "start"
	case SentenceStart:
		w.Type, w.State, w.Text = "tts", "sentence_start", &m.Text
	case TTSStop:
		w.Type, w.State = "tts", "stop"
	case STT:
		w.Type, w.Text = "stt", &m.Text
	case LLM:
		w.Type, w.Emotion, w.Text = "llm", m.Emotion, &m.Text
	case ToMCP:
		w.Type, w.Payload = "mcp", m.Payload
	case Reboot:
		w.Type, w.Command = "system", "reboot"
	case Alert:
		return appendJSON(dst, wireAlert{session, "alert", m.Status, m.Message, m.Emotion})
	case KeepAlive:
		w.Type = keepAlive
	case UnknownToRobot:
		w.Type = m.Type
	}
	return appendJSON(dst, w)
}

const keepAlive = "keepalive"

// wireAlert keeps its fields even where they are empty: the firmware ignores
// an alert that lacks one.
type wireAlert struct {
	Session string `json:"session_id"`
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Emotion string `json:"emotion"`
}

func (a AudioParams) wire() *wireAudio {
	return &wireAudio{Format: "opus", SampleRate: a.SampleRate, Channels: 1, FrameDuration: a.FrameDuration}
}

func appendJSON(dst []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		// Only a payload that is not JSON can fail here: a programmer's error.
		panic(fmt.Sprintf("xiaozhi: %v", err))
	}
	return append(dst, b...)
}
