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

// defaultSpeed is the speed of a head if the client names none, in the firmware's unit.
const defaultSpeed = 250

// command is the body of every command for robots. Each act uses its own fields.
type command struct {
	DeviceID string `json:"device_id"` // empty means the first connected robot

	Text     string   `json:"text"`
	Yaw      *float64 `json:"yaw"`
	Pitch    *float64 `json:"pitch"`
	Speed    *float64 `json:"speed"`
	State    string   `json:"state"`
	Name     string   `json:"name"`
	Enabled  *bool    `json:"enabled"`
	Question string   `json:"question"`
	Asset    string   `json:"asset"`
}

// commandResult is the answer: the robot, in the firmware's spelling, and the command.
type commandResult struct {
	OK       bool   `json:"ok"`
	DeviceID string `json:"device_id"`

	Yaw      *int   `json:"yaw,omitempty"`
	Pitch    *int   `json:"pitch,omitempty"`
	Speed    *int   `json:"speed,omitempty"`
	State    string `json:"state,omitempty"`
	Name     string `json:"name,omitempty"`
	Enabled  *bool  `json:"enabled,omitempty"`
	Question string `json:"question,omitempty"`
	Result   string `json:"result,omitempty"` // of a photo
	Asset    string `json:"asset,omitempty"`
}

// act executes a command and completes the answer.
type act func(ctx context.Context, id device.ID, o command, result *commandResult) error

// run decodes and checks a command, and executes it on its robot. The body may be empty.
func (a *API) run(ctx context.Context, body []byte, check func(*command) error, do act) (commandResult, error) {
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

// noCheck checks a command without fields.
func noCheck(*command) error { return nil }

func hasText(o *command) (err error) {
	o.Text, err = required("text", o.Text, limit.Said)
	return err
}

func (a *API) injectText(ctx context.Context, id device.ID, o command, _ *commandResult) error {
	return a.o.Talk.InjectText(ctx, id, o.Text)
}

func (a *API) speak(ctx context.Context, id device.ID, o command, _ *commandResult) error {
	_, err := a.o.Talk.Speak(ctx, id, o.Text) // queued for the next hello if the channel has just closed
	return err
}

func (a *API) abort(ctx context.Context, id device.ID, _ command, _ *commandResult) error {
	return a.o.Talk.Abort(ctx, id)
}

// hasAngles requires at least one axis. The other stays unchanged.
func hasAngles(o *command) error {
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

// turnHead turns a head. Talk limits the angles to the robot's range.
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
	return a.command(ctx, id, "set_head_angles", arguments)
}

// command calls a tool that answers at once.
func (a *API) command(ctx context.Context, id device.ID, tool string, arguments map[string]any) error {
	_, err := within(ctx, a.current.Load().Short, tool, func(ctx context.Context) (device.Result, error) {
		return a.call(ctx, id, tool, arguments)
	})
	return err
}

// hasState requires a state of the firmware that has this tool.
func hasState(o *command) error {
	if o.State = plain.Line(o.State); !slices.Contains([]string{"idle", "talk", "story_time", "security", "sleep", "dance"}, o.State) {
		return httpserver.BadBody("state is one of idle, talk, story_time, security, sleep and dance")
	}
	return nil
}

func (a *API) setState(ctx context.Context, id device.ID, o command, result *commandResult) error {
	result.State = o.State
	return a.command(ctx, id, "set_state", map[string]any{"state": o.State})
}

// hasToggle requires a toggle of the firmware that has this tool.
func hasToggle(o *command) error {
	if o.Name = plain.Line(o.Name); o.Name != "kid_mode" && o.Name != "smart_mode" {
		return httpserver.BadBody("name is one of kid_mode and smart_mode")
	}
	if o.Enabled == nil {
		return httpserver.BadBody("enabled is needed: true or false")
	}
	return nil
}

func (a *API) setToggle(ctx context.Context, id device.ID, o command, result *commandResult) error {
	result.Name, result.Enabled = o.Name, o.Enabled
	return a.command(ctx, id, "set_toggle", map[string]any{"name": o.Name, "enabled": *o.Enabled})
}

func (a *API) setFaceIdentified(ctx context.Context, id device.ID, _ command, _ *commandResult) error {
	return a.command(ctx, id, "set_face_identified", map[string]any{})
}

func hasQuestion(o *command) (err error) {
	o.Question, err = required("question", o.Question, mostQuestion)
	return err
}

// takePicture waits for the picture's description. The robot takes the picture even if the
// client does not wait.
func (a *API) takePicture(ctx context.Context, id device.ID, o command, result *commandResult) (err error) {
	result.Question = o.Question
	result.Result, err = within(ctx, a.current.Load().Long, "take_photo", func(ctx context.Context) (string, error) {
		return a.photo(ctx, id, o.Question)
	})
	return err
}

// hasAsset requires the name or path of a sound that may be played.
func (a *API) hasAsset(o *command) error {
	_, err := baseName(strings.TrimSpace(o.Asset), a.o.Root)
	return err
}

func (a *API) playAsset(ctx context.Context, id device.ID, o command, result *commandResult) error {
	name, _ := baseName(strings.TrimSpace(o.Asset), a.o.Root) // checked by hasAsset
	result.Asset = o.Asset
	return a.play(ctx, id, name)
}

// devices returns the connected robots, in the firmware's spelling.
func (a *API) devices() []string {
	list := []string{}
	for _, id := range a.o.Talk.Open() {
		list = append(list, id.MAC())
	}
	return list
}
