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

// What a robot is given at once, in bytes. Its screen shows a few lines, and a
// face or icon is one short word.
const mostEmotion = 32

// toolWithin is how long the answer of a tool is waited for. Those that take
// long, such as a photo somebody looks at, have limits of their own below it.
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

func (d *API) sendSpeech(ctx context.Context, id device.ID, s speech) (Taken, error) {
	if s.Text == "" || len(s.Text) > limit.Said {
		return Taken{}, httpserver.BadBody("text is needed, of at most 4000 bytes")
	}
	queued, err := d.o.Talk.Speak(ctx, id, s.Text)
	return Taken{true, queued}, err
}

// readChange reads what is to be set for a robot. An unknown key is an error, for
// nothing would come of it.
// A character is a persona's newer name.
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
// for the rest, and a face, or an icon its firmware has.
type alert struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Emotion string `json:"emotion"`
}

func (d *API) alert(ctx context.Context, id device.ID, a alert) (Taken, error) {
	if err := a.check(); err != nil {
		return Taken{}, err
	}
	queued, err := d.o.Talk.Alert(ctx, id, a.Status, a.Message, a.Emotion)
	return Taken{true, queued}, err
}

// check also fills in what was left out: the firmware needs all three.
func (a *alert) check() error {
	a.Status, a.Message = strings.TrimSpace(a.Status), strings.TrimSpace(a.Message)
	a.Status = cmp.Or(a.Status, "Perch")
	a.Emotion = cmp.Or(a.Emotion, "neutral")
	switch {
	case a.Message == "" || len(a.Message) > limit.Line || !printable(a.Message):
		return httpserver.BadBody("message is needed, of at most 1000 bytes, without control characters")
	case len(a.Status) > limit.Word || !printable(a.Status):
		return httpserver.BadBody("status is a line of at most 64 bytes, without control characters")
	case len(a.Emotion) > mostEmotion || !isWord(a.Emotion):
		return httpserver.BadBody("emotion is the name of a face or an icon, such as happy, of at most 32 letters, digits, - and _")
	}
	return nil
}

// printable lets a text have lines, and nothing else that is no character: the
// firmware ends a text at its first zero.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' })
}

func isWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// Tool is something a robot can do, as it is shown.
type Tool struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Schema      device.Schema `json:"schema"`    // of its arguments
	UserOnly    bool          `json:"user_only"` // brains are offered it with robots.user_tools alone
}

func (d *API) tools(id device.ID) []Tool {
	list := []Tool{}
	for _, t := range d.o.Talk.Tools(id) {
		list = append(list, Tool{t.Name, t.Description, t.Schema, t.UserOnly})
	}
	return list
}

// Result is what a tool answered.
type Result struct {
	Text     string    `json:"text"`
	Pictures []Picture `json:"pictures"`
}

// Picture is an image in an answer of JSON.
type Picture struct {
	Type string `json:"type"` // "image/jpeg"
	Data []byte `json:"data"` // base64 on the wire
}

// call is the body of a call to a tool; none is a call without arguments.
type call struct {
	Arguments map[string]any `json:"arguments"`
}

func (d *API) call(ctx context.Context, id device.ID, tool string, c call) (Result, error) {
	if len(tool) > limit.ID {
		return Result{}, &httpserver.Fault{Word: "unknown_tool", Sentence: "no robot has a tool with so long a name", HTTP: http.StatusNotFound}
	}
	if c.Arguments == nil {
		c.Arguments = map[string]any{}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, toolWithin, errToolTimeout)
	defer cancel()
	answer, err := d.o.Talk.Call(ctx, id, tool, c.Arguments)
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

// errToolTimeout is the end of patience with a tool.
var errToolTimeout error = &httpserver.Fault{Word: "tool_timeout",
	Sentence: "the robot did not answer the call within a minute", HTTP: http.StatusGatewayTimeout}

// picture is the latest of a robot's camera. The type is the robot's word, so
// only those are passed on that a browser takes for nothing but an image.
func (d *API) picture(id device.ID) (device.Picture, error) {
	p, there := d.o.Talk.Picture(id)
	if !there {
		return p, &httpserver.Fault{Word: "no_picture", HTTP: http.StatusNotFound,
			Sentence: "this robot has sent no picture since the appliance started; its tools may hold one that takes a photo"}
	}
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"}, p.Type) {
		p.Type = "application/octet-stream"
	}
	return p, nil
}
