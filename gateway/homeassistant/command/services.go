// Package command parses and executes the messages on the command topics of robots and agents and on the
// request topics of the bridge.
package command

import (
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
	"perch/language"
	"perch/perception"
	"perch/plain"
)

// Services are the parts of the appliance that commands and requests use.
type Services struct {
	Robots   registry
	Talk     talk
	Notifier notifier
	Senses   intake
	Firmware catalogue
	Gestures perception.Gestures // the gestures that robots can make; without any, robots have no gesture entity
	Music    func() []string     // returns the names of the owner's music; without any, robots have no music entity
	Board    *agent.Board
	Bus      *event.Bus
	// Phrase returns a phrase for a robot to speak, such as "here", in the language of the robot.
	Phrase func(id device.ID, name string) string
}

// registry stores the robots.
type registry interface {
	List() []device.Robot
	Get(id device.ID) (device.Robot, error)
	// Resolve returns the ID of the robot with the given MAC address or name.
	Resolve(robot string) (device.ID, error)
	Configure(id device.ID, c device.Change) (device.Robot, error)
	// Trusts reports whether the owner has adopted the robot. All other robots are strangers.
	Trusts(id device.ID) bool
	Adopt(idOrCode string, now time.Time) (device.Robot, error)
	// AdoptClient adopts a robot whose MAC address several machines claim. The parameter client is the Client-Id or
	// the IP address of the machine to adopt.
	AdoptClient(id device.ID, client string) (device.Robot, error)
	// Welcome makes the registry adopt the first few robots that check in before until. It does nothing if the
	// configuration requires a code from new robots.
	Welcome(until time.Time)
	Forget(id device.ID) error
}

// talk controls robots. For an offline robot, SpeakDurably and Alert store the sentence or the alert until the robot
// connects, and queued is true. The other methods with an error then return an error that Offline recognizes.
type talk interface {
	// SpeakDurably makes a robot speak a sentence. It returns once the sentence is stored on disk, where the sentence
	// stays until the robot has spoken it.
	SpeakDurably(ctx context.Context, id device.ID, text string) (queued bool, err error)
	Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error)
	// Ask makes a robot ask a question, and waits for the answer until the question expires.
	Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error)
	ShowEmotion(ctx context.Context, id device.ID, e agent.Emotion) error
	Mute(id device.ID, on bool)
	Abort(ctx context.Context, id device.ID) error
	Hangup(ctx context.Context, id device.ID, why string) error
	Reboot(ctx context.Context, id device.ID) error
	// PlayMusic makes a robot play the owner's music with a name.
	PlayMusic(ctx context.Context, id device.ID, name string) error
	StopMusic(ctx context.Context, id device.ID) error
	// Tools returns the tools of a connected robot, or the last known tools of a disconnected one.
	Tools(id device.ID) []device.Tool
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// notifier stores notifications until robots have shown and spoken them.
type notifier interface {
	Notify(n notice.Notification) (notice.Notification, error)
}

// intake accepts perception events that other programs report for a robot.
type intake interface {
	FromProgram(id device.ID, name string, data json.RawMessage) error
}

// catalogue stores firmware images. Its errors are sentences for the owner.
type catalogue interface {
	// Update returns the version that a robot runs and the newest version for it. The two are equal if there is
	// no newer version, and empty if the catalogue has no images, or no data about the robot.
	Update(id device.ID) (installed, latest string)
	// Install offers a robot an image at its next check-in. An empty sha256 selects the newest image. The robot
	// can also download the image at once from the returned path on the appliance.
	Install(id device.ID, sha256 string, now time.Time) (path string, err error)
	// Fetch downloads an image for a board from a URL into the catalogue. It may take minutes.
	Fetch(ctx context.Context, from, sha256, board string, now time.Time) (version string, err error)
	// Forget deletes the data about a robot.
	Forget(id device.ID) error
}

// Offline reports whether an error means that a robot is not connected.
func Offline(err error) bool {
	var c interface{ Code() string }
	return errors.As(err, &c) && c.Code() == "robot_offline"
}

// Effect describes what the caller has to update after a command. The zero value means that there is nothing to update.
type Effect struct {
	Change     func(*state.Robot) // sets the values that the command has changed; may be nil
	Read       bool               // the status of the robot has to be read
	Configured bool               // the settings of the robot have changed
	Notice     string             // ID of the accepted notification; empty for other commands
	Postponed  bool               // the robot will install the firmware when it checks in next
}

// UpgradeTool is the robot's tool that installs a firmware image.
const UpgradeTool = "self.upgrade_firmware"

// installTimeout bounds the wait for the result of UpgradeTool.
const installTimeout = time.Minute

// StateChange returns a function that changes the volume, brightness, angles or light in the state of a robot to what a
// command asks for. It returns nil for all other commands. The state shows the new value while the command waits for the
// robot, and afterwards until the value is read from the robot.
func StateChange(c Command) func(*state.Robot) {
	switch c := c.(type) {
	case level:
		return func(r *state.Robot) { r.Readings.SetLevel(c.what, c.value) }
	case turn:
		return func(r *state.Robot) { r.Readings.SetHead(c.yaw, c.pitch) }
	case light:
		return func(r *state.Robot) { r.Light = new(c.state.Over(r.Light)) }
	}
	return nil
}

// Complete returns a command with what it leaves as it is: the colour or brightness of the robot's light.
func Complete(c Command, r *state.Robot) Command {
	if l, is := c.(light); is {
		return light{l.state.Over(r.Light)}
	}
	return c
}

// Execute carries out any command except Ask for a robot. If Offline is true for its error, the command can be repeated
// when the robot has connected.
func (s Services) Execute(ctx context.Context, id device.ID, c Command) (Effect, error) {
	switch c := c.(type) {
	case say:
		_, err := s.Talk.SpeakDurably(ctx, id, c.text) // also publishes the outcome
		return Effect{}, err
	case notify:
		n, err := s.Notifier.Notify(c.notice)
		return Effect{Notice: n.ID}, err
	case showEmotion:
		robot, err := s.Robots.Get(id)
		if err == nil {
			err = s.Talk.ShowEmotion(ctx, id, c.emotion.On(robot.Board))
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
			err = nil // an offline robot is silent already
		}
		return Effect{}, err
	case identify:
		_, text := agent.SplitEmotion(s.Phrase(id, "here"))
		_, err := s.Talk.Alert(ctx, id, "Perch", text, "happy")
		return Effect{}, err
	case gesture:
		return Effect{}, s.makeGesture(id, c)
	case music:
		return Effect{}, s.playMusic(ctx, id, c.name)
	case level:
		return Effect{Read: true, Change: StateChange(c)}, s.setLevel(ctx, id, c)
	case turn:
		return Effect{Read: true, Change: StateChange(c)}, s.turnHead(ctx, id, c)
	case light:
		return Effect{Change: StateChange(c)}, s.setLights(ctx, id, c.state)
	case install:
		return s.install(ctx, id)
	}
	return Effect{}, fmt.Errorf("unknown command %T", c)
}

// Ask makes a robot ask a question, waits for the answer, and returns the event that reports the answer.
func (s Services) Ask(ctx context.Context, id device.ID, q Ask) state.Answer {
	reply := state.Answer{Type: "none", ID: q.id, Question: q.text}
	a, err := s.Talk.Ask(ctx, id, agent.Question{Text: q.text, Until: time.Now().Add(q.within)})
	switch a.Outcome {
	case agent.AnswerTouch, agent.AnswerAllowed:
		reply.Type = "yes"
	case agent.AnswerDenied:
		reply.Type = "no"
	case agent.AnswerGiven:
		reply.Text, reply.Type = a.Text, "words"
		if yes, understood := agent.YesOrNo(new(language.Catalogue), a.Text); understood && yes {
			reply.Type = "yes"
		} else if understood {
			reply.Type = "no"
		}
	default:
		reply.Reason = string(a.Outcome)
	}
	if err != nil {
		reply.Reason = plain.Clip(err.Error(), 300)
	}
	return reply
}

// missingTool returns the error for a robot without the tool that controls the given part. If no tools of the robot are
// known, Offline is true for the error, so that the command waits until the robot lists its tools.
func (s Services) missingTool(id device.ID, part string) error {
	if len(s.Talk.Tools(id)) == 0 {
		return notListed{}
	}
	return fmt.Errorf("this robot has no tool for its %s", part)
}

// notListed is the error for a robot whose tools are unknown. Its code makes Offline true.
type notListed struct{}

func (notListed) Error() string { return "the robot has yet to list its tools" }
func (notListed) Code() string  { return "robot_offline" }

// playMusic makes a robot play music, or stop it if name is discovery.MusicOff.
func (s Services) playMusic(ctx context.Context, id device.ID, name string) error {
	if name == discovery.MusicOff {
		if err := s.Talk.StopMusic(ctx, id); !Offline(err) {
			return err
		}
		return nil // an offline robot is silent already
	}
	err := s.Talk.PlayMusic(ctx, id, name)
	if Offline(err) {
		return errors.New("the robot's channel is closed, and music is not kept for later; wake the robot first")
	}
	return err
}

// makeGesture makes a robot perform a gesture. It returns an error if the robot is not connected.
func (s Services) makeGesture(id device.ID, c gesture) error {
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

// setLevel sets the volume or the brightness.
func (s Services) setLevel(ctx context.Context, id device.ID, c level) error {
	control, found := discovery.LevelControl(s.Talk.Tools(id), c.what)
	if !found {
		return s.missingTool(id, c.what)
	}
	if low, high, ok := control.Percent(); ok && (c.value < low || c.value > high) {
		return fmt.Errorf("%s must be from %d to %d, not %d", c.what, low, high, c.value)
	}
	_, err := s.Talk.Call(ctx, id, control.Name, map[string]any{control.Arguments[0]: c.value})
	return err
}

// turnHead moves the head, and limits the angles of the command to the range of the head.
func (s Services) turnHead(ctx context.Context, id device.ID, c turn) error {
	head, found := discovery.HeadControl(s.Talk.Tools(id))
	if !found {
		return s.missingTool(id, "head")
	}
	arguments := map[string]any{}
	for i, angle := range []*int{c.yaw, c.pitch} {
		if angle == nil {
			continue
		}
		low, high, ok := head.Axis(i)
		if !ok {
			return fmt.Errorf("this robot's head has no %s", []string{"yaw", "pitch"}[i])
		}
		*angle = min(max(*angle, low), high) // a servo breaks if it is driven beyond its range
		arguments[head.Arguments[i]] = *angle
	}
	if speed := head.Integer("speed", "velocity"); speed != "" && c.speed != nil {
		arguments[speed] = *c.speed // Call limits the speed to the range of the tool's schema
	}
	_, err := s.Talk.Call(ctx, id, head.Name, arguments)
	return err
}

func (s Services) setLights(ctx context.Context, id device.ID, l state.Light) error {
	control, found := device.FindLights(s.Talk.Tools(id))
	if !found {
		return s.missingTool(id, "lights")
	}
	_, err := s.Talk.Call(ctx, id, control.Name, control.ColourArguments(l.RGB()))
	return err
}

// install makes a robot install the newest firmware: at once if the robot is connected and its UpgradeTool succeeds, and
// otherwise when the robot checks in next.
func (s Services) install(ctx context.Context, id device.ID) (Effect, error) {
	path, err := s.Firmware.Install(id, "", time.Now())
	if err != nil {
		return Effect{}, err
	}
	robot, err := s.Robots.Get(id)
	if err != nil {
		return Effect{}, err
	}
	postponed := robot.BaseURL == "" || !s.Board.Robot(id).Online ||
		!slices.ContainsFunc(s.Talk.Tools(id), func(t device.Tool) bool { return t.Name == UpgradeTool })
	if !postponed {
		ctx, cancel := context.WithTimeout(ctx, installTimeout)
		defer cancel()
		// A robot that restarts does not return a result. The version of its next check-in shows the outcome.
		_, err := s.Talk.Call(ctx, id, UpgradeTool, map[string]any{"url": robot.BaseURL + path})
		postponed = err != nil
	}
	return Effect{Postponed: postponed}, nil
}

// ReadStatus reads the status of a robot and the angles of its head. ok is false if neither could be read. If the
// status tool fails, ReadStatus does not try to read the angles, and logs the error unless Offline is true for the error
// or ctx has ended.
func (s Services) ReadStatus(ctx context.Context, id device.ID, log *slog.Logger) (r state.Readings, ok bool) {
	tools := s.Talk.Tools(id)
	if t, found := device.FindControl(tools, "get device status"); found {
		result, err := s.Talk.Call(ctx, id, t.Name, nil)
		if err == nil {
			r.Status, err = device.ParseStatus(result.Text)
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
		if result, err := s.Talk.Call(ctx, id, t.Name, nil); err == nil {
			r.ParseAngles(result.Text)
			ok = true
		}
	}
	return r, ok
}
