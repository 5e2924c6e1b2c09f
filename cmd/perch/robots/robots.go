// Package robots connects the registry of robots with the rest of the appliance: changes of the
// registry delete stored data, close sessions and publish events. The package also carries out
// commands for robots from other programs and from the owner's rules.
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
	"perch/gateway/owner/daily"
	"perch/gateway/robot"
	"perch/perception"
	"perch/store"
)

// OwnerRegistry is the registry of robots as the owner's API and check-ins use it. It publishes changes as
// events. When a robot is forgotten, OwnerRegistry deletes what the robot has sensed and its conversations,
// because another robot may check in with the same MAC address.
type OwnerRegistry struct {
	*device.Registry
	Days *daily.Sums // daily sums of what robots do
	o    Options
}

// Options holds the parts of the appliance that a change of the registry affects.
type Options struct {
	Registry *device.Registry
	Server   *robot.Server
	Senses   *perception.States
	Mind     *agent.Mind
	Memory   *agent.Memory
	Bus      *event.Bus
	DB       *store.DB
	Zone     *time.Location            // the configured time zone
	Check    func(device.Change) error // returns an error for settings that the engines do not support
}

// NewOwnerRegistry returns an OwnerRegistry for the registry in o.
func NewOwnerRegistry(o Options) OwnerRegistry {
	days := daily.NewSums(store.NewTable[daily.Day](o.DB, "days"), o.Zone, func(id device.ID) bool {
		_, err := o.Registry.Get(id)
		return err == nil
	})
	return OwnerRegistry{Registry: o.Registry, Days: days, o: o}
}

// Configure changes the settings of a robot, after Options.Check has accepted them.
func (r OwnerRegistry) Configure(id device.ID, c device.Change) (device.Robot, error) {
	if c.Persona != nil && strings.TrimSpace(*c.Persona) == agent.DefaultCharacter {
		c.Persona = new("") // a robot without a character has the default character
	}
	if err := r.o.Check(c); err != nil {
		return device.Robot{}, err
	}
	return r.configure(id, func() (device.Robot, error) { return r.Registry.Configure(id, c) })
}

// Nickname calls Registry.Nickname, and publishes the change.
func (r OwnerRegistry) Nickname(id device.ID, name string) error {
	_, err := r.configure(id, func() (device.Robot, error) { return r.Registry.Nickname(id, name) })
	return err
}

// configure calls change, which changes the settings of a robot, and publishes the change.
func (r OwnerRegistry) configure(id device.ID, change func() (device.Robot, error)) (device.Robot, error) {
	before := r.Settings(id).Name
	robot, err := change()
	if err != nil {
		return robot, err
	}
	if robot.Settings.Name != before {
		r.o.Bus.Publish(id, "", event.RobotRenamed{Name: robot.Settings.Name})
	}
	r.o.Bus.Publish(id, "", event.Changed{What: "robot"})
	return robot, nil
}

// Adopt calls Registry.Adopt. If another client was connected with the robot's ID, that client is
// disconnected.
func (r OwnerRegistry) Adopt(idOrCode string, now time.Time) (device.Robot, error) {
	return r.adopt(func() (device.Robot, error) { return r.Registry.Adopt(idOrCode, now) })
}

// AdoptClient calls Registry.AdoptClient. If another client was connected with the robot's ID, that
// client is disconnected.
func (r OwnerRegistry) AdoptClient(id device.ID, client string) (device.Robot, error) {
	return r.adopt(func() (device.Robot, error) { return r.Registry.AdoptClient(id, client) })
}

// AddByHand calls Registry.AddByHand.
func (r OwnerRegistry) AddByHand(name, baseURL string, now time.Time) (device.Robot, error) {
	return r.adopt(func() (device.Robot, error) { return r.Registry.AddByHand(name, baseURL, now) })
}

// adopt calls adoptRobot, which adopts a robot. If another client was bound to the robot's ID, adopt
// disconnects that client; if that client was a stranger, adopt deletes its memory and its conversation.
func (r OwnerRegistry) adopt(adoptRobot func() (device.Robot, error)) (device.Robot, error) {
	before := r.List()
	robot, err := adoptRobot()
	if err != nil {
		return robot, err
	}
	i := slices.IndexFunc(before, func(b device.Robot) bool { return b.ID == robot.ID })
	if i >= 0 && before[i].Bound && before[i].Client != robot.Client {
		// The owner's request may be cancelled, but the other client must be disconnected.
		ctx, cancel := context.WithTimeout(context.Background(), hangUpTimeout)
		defer cancel()
		_ = r.o.Server.Hangup(ctx, robot.ID, "another client was adopted") // fails if the client is not connected
		if !before[i].Adopted() {
			r.o.Memory.Dismiss(robot.ID)
			err = r.o.Mind.Forget(string(robot.ID))
		}
	}
	r.o.Bus.Publish(robot.ID, "", event.RobotAdopted{})
	return robot, err
}

// hangUpTimeout is how long the closing of a session may take.
const hangUpTimeout = 5 * time.Second

// CheckIn calls Registry.CheckIn. It deletes the memories and conversations of strangers that the registry
// has removed during the check-in.
func (r OwnerRegistry) CheckIn(c device.CheckIn, now time.Time) (device.Robot, device.Admission) {
	robot, a := r.Registry.CheckIn(c, now)
	for _, id := range a.Gone {
		r.o.Memory.Dismiss(id)
		r.o.Mind.Dismiss(string(id))
	}
	return robot, a
}

// Replace calls Registry.Replace, and deletes the data of the robot that had the ID before.
func (r OwnerRegistry) Replace(id device.ID, client string) (device.Robot, error) {
	robot, err := r.Registry.Replace(id, client)
	if err == nil {
		err = r.deleteData(id)
	}
	return robot, err
}

// Forget calls Registry.Forget, and deletes the robot's data.
func (r OwnerRegistry) Forget(id device.ID) error {
	if err := r.Registry.Forget(id); err != nil {
		return err
	}
	return r.deleteData(id)
}

// ForgetStrangers calls Registry.ForgetStrangers, and deletes the data of each stranger.
func (r OwnerRegistry) ForgetStrangers() ([]device.ID, error) {
	ids, err := r.Registry.ForgetStrangers()
	for _, id := range ids {
		err = errors.Join(err, r.deleteData(id))
	}
	return ids, err
}

// deleteData deletes what a robot has sensed, its conversations and, if it was a stranger, its memory. It
// publishes event.RobotForgotten.
func (r OwnerRegistry) deleteData(id device.ID) error {
	r.o.Senses.Forget(id)
	r.o.Memory.Dismiss(id)
	r.o.Bus.Publish(id, "", event.RobotForgotten{})
	return r.o.Mind.Forget(string(id))
}

// Control gives other programs access to the server for robots. After a program has moved a
// robot's head, behaviours do not move the head for a while.
type Control struct {
	*robot.Server
	Behaviours *perception.Behaviours
}

// Call calls a tool of a robot, and pauses behaviours that move the same parts of the robot.
func (c Control) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	c.Behaviours.RecordToolCall(id, tool, arguments)
	return c.Server.Call(ctx, id, tool, arguments)
}

// RuleActions carries out the emotions, MQTT messages and notifications of the owner's rules.
type RuleActions struct {
	Registry *device.Registry
	Server   *robot.Server
	Notifier *notice.Notifier
	MQTT     interface {
		Publish(ctx context.Context, topic, payload string) error
	}
}

// Feel makes a robot show an emotion.
func (r RuleActions) Feel(ctx context.Context, id device.ID, emotion string) error {
	robot, err := r.Registry.Get(id)
	if err != nil {
		return err
	}
	face, ok := config.EmotionNamed(emotion) // the check of the configuration has accepted the name
	if !ok {
		return fmt.Errorf("%.40q is not an emotion of robots", emotion)
	}
	return r.Server.ShowEmotion(ctx, id, face.On(robot.Board))
}

// Publish publishes a message by MQTT.
func (r RuleActions) Publish(ctx context.Context, topic, payload string) error {
	return r.MQTT.Publish(ctx, topic, payload)
}

// Notify sends a notification to a robot, which speaks it if aloud is true.
func (r RuleActions) Notify(_ context.Context, id device.ID, text string, aloud bool) error {
	_, err := r.Notifier.Notify(notice.Notification{Robot: id, Text: text, Speak: aloud})
	return err
}
