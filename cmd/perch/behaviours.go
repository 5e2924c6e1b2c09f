package main

import (
	"context"
	"path/filepath"
	"time"

	"perch/agent/notice"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/gateway/robot"
	"perch/perception"
	"perch/voice/sounds"
)

// newBehaviours makes what reacts to the robots' senses.
func (a *app) newBehaviours(zone *time.Location) (err error) {
	rules := a.config.BehaviourRules(func(string, error) {}) // the check has told
	a.behaviours, err = perception.NewBehaviours(perception.Options{
		Tuning: a.config.Behaviours, Rules: rules, Zone: zone, Bus: a.bus, Outside: outside{a}, Log: a.log,
	})
	return err
}

// movers are the robots as the doors act on them: a head that a client moves is
// the client's for a while, and no behaviour turns it away.
type movers struct {
	*robot.Server
	behaviours *perception.Behaviours
}

func (a *app) movers() movers { return movers{a.talk, a.behaviours} }

func (m movers) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	m.behaviours.Moves(id, tool)
	return m.Server.Call(ctx, id, tool, arguments)
}

// outside is what rules do that is not done by a robot's tools.
type outside struct{ a *app }

func (o outside) Feel(ctx context.Context, id device.ID, emotion string) error {
	robot, err := o.a.robots.Get(id)
	if err != nil {
		return err
	}
	face, _ := config.EmotionNamed(emotion) // checked with the configuration
	return o.a.talk.Feel(ctx, id, face.On(robot.Board))
}

func (o outside) Publish(ctx context.Context, topic, payload string) error {
	return o.a.mirror.Publish(ctx, topic, payload)
}

func (o outside) Notify(_ context.Context, id device.ID, text string, aloud bool) error {
	_, err := o.a.herald.Notify(notice.Notification{Robot: id, Text: text, Speak: aloud})
	return err
}

// songs are what robots play: those made here, and files of the data
// directory.
type songs struct {
	*sounds.Library
	talk *robot.Server
}

func (s songs) Play(ctx context.Context, id device.ID, name string) error {
	return s.talk.Play(ctx, id, name)
}

// soundsDirectory holds the owner's own.
func (a *app) soundsDirectory() string { return filepath.Join(a.data, "sounds") }
