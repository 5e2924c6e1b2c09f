package vccp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// robotCharacter is a robot that a model controls.
type robotCharacter struct {
	server *Server
	robot  device.ID
}

// Last parts of the names of the firmware's tools. The prefix differs between boards.
const (
	headTool  = "set_head_angles"
	lightTool = "set_led_color"
	headSpeed = 250 // value of the argument speed of headTool
)

// Categories of actions.
const (
	actionLook       = "lookAt"
	actionExpression = "expression"
	actionSay        = "say"
	actionLight      = "led"
	actionMove       = "movement" // robots do not support it
)

// findTool returns the robot's tool with name as the last part of its name.
func (c robotCharacter) findTool(name string) (device.Tool, bool) {
	for _, t := range c.server.o.Control.Tools(c.robot) {
		if t.Name == name || strings.HasSuffix(t.Name, "."+name) {
			return t, true
		}
	}
	return device.Tool{}, false
}

// actions returns the categories of the actions that the robot supports.
func (c robotCharacter) actions() []string {
	categories := []string{actionExpression, actionSay}
	if _, ok := c.findTool(headTool); ok {
		categories = append(categories, actionLook)
	}
	if _, ok := c.findTool(lightTool); ok {
		categories = append(categories, actionLight)
	}
	return categories
}

// example is an example of an action, as a part of the capability.
type example struct {
	Type        string `json:"type"`
	Category    string `json:"category"`
	Timestamp   string `json:"timestamp"`
	Data        any    `json:"data"`
	Description string `json:"description"`
}

// presets returns the names of the firmware's faces.
func presets() (names []string) {
	for _, e := range agent.Emotions() {
		names = append(names, e.Name)
	}
	return names
}

// capability implements character. It returns an example of each action that the robot supports.
func (c robotCharacter) capability() json.RawMessage {
	type object = map[string]any
	examples := map[string]example{
		actionLook: {Data: object{"target": object{"type": "position", "value": position{Z: 1}}},
			Description: "turns the head towards a position in metres from the head: x to its own left, y up, z out of the face"},
		actionExpression: {Data: object{"preset": presets()[0]}, Description: "the face; presets: " + strings.Join(presets(), ", ")},
		actionSay:        {Data: object{"text": "Hello."}, Description: "speaks a text, in its own voice"},
		actionLight:      {Data: object{"red": 0, "green": 60, "blue": 0}, Description: "the ring of lights, each colour 0-168; all 0 is off"},
	}
	supported := []example{}
	for _, category := range c.actions() {
		e := examples[category]
		e.Type, e.Category, e.Timestamp = typeAction, category, formatTime(time.Now())
		supported = append(supported, e)
	}
	return httpserver.Encode(object{"actions": supported})
}

// play implements character.
func (c robotCharacter) play(ctx context.Context, action message) error {
	switch action.Category {
	case actionLook:
		target, err := parseLookAt(action.Data)
		if err != nil {
			return err
		}
		yaw, pitch := target.angles()
		return c.call(ctx, headTool, map[string]any{"yaw": yaw, "pitch": pitch, "speed": headSpeed})
	case actionExpression:
		return c.showFace(ctx, action.Data)
	case actionSay:
		return c.speak(ctx, action.Data)
	case actionLight:
		var colour struct{ Red, Green, Blue int }
		if err := json.Unmarshal(action.Data, &colour); err != nil {
			return errors.New(`led needs {"red":0,"green":60,"blue":0}, whole numbers`)
		}
		return c.call(ctx, lightTool, map[string]any{"red": colour.Red, "green": colour.Green, "blue": colour.Blue})
	case actionMove:
		return fmt.Errorf("this robot cannot walk; its actions are %s", strings.Join(c.actions(), ", "))
	}
	return fmt.Errorf("this robot has no action %q; its actions are %s", action.Category, strings.Join(c.actions(), ", "))
}

// showFace performs the action expression.
func (c robotCharacter) showFace(ctx context.Context, data json.RawMessage) error {
	var e struct {
		Preset string `json:"preset"`
	}
	if err := json.Unmarshal(data, &e); err != nil || e.Preset == "" {
		return fmt.Errorf(`expression needs {"preset":%q}`, presets()[0])
	}
	face, found := c.server.o.Face(e.Preset)
	if !found {
		return fmt.Errorf("there is no preset %q; the presets are: %s", plain.Clip(e.Preset, limit.Word), strings.Join(presets(), ", "))
	}
	return c.server.o.Control.ShowEmotion(ctx, c.robot, face)
}

// speak performs the action say.
func (c robotCharacter) speak(ctx context.Context, data json.RawMessage) error {
	var s struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &s); err != nil || strings.TrimSpace(s.Text) == "" {
		return errors.New(`say needs {"text":"Hello."}`)
	}
	if len(s.Text) > limit.Line {
		return fmt.Errorf("text must have at most %d bytes", limit.Line)
	}
	// If the robot is not connected, the text is queued until it connects.
	_, err := c.server.o.Control.Speak(ctx, c.robot, s.Text)
	return err
}

// call calls the robot's tool that findTool finds. robotControl.Call limits the arguments to their ranges.
func (c robotCharacter) call(ctx context.Context, name string, arguments map[string]any) error {
	t, ok := c.findTool(name)
	if !ok {
		return fmt.Errorf("this robot's firmware has no tool %s", name)
	}
	_, err := c.server.call(ctx, c.robot, t.Name, arguments)
	return err
}

// perceptions implements character. The category of a perception is the name of the robot's event. The
// category "state" has the rest of the robot's perception.State.
func (c robotCharacter) perceptions(now time.Time) []message {
	s := c.server.o.Senses.Robot(c.robot, now)
	var latest []message
	indexes := map[string]int{}
	for _, r := range s.Recent {
		m := message{Type: typePerception, Category: r.Name, Timestamp: formatTime(r.At), Data: r.Data}
		if len(m.Data) == 0 {
			m.Data = json.RawMessage("{}")
		}
		if i, found := indexes[r.Name]; found {
			latest[i] = m
			continue
		}
		indexes[r.Name] = len(latest)
		latest = append(latest, m)
	}
	s.Recent = nil
	return append(latest, message{Type: typePerception, Category: "state", Timestamp: formatTime(now), Data: httpserver.Encode(s)})
}
