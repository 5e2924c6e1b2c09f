package bridge

import (
	"context"
	"math"
	"slices"
	"strings"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// defaultSpeed is the speed of a head's movement if a command has none, in the firmware's unit.
const defaultSpeed = 250

// command is the body of every command for a robot. Each command uses only some of the fields.
type command struct {
	DeviceID string `json:"device_id"` // MAC address or name of the robot; empty for the first connected robot

	Text     string   `json:"text"`
	Yaw      *float64 `json:"yaw"`   // degrees
	Pitch    *float64 `json:"pitch"` // degrees
	Speed    *float64 `json:"speed"` // in the firmware's unit; nil for defaultSpeed
	State    string   `json:"state"`
	Name     string   `json:"name"`
	Enabled  *bool    `json:"enabled"`
	Question string   `json:"question"`
	Asset    string   `json:"asset"`
}

// commandResult is the response to a command. It repeats the fields of the command, except the text.
type commandResult struct {
	OK       bool   `json:"ok"`
	DeviceID string `json:"device_id"` // MAC address of the robot, as the firmware spells it

	Yaw      *int   `json:"yaw,omitempty"`
	Pitch    *int   `json:"pitch,omitempty"`
	Speed    *int   `json:"speed,omitempty"`
	State    string `json:"state,omitempty"`
	Name     string `json:"name,omitempty"`
	Enabled  *bool  `json:"enabled,omitempty"`
	Question string `json:"question,omitempty"`
	Result   string `json:"result,omitempty"` // description of the picture
	Asset    string `json:"asset,omitempty"`
}

// action executes a command and sets the fields of the response.
type action func(ctx context.Context, id device.ID, o command, result *commandResult) error

// runCommand decodes, checks and executes a command. The body may be empty.
func (a *API) runCommand(ctx context.Context, body []byte, check func(*command) error, do action) (commandResult, error) {
	var o command
	if len(body) > 0 {
		if err := httpserver.Decode(body, &o); err != nil {
			return commandResult{}, err
		}
	}
	if err := check(&o); err != nil {
		return commandResult{}, err
	}
	id, err := a.robot(strings.TrimSpace(o.DeviceID))
	if err != nil {
		return commandResult{}, err
	}
	result := commandResult{OK: true, DeviceID: id.MAC()}
	err = do(ctx, id, o, &result)
	return result, err
}

// noCheck is the check of a command without fields.
func noCheck(*command) error { return nil }

// checkText checks the text of a command, and makes it one line.
func checkText(o *command) (err error) {
	o.Text, err = requiredText("text", o.Text, limit.Said)
	return err
}

// injectText handles a text as if a person had said it to the robot.
func (a *API) injectText(ctx context.Context, id device.ID, o command, _ *commandResult) error {
	return a.o.Talk.InjectText(ctx, id, o.Text)
}

func (a *API) speak(ctx context.Context, id device.ID, o command, _ *commandResult) error {
	_, err := a.o.Talk.Speak(ctx, id, o.Text) // queues the text if the channel has been closed in the meantime
	return err
}

// abort stops what the robot is saying.
func (a *API) abort(ctx context.Context, id device.ID, _ command, _ *commandResult) error {
	return a.o.Talk.Abort(ctx, id)
}

// checkAngles checks a movement of the head, which needs at least one of yaw and pitch.
func checkAngles(o *command) error {
	if o.Yaw == nil && o.Pitch == nil {
		return httpserver.BadBody("yaw or pitch is needed, in degrees")
	}
	for _, angle := range []*float64{o.Yaw, o.Pitch} {
		if angle != nil && math.Abs(*angle) > 360 {
			return httpserver.BadBody("yaw and pitch are degrees, from -360 to 360")
		}
	}
	if o.Speed != nil && (*o.Speed < 1 || *o.Speed > 1000) {
		return httpserver.BadBody("speed is a number from 1 to 1000")
	}
	return nil
}

// turnHead turns the head. Talk.Call limits the angles to the range of the robot.
func (a *API) turnHead(ctx context.Context, id device.ID, o command, result *commandResult) error {
	speed := defaultSpeed
	if o.Speed != nil {
		speed = int(*o.Speed)
	}
	result.Speed = &speed
	arguments := map[string]any{"speed": speed}
	for name, axis := range map[string]struct {
		angle *float64
		field **int
	}{"yaw": {o.Yaw, &result.Yaw}, "pitch": {o.Pitch, &result.Pitch}} {
		if axis.angle != nil {
			degrees := int(*axis.angle)
			*axis.field, arguments[name] = &degrees, degrees
		}
	}
	return a.runTool(ctx, id, "set_head_angles", arguments)
}

// runTool calls a tool of the robot, with ShortTimeout as the time limit.
func (a *API) runTool(ctx context.Context, id device.ID, tool string, arguments map[string]any) error {
	_, err := withTimeout(ctx, a.current.Load().ShortTimeout, tool, func(ctx context.Context) (device.Result, error) {
		return a.callTool(ctx, id, tool, arguments)
	})
	return err
}

// checkState checks a command with a state. The states are those of the firmware with the tool set_state.
func checkState(o *command) error {
	if o.State = plain.Line(o.State); !slices.Contains([]string{"idle", "talk", "story_time", "security", "sleep", "dance"}, o.State) {
		return httpserver.BadBody("state is one of idle, talk, story_time, security, sleep and dance")
	}
	return nil
}

// setState sets the state of the robot's firmware.
func (a *API) setState(ctx context.Context, id device.ID, o command, result *commandResult) error {
	result.State = o.State
	return a.runTool(ctx, id, "set_state", map[string]any{"state": o.State})
}

// checkToggle checks a command for a toggle, a setting that is on or off. The names are those of the firmware with
// the tool set_toggle.
func checkToggle(o *command) error {
	if o.Name = plain.Line(o.Name); o.Name != "kid_mode" && o.Name != "smart_mode" {
		return httpserver.BadBody("name is one of kid_mode and smart_mode")
	}
	if o.Enabled == nil {
		return httpserver.BadBody("enabled is needed: true or false")
	}
	return nil
}

// setToggle switches a toggle of the robot's firmware.
func (a *API) setToggle(ctx context.Context, id device.ID, o command, result *commandResult) error {
	result.Name, result.Enabled = o.Name, o.Enabled
	return a.runTool(ctx, id, "set_toggle", map[string]any{"name": o.Name, "enabled": *o.Enabled})
}

// setFaceIdentified informs the robot's firmware that a face was identified.
func (a *API) setFaceIdentified(ctx context.Context, id device.ID, _ command, _ *commandResult) error {
	return a.runTool(ctx, id, "set_face_identified", map[string]any{})
}

// checkQuestion checks the question of a command, and makes it one line.
func checkQuestion(o *command) (err error) {
	o.Question, err = requiredText("question", o.Question, maxQuestion)
	return err
}

// takePicture makes the robot take a picture and waits for the description. A robot that has received the command takes
// the picture even if the program that has sent the command disconnects.
func (a *API) takePicture(ctx context.Context, id device.ID, o command, result *commandResult) (err error) {
	result.Question = o.Question
	result.Result, err = withTimeout(ctx, a.current.Load().LongTimeout, "take_photo", func(ctx context.Context) (string, error) {
		return a.describePicture(ctx, id, o.Question)
	})
	return err
}

// checkAsset checks that a command has the name or path of a sound that may be played.
func (a *API) checkAsset(o *command) error {
	_, err := baseName(strings.TrimSpace(o.Asset), a.o.Root)
	return err
}

func (a *API) playAsset(ctx context.Context, id device.ID, o command, result *commandResult) error {
	name, _ := baseName(strings.TrimSpace(o.Asset), a.o.Root) // cannot fail, because checkAsset has checked the asset
	result.Asset = o.Asset
	return a.playSound(ctx, id, name)
}

// devices returns the MAC addresses of the adopted robots that can be reached, as the firmware spells them.
func (a *API) devices() []string {
	list := []string{}
	for _, id := range a.o.Talk.Reachable() {
		list = append(list, id.MAC())
	}
	return list
}
