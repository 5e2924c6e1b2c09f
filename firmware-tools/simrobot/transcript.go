package simrobot

import (
	"encoding/json"
	"io"
	"regexp"
	"time"
)

// secret matches secrets in text: some messages of the firmware are not JSON.
var secret = regexp.MustCompile(`(?i)("(?:token|authorization|password)"\s*:\s*")(?:[^"\\]|\\.)*"`)

// transcript writes frames as lines of JSON.
type transcript struct{ w io.Writer }

type line struct {
	At    string          `json:"at"`
	From  string          `json:"from"` // "robot" or "server"
	JSON  json.RawMessage `json:"json,omitempty"`
	Text  string          `json:"text,omitempty"`  // a text frame that is not JSON
	Bytes *int            `json:"bytes,omitempty"` // of a binary frame
}

// write records a frame. An error does not end the talk.
func (t *transcript) write(at time.Time, from string, isText bool, data []byte) {
	if t.w == nil {
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
		_, _ = t.w.Write(append(text, '\n'))
	}
}
