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

// robotCharacter is a robot as a character.
type robotCharacter struct {
	server *Server
	robot  device.ID
}

// The firmware's tools for actions. Their prefix differs between boards.
const (
	headTool  = "set_head_angles"
	lightTool = "set_led_color"
	headSpeed = 250
)

// Categories of a robot's capabilities.
const (
	doLook       = "lookAt"
	doExpression = "expression"
	doSay        = "say"
	doLight      = "led"
	doMove       = "movement"
)

// tool returns the robot's tool whose last part is name.
func (c robotCharacter) tool(name string) (device.Tool, bool) {
	for _, t := range c.server.o.Talk.Tools(c.robot) {
		if t.Name == name || strings.HasSuffix(t.Name, "."+name) {
			return t, true
		}
	}
	return device.Tool{}, false
}

// can returns the categories of the robot's actions.
func (c robotCharacter) can() []string {
	can := []string{doExpression, doSay}
	if _, has := c.tool(headTool); has {
		can = append(can, doLook)
	}
	if _, has := c.tool(lightTool); has {
		can = append(can, doLight)
	}
	return can
}

// example is an action in the capability.
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

func (c robotCharacter) capability() json.RawMessage {
	type object = map[string]any
	known := map[string]example{
		doLook: {Data: object{"target": object{"type": "position", "value": position{Z: 1}}},
			Description: "turns the head to a place in metres from it: x to its own left, y up, z out of the face"},
		doExpression: {Data: object{"preset": presets()[0]}, Description: "the face; presets: " + strings.Join(presets(), ", ")},
		doSay:        {Data: object{"text": "Hello."}, Description: "speaks a text, in its own voice"},
		doLight:      {Data: object{"red": 0, "green": 60, "blue": 0}, Description: "the ring of lights, each colour 0-168; all 0 is off"},
	}
	examples := []example{}
	for _, category := range c.can() {
		e := known[category]
		e.Type, e.Category, e.Timestamp = typeAction, category, stamp(time.Now())
		examples = append(examples, e)
	}
	return httpserver.Encode(object{"actions": examples})
}

// play performs an action.
func (c robotCharacter) play(ctx context.Context, action message) error {
	switch action.Category {
	case doLook:
		at, err := parseLookAt(action.Data)
		if err != nil {
			return err
		}
		yaw, pitch := at.angles()
		return c.call(ctx, headTool, map[string]any{"yaw": yaw, "pitch": pitch, "speed": headSpeed})
	case doExpression:
		return c.feel(ctx, action.Data)
	case doSay:
		return c.speak(ctx, action.Data)
	case doLight:
		var colour struct{ Red, Green, Blue int }
		if err := json.Unmarshal(action.Data, &colour); err != nil {
			return errors.New(`led needs {"red":0,"green":60,"blue":0}, whole numbers`)
		}
		return c.call(ctx, lightTool, map[string]any{"red": colour.Red, "green": colour.Green, "blue": colour.Blue})
	case doMove:
		return fmt.Errorf("this robot stands where it stands and cannot walk; it can %s", strings.Join(c.can(), ", "))
	}
	return fmt.Errorf("this robot has no action %q; it can %s", action.Category, strings.Join(c.can(), ", "))
}

func (c robotCharacter) feel(ctx context.Context, data json.RawMessage) error {
	var e struct {
		Preset string `json:"preset"`
	}
	if err := json.Unmarshal(data, &e); err != nil || e.Preset == "" {
		return fmt.Errorf(`expression needs {"preset":%q}`, presets()[0])
	}
	face, known := c.server.o.Face(e.Preset)
	if !known {
		return fmt.Errorf("there is no preset %q; those there are: %s", plain.Clip(e.Preset, limit.Word), strings.Join(presets(), ", "))
	}
	return c.server.o.Talk.Feel(ctx, c.robot, face)
}

func (c robotCharacter) speak(ctx context.Context, data json.RawMessage) error {
	var s struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &s); err != nil || strings.TrimSpace(s.Text) == "" {
		return errors.New(`say needs {"text":"Hello."}`)
	}
	if len(s.Text) > limit.Line {
		return fmt.Errorf("a robot is given at most %d bytes to say at once", limit.Line)
	}
	// A robot with a closed channel speaks after its next hello.
	_, err := c.server.o.Talk.Speak(ctx, c.robot, s.Text)
	return err
}

// call calls a tool of the firmware, which checks the ranges of the arguments.
func (c robotCharacter) call(ctx context.Context, name string, arguments map[string]any) error {
	t, has := c.tool(name)
	if !has {
		return fmt.Errorf("this robot's firmware has no %s", name)
	}
	_, err := c.server.call(ctx, c.robot, t.Name, arguments)
	return err
}

// perceptions returns the latest event of each name, and everything known as "state".
func (c robotCharacter) perceptions(now time.Time) []message {
	s := c.server.o.Senses.Robot(c.robot, now)
	var latest []message
	indexes := map[string]int{}
	for _, r := range s.Recent {
		m := message{Type: typePerception, Category: r.Name, Timestamp: stamp(r.At), Data: r.Data}
		if len(m.Data) == 0 {
			m.Data = json.RawMessage("{}")
		}
		if i, known := indexes[r.Name]; known {
			latest[i] = m
			continue
		}
		indexes[r.Name] = len(latest)
		latest = append(latest, m)
	}
	s.Recent = nil
	return append(latest, message{Type: typePerception, Category: "state", Timestamp: stamp(now), Data: httpserver.Encode(s)})
}
