package xiaozhi

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// AppendFromRobot appends the JSON of a message from a robot. session is the session ID, which the
// firmware puts into all messages except hello. A Goodbye carries its own session ID instead.
func AppendFromRobot(dst []byte, session string, m FromRobot) []byte {
	w := wire{Session: session}
	m.fromRobot(&w)
	return appendJSON(dst, w)
}

func (m Hello) fromRobot(w *wire) {
	*w = wire{Type: "hello", Version: m.Version, Features: &m.Features, Transport: m.Transport, Audio: m.Audio.wire()}
	w.Audio.Format = cmp.Or(m.Format, opus)
}

func (m ListenDetect) fromRobot(w *wire) {
	w.Type, w.State, w.Text = "listen", "detect", &m.Text
	if m.Typed {
		w.Source = json.RawMessage(typed)
	}
}

func (m ListenStart) fromRobot(w *wire)      { w.Type, w.State, w.Mode = "listen", "start", m.Mode }
func (ListenStop) fromRobot(w *wire)         { w.Type, w.State = "listen", "stop" }
func (m Abort) fromRobot(w *wire)            { w.Type, w.Reason = "abort", m.Reason }
func (m FromMCP) fromRobot(w *wire)          { w.Type, w.Payload = "mcp", m.Payload }
func (m Event) fromRobot(w *wire)            { w.Type, w.Name, w.Data = "event", m.Name, m.Data }
func (m Goodbye) fromRobot(w *wire)          { w.Session, w.Type = m.Session, "goodbye" }
func (m UnknownFromRobot) fromRobot(w *wire) { w.Type = m.Type }

// AppendToRobot appends the JSON of a message to a robot. session is the session ID; a Welcome and a
// Goodbye carry their own instead.
func AppendToRobot(dst []byte, session string, m ToRobot) []byte {
	if m, ok := m.(Alert); ok {
		return appendJSON(dst, wireAlert{session, "alert", m.Status, m.Message, m.Emotion})
	}
	w := wire{Session: session}
	m.toRobot(&w)
	return appendJSON(dst, w)
}

func (m Welcome) toRobot(w *wire) {
	*w = wire{Session: m.Session, Type: "hello", Transport: "websocket", Audio: m.Audio.wire()}
	if u := m.UDP; u != nil {
		w.Transport = "udp"
		w.UDP = &wireUDP{Server: u.Server, Port: u.Port, Key: hex.EncodeToString(u.Key[:]), Nonce: hex.EncodeToString(u.Nonce[:])}
	}
}

func (TTSStart) toRobot(w *wire)         { w.Type, w.State = "tts", "start" }
func (m SentenceStart) toRobot(w *wire)  { w.Type, w.State, w.Text = "tts", "sentence_start", &m.Text }
func (TTSStop) toRobot(w *wire)          { w.Type, w.State = "tts", "stop" }
func (m STT) toRobot(w *wire)            { w.Type, w.Text = "stt", &m.Text }
func (m LLM) toRobot(w *wire)            { w.Type, w.Emotion, w.Text = "llm", m.Emotion, &m.Text }
func (m ToMCP) toRobot(w *wire)          { w.Type, w.Payload = "mcp", m.Payload }
func (m Notify) toRobot(w *wire)         { w.Type, w.AudioURL, w.Subtitles = "notify", m.URL, m.Subtitles }
func (m Goodbye) toRobot(w *wire)        { w.Session, w.Type = m.Session, "goodbye" }
func (Reboot) toRobot(w *wire)           { w.Type, w.Command = "system", "reboot" }
func (Alert) toRobot(*wire)              {} // AppendToRobot uses wireAlert instead
func (KeepAlive) toRobot(w *wire)        { w.Type = keepAlive }
func (m UnknownToRobot) toRobot(w *wire) { w.Type = m.Type }

// keepAlive is the type of a KeepAlive message.
const keepAlive = "keepalive"

// wireAlert is the JSON form of an Alert. It always has all fields, because the firmware ignores an
// alert without one of them.
type wireAlert struct {
	Session string `json:"session_id"`
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Emotion string `json:"emotion"`
}

// opus is the firmware's only format of sound.
const opus = "opus"

// wire returns the JSON form of a.
func (a AudioParams) wire() *wireAudio {
	return &wireAudio{Format: opus, SampleRate: a.SampleRate, Channels: 1, FrameDuration: a.FrameDuration}
}

// appendJSON appends v in JSON. It panics if v has a payload that is not JSON, which is a bug.
func appendJSON(dst []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("xiaozhi: %v", err))
	}
	return append(dst, b...)
}
