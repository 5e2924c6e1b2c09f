// Package command parses what is published on the command topics of robots and agents and on the
// request topics of the bridge, and carries it out.
package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
	"perch/perception"
	"perch/plain"
)

// Services are what commands and requests act on.
type Services struct {
	Robots   registry
	Talk     talk
	Notifier notifier
	Senses   intake
	Firmware catalogue
	Gestures perception.Gestures // that robots can be asked for; without any, no entity offers them
	Board    *agent.Board
	Bus      *event.Bus
	// Phrase returns one of the appliance's own sentences, by its name, in a robot's language.
	Phrase func(id device.ID, name string) string
}

// registry knows the robots.
type registry interface {
	List() []device.Robot
	Get(id device.ID) (device.Robot, error)
	// Resolve returns the robot with a MAC address or a name.
	Resolve(robot string) (device.ID, error)
	Configure(id device.ID, c device.Change) (device.Robot, error)
	// Trusts reports whether the robot's owner has adopted it by name. Any other is a stranger.
	Trusts(id device.ID) bool
	Adopt(idOrCode string, now time.Time) (device.Robot, error)
	// AdoptClient adopts one of several clients that claim a robot, by its Client-Id or address.
	AdoptClient(id device.ID, client string) (device.Robot, error)
	Forget(id device.ID) error
}

// talk acts on robots. Sentences and alerts for a robot that is offline are stored for its next
// hello, and queued is true; other acts fail with an error that Offline recognizes.
type talk interface {
	// SayKept has a robot speak a sentence, and returns once the sentence cannot be lost.
	SayKept(ctx context.Context, id device.ID, text string) (queued bool, err error)
	Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error)
	Feel(ctx context.Context, id device.ID, e agent.Emotion) error
	Mute(id device.ID, on bool)
	Abort(ctx context.Context, id device.ID) error
	Hangup(ctx context.Context, id device.ID, why string) error
	Reboot(ctx context.Context, id device.ID) error
	// Tools returns the tools of an open channel, or else those last known.
	Tools(id device.ID) []device.Tool
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// notifier accepts notifications, and has them shown and spoken.
type notifier interface {
	Notify(n notice.Notification) (notice.Notification, error)
}

// intake accepts what other programs report that a robot has sensed.
type intake interface {
	FromProgram(id device.ID, name string, data json.RawMessage) error
}

// catalogue has firmware for robots. Its errors are sentences for the robot's owner.
type catalogue interface {
	// Update returns the version that a robot runs and the newest that it could run, which is the
	// same if there is no newer one. Both are empty for a robot that the catalogue does not know.
	Update(id device.ID) (installed, latest string)
	// Install offers a robot an image at its next check-in: the one with a SHA-256, or the newest.
	// The robot can download it at once from the appliance's address and the returned path.
	Install(id device.ID, sha256 string, now time.Time) (path string, err error)
	// Fetch downloads an image for a board into the catalogue, which may take minutes.
	Fetch(ctx context.Context, from, sha256, board string, now time.Time) (version string, err error)
	// Forget removes what is known of a robot.
	Forget(id device.ID) error
}

// Offline reports whether an error means that a robot's channel is closed.
func Offline(err error) bool {
	var c interface{ Code() string }
	return errors.As(err, &c) && c.Code() == "robot_offline"
}

// Effect is what a command has changed that the mirror has to show. The zero value changes nothing.
type Effect struct {
	Change     func(*state.Robot) // sets what the robot cannot be asked for; nil sets nothing
	Read       bool               // the robot's status has to be read
	Configured bool               // the robot's settings have changed
	Notice     string             // the id of the accepted notification
	Postponed  bool               // the robot installs the firmware when it next checks in
}

// UpgradeTool is the firmware's tool that installs an image.
const UpgradeTool = "self.upgrade_firmware"

// installTimeout bounds the wait for the answer of UpgradeTool.
const installTimeout = time.Minute

// Execute carries out a command for a robot. Offline recognizes the error of a command
// that has to wait for the robot's next hello.
func (s Services) Execute(ctx context.Context, id device.ID, c Command) (Effect, error) {
	switch c := c.(type) {
	case say:
		_, err := s.Talk.SayKept(ctx, id, c.text) // which publishes the outcome
		return Effect{}, err
	case notify:
		n, err := s.Notifier.Notify(c.notice)
		return Effect{Notice: n.ID}, err
	case feel:
		robot, err := s.Robots.Get(id)
		if err == nil {
			err = s.Talk.Feel(ctx, id, c.emotion.On(robot.Board))
		}
		return Effect{}, err
	case mute:
		s.Talk.Mute(id, c.on)
		return Effect{Change: func(r *state.Robot) { r.Mute = c.on }}, nil
	case sense:
		return Effect{}, s.Senses.FromProgram(id, c.name, c.data)
	case configure:
		_, err := s.Robots.Configure(id, c.change)
		return Effect{Configured: true}, err
	case reboot:
		return Effect{}, s.Talk.Reboot(ctx, id)
	case stop:
		err := s.Talk.Abort(ctx, id)
		if Offline(err) {
			err = nil // it is silent
		}
		return Effect{}, err
	case identify:
		_, text := agent.SplitEmotion(s.Phrase(id, "here"))
		_, err := s.Talk.Alert(ctx, id, "Perch", text, "happy")
		return Effect{}, err
	case gesture:
		return Effect{}, s.gesture(id, c)
	case level:
		return Effect{Read: true}, s.setLevel(ctx, id, c)
	case turn:
		return s.turn(ctx, id, c)
	case light:
		return s.shine(ctx, id, c.state)
	case install:
		return s.install(ctx, id)
	}
	return Effect{}, fmt.Errorf("unknown command %T", c)
}

// missing returns why a robot lacks a tool. A robot that has never listed its tools may have it: the
// command waits until it has.
func (s Services) missing(id device.ID, what string) error {
	if len(s.Talk.Tools(id)) == 0 {
		return notListed{}
	}
	return fmt.Errorf("this robot has no tool for its %s", what)
}

// notListed is the error of a command for a robot whose tools are unknown.
type notListed struct{}

func (notListed) Error() string { return "the robot has yet to list its tools" }
func (notListed) Code() string  { return "robot_offline" }

// gesture publishes that a robot is to make a gesture. It is not stored for later.
func (s Services) gesture(id device.ID, c gesture) error {
	if _, known := s.Gestures.Named(c.name); !known {
		return fmt.Errorf("there is no gesture %.40q; there are %s", c.name, strings.Join(s.Gestures.Names(), ", "))
	}
	robot := s.Board.Robot(id)
	if !robot.Online {
		return errors.New("the robot is not connected, and a gesture is not kept for later")
	}
	s.Bus.Publish(id, robot.Session, event.Gesture{Name: c.name, Duration: c.duration, By: event.ByOwner})
	return nil
}

func (s Services) setLevel(ctx context.Context, id device.ID, c level) error {
	control, found := discovery.Level(s.Talk.Tools(id), c.what)
	if !found {
		return s.missing(id, c.what)
	}
	if low, high, ok := control.Percent(); ok && (c.value < low || c.value > high) {
		return fmt.Errorf("%s goes from %d to %d, not to %d", c.what, low, high, c.value)
	}
	_, err := s.Talk.Call(ctx, id, control.Name, map[string]any{control.Arguments[0]: c.value})
	return err
}

// turn moves the head. Some heads cannot be asked for their angles.
func (s Services) turn(ctx context.Context, id device.ID, c turn) (Effect, error) {
	head, found := discovery.Head(s.Talk.Tools(id))
	if !found {
		return Effect{}, s.missing(id, "head")
	}
	arguments := map[string]any{}
	for i, angle := range []*int{c.yaw, c.pitch} {
		if angle == nil {
			continue
		}
		low, high, ok := head.Axis(i)
		if !ok {
			return Effect{}, fmt.Errorf("this robot's head has no %s", []string{"yaw", "pitch"}[i])
		}
		*angle = min(max(*angle, low), high) // servos that are driven into their stops break
		arguments[head.Arguments[i]] = *angle
	}
	if speed := head.Integer("speed", "velocity"); speed != "" && c.speed != nil {
		arguments[speed] = *c.speed // the tool's schema bounds it
	}
	_, err := s.Talk.Call(ctx, id, head.Name, arguments)
	return Effect{Read: true, Change: func(r *state.Robot) { r.Readings.SetHead(c.yaw, c.pitch) }}, err
}

// shine sets the lights. Robots cannot be asked for their state.
func (s Services) shine(ctx context.Context, id device.ID, l state.Light) (Effect, error) {
	control, found := device.FindLights(s.Talk.Tools(id))
	if !found {
		return Effect{}, s.missing(id, "lights")
	}
	if *l.State == "ON" && l.Color == nil {
		l.Color = &state.Colour{R: 255, G: 255, B: 255}
	}
	_, err := s.Talk.Call(ctx, id, control.Name, control.Shine(l.RGB()))
	if *l.State == "OFF" {
		l = state.Light{State: l.State}
	} else {
		l.ColorMode, l.Brightness = "rgb", cmp.Or(l.Brightness, new(255))
	}
	return Effect{Change: func(r *state.Robot) { r.Light = &l }}, err
}

// install has a robot install the newest image: at once if its channel is open and it has
// UpgradeTool, and else when it next checks in.
func (s Services) install(ctx context.Context, id device.ID) (Effect, error) {
	path, err := s.Firmware.Install(id, "", time.Now())
	if err != nil {
		return Effect{}, err
	}
	robot, err := s.Robots.Get(id)
	if err != nil {
		return Effect{}, err
	}
	waits := robot.BaseURL == "" || !s.Board.Robot(id).Online ||
		!slices.ContainsFunc(s.Talk.Tools(id), func(t device.Tool) bool { return t.Name == UpgradeTool })
	if !waits {
		ctx, cancel := context.WithTimeout(ctx, installTimeout)
		defer cancel()
		// The robot may fall silent instead of answering; its next version shows the outcome.
		_, err := s.Talk.Call(ctx, id, UpgradeTool, map[string]any{"url": robot.BaseURL + path})
		waits = err != nil
	}
	return Effect{Postponed: waits}, nil
}

// Read asks a robot for its status. ok is false if it cannot report any.
func (s Services) Read(ctx context.Context, id device.ID, log *slog.Logger) (r state.Readings, ok bool) {
	tools := s.Talk.Tools(id)
	if t, found := device.FindControl(tools, "get device status"); found {
		answer, err := s.Talk.Call(ctx, id, t.Name, nil)
		if err == nil {
			r.Status, err = device.ParseStatus(answer.Text)
		}
		if err != nil {
			if ctx.Err() == nil && !Offline(err) {
				log.Info("a robot's status cannot be read", "robot", id, "err", plain.Clip(err.Error(), 200))
			}
			return state.Readings{}, false
		}
		ok = true
	}
	if t, found := device.FindAngles(tools); found {
		if answer, err := s.Talk.Call(ctx, id, t.Name, nil); err == nil {
			r.ParseAngles(answer.Text)
			ok = true
		}
	}
	return r, ok
}
