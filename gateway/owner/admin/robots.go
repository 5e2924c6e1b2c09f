package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
)

// mostEmotion bounds the name of a face or icon, in bytes.
const mostEmotion = 32

// toolWithin bounds the wait for a tool's result. Slow tools, such as a photo that a model describes, have
// shorter limits in the robot's session.
const toolWithin = time.Minute

// Taken is the answer to a text for a robot to speak or show.
type Taken struct {
	OK     bool `json:"ok"`
	Queued bool `json:"queued"` // until the robot next connects
}

// speech is the body of say.
type speech struct {
	Text string `json:"text"`
}

func (a *API) sendSpeech(ctx context.Context, id device.ID, s speech) (Taken, error) {
	if s.Text == "" || len(s.Text) > limit.Said {
		return Taken{}, httpserver.BadBody("text is needed, of at most 4000 bytes")
	}
	queued, err := a.o.Talk.Speak(ctx, id, s.Text)
	return Taken{true, queued}, err
}

// readChange reads new settings of a robot. An unknown key is an error. Character is the newer name of persona.
func readChange(body io.Reader) (device.Change, error) {
	var c struct {
		device.Change
		Character *string `json:"character"`
	}
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return device.Change{}, unreadable(err)
	}
	if c.Character != nil && c.Persona != nil {
		return device.Change{}, httpserver.BadBody("character and persona are the same setting: send one of them")
	}
	c.Persona = cmp.Or(c.Character, c.Persona)
	return c.Change, nil
}

// alert is the body of alert: a line for the top of the robot's screen, a text
// below it, and a face or an icon of its firmware.
type alert struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Emotion string `json:"emotion"`
}

func (a *API) alert(ctx context.Context, id device.ID, w alert) (Taken, error) {
	if err := w.check(); err != nil {
		return Taken{}, err
	}
	queued, err := a.o.Talk.Alert(ctx, id, w.Status, w.Message, w.Emotion)
	return Taken{true, queued}, err
}

// check also fills in missing fields: the firmware needs all three.
func (w *alert) check() error {
	w.Status, w.Message = strings.TrimSpace(w.Status), strings.TrimSpace(w.Message)
	w.Status = cmp.Or(w.Status, "Perch")
	w.Emotion = cmp.Or(w.Emotion, "neutral")
	switch {
	case w.Message == "" || len(w.Message) > limit.Line || !printable(w.Message):
		return httpserver.BadBody("message is needed, of at most 1000 bytes, without control characters")
	case len(w.Status) > limit.Word || !printable(w.Status):
		return httpserver.BadBody("status is a line of at most 64 bytes, without control characters")
	case len(w.Emotion) > mostEmotion || !isWord(w.Emotion):
		return httpserver.BadBody("emotion is the name of a face or an icon, such as happy, of at most 32 letters, digits, - and _")
	}
	return nil
}

// printable reports whether a text has no control characters but newlines: the firmware ends a text at its first zero.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' })
}

func isWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// Tool is a robot's tool in an answer.
type Tool struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Schema      device.Schema `json:"schema"`    // of its arguments
	UserOnly    bool          `json:"user_only"` // brains are offered it only with robots.user_tools
}

func (a *API) tools(id device.ID) []Tool {
	list := []Tool{}
	for _, t := range a.o.Talk.Tools(id) {
		list = append(list, Tool{t.Name, t.Description, t.Schema, t.UserOnly})
	}
	return list
}

// Result is the result of a tool.
type Result struct {
	Text     string    `json:"text"`
	Pictures []Picture `json:"pictures"`
}

// Picture is an image in an answer of JSON.
type Picture struct {
	Type string `json:"type"` // "image/jpeg"
	Data []byte `json:"data"` // base64 on the wire
}

// call is the body of a call to a tool. It may be empty.
type call struct {
	Arguments map[string]any `json:"arguments"`
}

func (a *API) call(ctx context.Context, id device.ID, tool string, c call) (Result, error) {
	if len(tool) > limit.ID {
		return Result{}, &httpserver.Fault{Word: "unknown_tool", Sentence: "no robot has a tool with so long a name", HTTP: http.StatusNotFound}
	}
	if c.Arguments == nil {
		c.Arguments = map[string]any{}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, toolWithin, errToolTimeout)
	defer cancel()
	answer, err := a.o.Talk.Call(ctx, id, tool, c.Arguments)
	if err != nil {
		if context.Cause(ctx) == errToolTimeout {
			err = errToolTimeout
		}
		return Result{}, err
	}
	result := Result{Text: answer.Text, Pictures: []Picture{}}
	for _, p := range answer.Pictures {
		result.Pictures = append(result.Pictures, Picture{p.Type, p.Data})
	}
	return result, nil
}

// errToolTimeout is the cause of a call that took longer than toolWithin.
var errToolTimeout error = &httpserver.Fault{Word: "tool_timeout",
	Sentence: "the robot did not answer the call within a minute", HTTP: http.StatusGatewayTimeout}

// picture returns the latest picture of a robot's camera. The type is the robot's claim, so
// only types that browsers show as nothing but an image are passed on.
func (a *API) picture(id device.ID) (device.Picture, error) {
	p, there := a.o.Talk.Picture(id)
	if !there {
		return p, &httpserver.Fault{Word: "no_picture", HTTP: http.StatusNotFound,
			Sentence: "this robot has sent no picture since the appliance started; its tools may hold one that takes a photo"}
	}
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"}, p.Type) {
		p.Type = "application/octet-stream"
	}
	return p, nil
}
