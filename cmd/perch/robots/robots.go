// Package robots is the registry of robots as their owner and their check-ins use it, and the
// robots as other programs act on them.
package robots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/event"
	"perch/gateway/robot"
	"perch/perception"
)

// Owned is the registry as the owner changes it. It publishes the changes. When a robot is
// forgotten, what it has sensed and what was said to it is deleted: another may come with its
// MAC address.
type Owned struct {
	*device.Registry
	o Options
}

// Options are what a change of the registry affects.
type Options struct {
	Registry *device.Registry
	Server   *robot.Server
	Senses   *perception.States
	Mind     *agent.Mind
	Memory   *agent.Memory
	Bus      *event.Bus
	Check    func(device.Change) error // of settings that the engines do not support
}

// NewOwned returns the registry as its owner changes it.
func NewOwned(o Options) Owned { return Owned{o.Registry, o} }

// Configure changes the settings of a robot where the engines support them, and publishes a new
// name.
func (r Owned) Configure(id device.ID, c device.Change) (device.Robot, error) {
	if c.Persona != nil && strings.TrimSpace(*c.Persona) == agent.DefaultCharacter {
		c.Persona = new("") // a robot without a character has the household's
	}
	if err := r.o.Check(c); err != nil {
		return device.Robot{}, err
	}
	before := r.Settings(id).Name
	robot, err := r.Registry.Configure(id, c)
	if err != nil {
		return robot, err
	}
	if robot.Settings.Name != before {
		r.o.Bus.Publish(id, "", event.RobotRenamed{Name: robot.Settings.Name})
	}
	r.o.Bus.Publish(id, "", event.Changed{What: "robot"})
	return robot, nil
}

// Adopt is Registry.Adopt. The client that was connected in the robot's place is disconnected.
func (r Owned) Adopt(idOrCode string, now time.Time) (device.Robot, error) {
	return r.adopt(func() (device.Robot, error) { return r.Registry.Adopt(idOrCode, now) })
}

// AdoptClient is Registry.AdoptClient, as Adopt.
func (r Owned) AdoptClient(id device.ID, client string) (device.Robot, error) {
	return r.adopt(func() (device.Robot, error) { return r.Registry.AdoptClient(id, client) })
}

func (r Owned) adopt(adopt func() (device.Robot, error)) (device.Robot, error) {
	before := r.List()
	robot, err := adopt()
	if err != nil {
		return robot, err
	}
	i := slices.IndexFunc(before, func(was device.Robot) bool { return was.ID == robot.ID })
	if i >= 0 && before[i].Bound && before[i].Client != robot.Client {
		// The client that was connected in its place is disconnected first; a stranger's
		// conversation is deleted.
		ctx, cancel := context.WithTimeout(context.Background(), hangUpWithin) // the client may disconnect
		defer cancel()
		_ = r.o.Server.Hangup(ctx, robot.ID, "adopted anew") // it may not be connected
		if !before[i].Adopted() {
			r.o.Memory.Dismiss(robot.ID)
			err = r.o.Mind.Forget(string(robot.ID))
		}
	}
	r.o.Bus.Publish(robot.ID, "", event.RobotAdopted{})
	return robot, err
}

// hangUpWithin bounds the closing of a session.
const hangUpWithin = 5 * time.Second

// CheckIn is Registry.CheckIn. The conversations of strangers that are displaced are deleted:
// another robot may come with the same MAC address.
func (r Owned) CheckIn(c device.CheckIn, now time.Time) (device.Robot, device.Admission) {
	robot, a := r.Registry.CheckIn(c, now)
	for _, id := range a.Gone {
		r.o.Memory.Dismiss(id)
		r.o.Mind.Dismiss(string(id))
	}
	return robot, a
}

// Replace is Registry.Replace. Until it is adopted it is another robot, and what is known of
// the one before is deleted.
func (r Owned) Replace(id device.ID, client string) (device.Robot, error) {
	robot, err := r.Registry.Replace(id, client)
	if err == nil {
		err = r.removed(id)
	}
	return robot, err
}

// Forget is Registry.Forget.
func (r Owned) Forget(id device.ID) error {
	if err := r.Registry.Forget(id); err != nil {
		return err
	}
	return r.removed(id)
}

// ForgetStrangers is Registry.ForgetStrangers.
func (r Owned) ForgetStrangers() ([]device.ID, error) {
	gone, err := r.Registry.ForgetStrangers()
	for _, id := range gone {
		err = errors.Join(err, r.removed(id))
	}
	return gone, err
}

// removed deletes what is known of a robot that is gone.
func (r Owned) removed(id device.ID) error {
	r.o.Senses.Forget(id)
	r.o.Memory.Dismiss(id)
	r.o.Bus.Publish(id, "", event.RobotForgotten{})
	return r.o.Mind.Forget(string(id))
}

// Control is the server of robots as other programs act on them: a head that a client moves is
// the client's for a while, and no behaviour turns it away.
type Control struct {
	*robot.Server
	Behaviours *perception.Behaviours
}

// Call is Server.Call.
func (c Control) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	c.Behaviours.Moves(id, tool)
	return c.Server.Call(ctx, id, tool, arguments)
}

// RuleActions are what the owner's rules do that is not done by a robot's tools.
type RuleActions struct {
	Registry *device.Registry
	Server   *robot.Server
	Notifier *notice.Notifier
	MQTT     interface {
		Publish(ctx context.Context, topic, payload string) error
	}
}

// Feel has a robot show an emotion.
func (r RuleActions) Feel(ctx context.Context, id device.ID, emotion string) error {
	robot, err := r.Registry.Get(id)
	if err != nil {
		return err
	}
	face, known := config.EmotionNamed(emotion) // checked with the configuration
	if !known {
		return fmt.Errorf("%.40q is no emotion of robots", emotion)
	}
	return r.Server.Feel(ctx, id, face.On(robot.Board))
}

// Publish publishes a message by MQTT.
func (r RuleActions) Publish(ctx context.Context, topic, payload string) error {
	return r.MQTT.Publish(ctx, topic, payload)
}

// Notify sends a notification to a robot.
func (r RuleActions) Notify(_ context.Context, id device.ID, text string, aloud bool) error {
	_, err := r.Notifier.Notify(notice.Notification{Robot: id, Text: text, Speak: aloud})
	return err
}
