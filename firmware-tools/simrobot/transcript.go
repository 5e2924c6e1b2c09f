package simrobot

import (
	"encoding/json"
	"regexp"
	"time"
)

// secret matches secrets in a text, which need not be JSON.
var secret = regexp.MustCompile(`(?i)("(?:token|authorization|password)"\s*:\s*")(?:[^"\\]|\\.)*"`)

// line is a frame in a transcript.
type line struct {
	At    string          `json:"at"`
	From  string          `json:"from"` // "robot" or "server"
	JSON  json.RawMessage `json:"json,omitempty"`
	Text  string          `json:"text,omitempty"`  // a text frame that is not JSON
	Bytes *int            `json:"bytes,omitempty"` // of a binary frame
}

// record writes a frame to the transcript. An error does not end the talk.
func (r *Robot) record(at time.Time, from string, isText bool, data []byte) {
	if r.o.Transcript == nil {
		return
	}
	l := line{At: at.UTC().Format("2006-01-02T15:04:05.000Z"), From: from}
	switch clean := secret.ReplaceAll(data, []byte(`${1}…"`)); {
	case !isText:
		n := len(data)
		l.Bytes = &n
	case json.Valid(clean):
		l.JSON = clean
	default:
		l.Text = string(clean)
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, _ = r.o.Transcript.Write(append(text, '\n'))
	}
}
