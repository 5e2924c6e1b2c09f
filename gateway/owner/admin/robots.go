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
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
)

// maxEmotion is the maximum length of the name of a face or icon, in bytes.
const maxEmotion = 32

// toolTimeout bounds the wait for the result of a tool. The session of the robot has shorter limits, even for slow
// tools such as a photo that a model describes.
const toolTimeout = time.Minute

// Accepted is the response to an accepted action on a robot.
type Accepted struct {
	OK     bool `json:"ok"`
	Queued bool `json:"queued"` // the action is carried out when the robot connects next
}

// speech is the body of a request to speak a text.
type speech struct {
	Text string `json:"text"`
}

// musicChoice is the body of a request to play music.
type musicChoice struct {
	Name string `json:"name"` // name of the music in the configuration; "" is the first
}

func (a *API) sendSpeech(ctx context.Context, id device.ID, s speech) (Accepted, error) {
	if s.Text == "" || len(s.Text) > limit.Said {
		return Accepted{}, httpserver.BadBody("text is needed, of at most 4000 bytes")
	}
	queued, err := a.o.Talk.Speak(ctx, id, s.Text)
	return Accepted{true, queued}, err
}

// Answered is the response to a question that a robot was asked.
type Answered struct {
	Accepted
	Text string `json:"text"` // the answer, if the robot's channel is closed; otherwise events contain it
}

// ask makes a robot answer a text, as if somebody had spoken it to the robot.
func (a *API) ask(ctx context.Context, id device.ID, s speech) (Answered, error) {
	if s.Text == "" || len(s.Text) > limit.Said {
		return Answered{}, httpserver.BadBody("text is needed, of at most 4000 bytes")
	}
	answer, queued, err := a.o.Talk.AskAgent(ctx, id, s.Text)
	return Answered{Accepted{true, queued}, answer}, err
}

// leave records that the browser tab that acted as a robot was closed, so that clients can hide the robot. It returns
// an error for any other robot.
func (a *API) leave(r device.Robot, now time.Time) error {
	if r.Board != device.PageBoard {
		return &httpserver.Fault{Word: "not_of_the_page", Sentence: "only a robot of the page can leave", HTTP: http.StatusConflict}
	}
	a.left.Store(r.ID, now)
	a.o.Bus.Publish(r.ID, "", event.Changed{What: "robot", ID: string(r.ID)})
	return nil
}

// hasLeft reports whether the browser tab that acted as a robot was closed and has not been opened again.
func (a *API) hasLeft(r device.Robot) bool {
	at, left := a.left.Load(r.ID)
	return left && !r.Booted.After(at.(time.Time)) // not LastSeen, because the channel of the tab may end after leave
}

// readChange reads a change of a robot's settings. It rejects unknown keys. The key character is the newer name of
// persona.
func readChange(body io.Reader) (device.Change, error) {
	var c struct {
		device.Change
		Character *string `json:"character"`
	}
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return device.Change{}, badBodyError(err)
	}
	if c.Character != nil && c.Persona != nil {
		return device.Change{}, httpserver.BadBody("character and persona are the same setting: send one of them")
	}
	c.Persona = cmp.Or(c.Character, c.Persona)
	return c.Change, nil
}

// alert is the body of a request to show an alert on a robot's screen.
type alert struct {
	Status  string `json:"status"`  // line at the top of the screen
	Message string `json:"message"` // text below the status
	Emotion string `json:"emotion"` // name of a face or an icon of the firmware
}

func (a *API) showAlert(ctx context.Context, id device.ID, w alert) (Accepted, error) {
	if err := w.check(); err != nil {
		return Accepted{}, err
	}
	queued, err := a.o.Talk.Alert(ctx, id, w.Status, w.Message, w.Emotion)
	return Accepted{true, queued}, err
}

// check checks the fields, and sets empty ones to their defaults, because the firmware needs all three.
func (w *alert) check() error {
	w.Status, w.Message = strings.TrimSpace(w.Status), strings.TrimSpace(w.Message)
	w.Status = cmp.Or(w.Status, "Perch")
	w.Emotion = cmp.Or(w.Emotion, "neutral")
	switch {
	case w.Message == "" || len(w.Message) > limit.Line || !isPrintable(w.Message):
		return httpserver.BadBody("message is needed, of at most 1000 bytes, without control characters")
	case len(w.Status) > limit.Word || !isPrintable(w.Status):
		return httpserver.BadBody("status is a line of at most 64 bytes, without control characters")
	case len(w.Emotion) > maxEmotion || !isWord(w.Emotion):
		return httpserver.BadBody("emotion is the name of a face or an icon, such as happy, of at most 32 letters, digits, - and _")
	}
	return nil
}

// isPrintable reports whether a text has no control characters except newlines. The firmware, for example, ends a
// text at a zero byte.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' })
}

// isWord reports whether a text has only letters, digits, hyphens and underscores.
func isWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// Tool is a tool of a robot in a response.
type Tool struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Schema      device.Schema `json:"schema"`    // schema of the arguments
	UserOnly    bool          `json:"user_only"` // brains can use the tool only if robots.user_tools is set
}

func (a *API) tools(id device.ID) []Tool {
	list := []Tool{}
	for _, t := range a.o.Talk.Tools(id) {
		list = append(list, Tool{t.Name, t.Description, t.Schema, t.UserOnly})
	}
	return list
}

// Result is the response with the result of a tool.
type Result struct {
	Text     string    `json:"text"`
	Pictures []Picture `json:"pictures"`
}

// Picture is a picture in a Result.
type Picture struct {
	Type string `json:"type"` // media type, such as "image/jpeg"
	Data []byte `json:"data"` // encoded as base64 in JSON
}

// call is the body of a request to call a tool. The body may be empty.
type call struct {
	Arguments map[string]any `json:"arguments"`
}

// callTool calls a tool of a robot and waits for its result.
func (a *API) callTool(ctx context.Context, id device.ID, tool string, c call) (Result, error) {
	if len(tool) > limit.ID {
		return Result{}, &httpserver.Fault{Word: "unknown_tool", Sentence: "no robot has a tool with so long a name", HTTP: http.StatusNotFound}
	}
	if c.Arguments == nil {
		c.Arguments = map[string]any{}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, toolTimeout, errToolTimeout)
	defer cancel()
	called, err := a.o.Talk.Call(ctx, id, tool, c.Arguments)
	if err != nil {
		if context.Cause(ctx) == errToolTimeout {
			err = errToolTimeout
		}
		return Result{}, err
	}
	result := Result{Text: called.Text, Pictures: []Picture{}}
	for _, p := range called.Pictures {
		result.Pictures = append(result.Pictures, Picture{p.Type, p.Data})
	}
	return result, nil
}

// errToolTimeout is the error for a tool that took longer than toolTimeout.
var errToolTimeout error = &httpserver.Fault{Word: "tool_timeout",
	Sentence: "the robot did not answer the call within a minute", HTTP: http.StatusGatewayTimeout}

// picture returns the latest picture of a robot's camera. The robot chooses the media type, so any type that a
// browser might not show as an image is replaced.
func (a *API) picture(id device.ID) (device.Picture, error) {
	p, found := a.o.Talk.Picture(id)
	if !found {
		return p, &httpserver.Fault{Word: "no_picture", HTTP: http.StatusNotFound,
			Sentence: "this robot has sent no picture since the appliance started; a brain or you can call its camera tool, if it has one"}
	}
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"}, p.Type) {
		p.Type = "application/octet-stream"
	}
	return p, nil
}
