package simrobot

import (
	"encoding/json"
	"regexp"
	"time"
)

// secret matches each token, authorization and password with its value in a text message, even if the
// message is not valid JSON.
var secret = regexp.MustCompile(`(?i)("(?:token|authorization|password)"\s*:\s*")(?:[^"\\]|\\.)*"`)

// line is a line of a transcript: one frame.
type line struct {
	At    string          `json:"at"`
	From  string          `json:"from"` // "robot" or "server"
	JSON  json.RawMessage `json:"json,omitempty"`
	Text  string          `json:"text,omitempty"`  // content of a text frame that is not JSON
	Bytes *int            `json:"bytes,omitempty"` // size of a binary frame
}

// record writes a frame to the transcript, with secrets replaced by "…". It ignores errors, so that they
// do not end the conversation.
func (r *Robot) record(at time.Time, from string, isText bool, data []byte) {
	if r.o.Transcript == nil {
		return
	}
	l := line{At: at.UTC().Format("2006-01-02T15:04:05.000Z"), From: from}
	switch redacted := secret.ReplaceAll(data, []byte(`${1}…"`)); {
	case !isText:
		n := len(data)
		l.Bytes = &n
	case json.Valid(redacted):
		l.JSON = redacted
	default:
		l.Text = string(redacted)
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, _ = r.o.Transcript.Write(append(text, '\n'))
	}
}
