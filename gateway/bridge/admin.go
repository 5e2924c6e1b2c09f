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

// What a robot is given at once, in bytes.
const fastTurn = 250 // of a head, where a client names no speed

// command is the body of a command for robots; every act has its own part
// of it.
type command struct {
	DeviceID string `json:"device_id"` // empty is the first that is connected

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

// commandResult is the answer: which robot it was, in the firmware's spelling, and
// the command.
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

// act carries out a command, and adds to the answer what it was.
type act func(ctx context.Context, id device.ID, o command, a *commandResult) error

// run reads a command, finds its robot and carries it out. Commands without
// anything in them may come without a body.
func (d *API) run(ctx context.Context, body []byte, check func(*command) error, do act) (commandResult, error) {
	var o command
	if len(body) > 0 {
		if err := httpserver.Decode(body, &o); err != nil {
			return commandResult{}, err
		}
	}
	if err := check(&o); err != nil {
		return commandResult{}, err
	}
	id, err := d.robot(strings.TrimSpace(o.DeviceID))
	if err != nil {
		return commandResult{}, err
	}
	a := commandResult{OK: true, DeviceID: id.MAC()}
	if err := do(ctx, id, o, &a); err != nil {
		return commandResult{}, err
	}
	return a, nil
}

// nothing is the check of an order without a body of its own.
func nothing(*command) error { return nil }

func hasText(o *command) (err error) {
	o.Text, err = needed("text", o.Text, limit.Said)
	return err
}

func (d *API) injectText(ctx context.Context, id device.ID, o command, _ *commandResult) error {
	return d.o.Talk.InjectText(ctx, id, o.Text)
}

func (d *API) speak(ctx context.Context, id device.ID, o command, _ *commandResult) error {
	// Where the channel has closed meanwhile, it is said after the next hello.
	_, err := d.o.Talk.Speak(ctx, id, o.Text)
	return err
}

func (d *API) abort(ctx context.Context, id device.ID, _ command, _ *commandResult) error {
	return d.o.Talk.Abort(ctx, id)
}

// hasAngles wants one of the two axes; the other stays as it is.
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

// turnHead turns a head, as far as it goes: the robot's own range is kept to
// where the call is made.
func (d *API) turnHead(ctx context.Context, id device.ID, o command, a *commandResult) error {
	speed := fastTurn
	if o.Speed != nil {
		speed = int(*o.Speed)
	}
	a.Speed = &speed
	arguments := map[string]any{"speed": speed}
	for name, axis := range map[string]struct {
		angle *float64
		field **int
	}{"yaw": {o.Yaw, &a.Yaw}, "pitch": {o.Pitch, &a.Pitch}} {
		if axis.angle != nil {
			degrees := int(*axis.angle)
			*axis.field, arguments[name] = &degrees, degrees
		}
	}
	return d.command(ctx, id, "set_head_angles", arguments)
}

// command runs a tool that answers at once.
func (d *API) command(ctx context.Context, id device.ID, tool string, arguments map[string]any) error {
	return within(ctx, d.current.Load().Short, tool, func(ctx context.Context) error {
		_, err := d.call(ctx, id, tool, arguments)
		return err
	})
}

// hasState wants one of the states that firmware with this tool has.
func hasState(o *command) error {
	if o.State = plain.Line(o.State); !slices.Contains([]string{"idle", "talk", "story_time", "security", "sleep", "dance"}, o.State) {
		return httpserver.BadBody("state is one of idle, talk, story_time, security, sleep and dance")
	}
	return nil
}

func (d *API) setState(ctx context.Context, id device.ID, o command, a *commandResult) error {
	a.State = o.State
	return d.command(ctx, id, "set_state", map[string]any{"state": o.State})
}

// hasToggle wants one of the toggles that firmware with this tool has, and a
// plain yes or no.
func hasToggle(o *command) error {
	if o.Name = plain.Line(o.Name); o.Name != "kid_mode" && o.Name != "smart_mode" {
		return httpserver.BadBody("name is one of kid_mode and smart_mode")
	}
	if o.Enabled == nil {
		return httpserver.BadBody("enabled is needed: true or false")
	}
	return nil
}

func (d *API) setToggle(ctx context.Context, id device.ID, o command, a *commandResult) error {
	a.Name, a.Enabled = o.Name, o.Enabled
	return d.command(ctx, id, "set_toggle", map[string]any{"name": o.Name, "enabled": *o.Enabled})
}

func (d *API) setFaceIdentified(ctx context.Context, id device.ID, _ command, _ *commandResult) error {
	return d.command(ctx, id, "set_face_identified", map[string]any{})
}

func hasQuestion(o *command) (err error) {
	o.Question, err = needed("question", o.Question, mostAsked)
	return err
}

// takePicture waits for what is seen. If the client does not wait, the photo is
// taken all the same: the robot has its command.
func (d *API) takePicture(ctx context.Context, id device.ID, o command, a *commandResult) error {
	a.Question = o.Question
	return within(ctx, d.current.Load().Long, "take_photo", func(ctx context.Context) (err error) {
		a.Result, err = d.photo(ctx, id, o.Question)
		return err
	})
}

// hasAsset wants a sound that may be played, by its name or its path.
func (d *API) hasAsset(o *command) (err error) {
	_, err = baseName(strings.TrimSpace(o.Asset), d.o.Root)
	return err
}

func (d *API) playAsset(ctx context.Context, id device.ID, o command, a *commandResult) error {
	name, _ := baseName(strings.TrimSpace(o.Asset), d.o.Root) // which hasAsset has checked
	a.Asset = o.Asset
	return d.play(ctx, id, name)
}

// devices are the robots that are connected.
func (d *API) devices() []string {
	list := []string{}
	for _, id := range d.o.Talk.Open() {
		list = append(list, id.MAC())
	}
	return list
}
