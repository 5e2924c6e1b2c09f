package appliance

import (
	"context"
	"fmt"
	"path/filepath"

	"perch/agent/notice"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/gateway/robot"
	"perch/perception"
	"perch/voice/sounds"
)

// newBehaviours makes what reacts to the robots' senses.
func (a *Appliance) newBehaviours() (err error) {
	a.gestures, err = perception.StockGestures().WithOwners(gesturesDirectory(a.Data), isFace)
	if err != nil {
		a.Log.Warn("some gestures of the owner's are left out", "err", err)
	}
	rules := a.Config().BehaviourRules(func(string, error) {}) // the check has reported them
	a.behaviours, err = perception.NewBehaviours(perception.Options{
		Tuning: a.Config().Behaviours, Rules: rules, Gestures: a.gestures, Zone: a.zone, Bus: a.Bus,
		Outside: ruleActions{a.kept.Robots, a.notifier, a.robots, a.gateways},
		Phrase:  a.phraseOf,
		Log:     a.Log,
	})
	return err
}

// gesturesDirectory holds the owner's own gestures.
func gesturesDirectory(data string) string { return filepath.Join(data, "gestures") }

func isFace(name string) bool {
	_, known := config.EmotionNamed(name)
	return known
}

// robotControl are the robots as the doors act on them: a head that a client moves is
// the client's for a while, and no behaviour turns it away.
type robotControl struct {
	*robot.Server
	behaviours *perception.Behaviours
}

func (a *Appliance) control() robotControl { return robotControl{a.Talk, a.behaviours} }

func (m robotControl) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	m.behaviours.Moves(id, tool)
	return m.Server.Call(ctx, id, tool, arguments)
}

// ruleActions is what rules do that is not done by a robot's tools.
type ruleActions struct {
	known    *device.Registry
	notifier *notice.Notifier
	robots   *robots
	gateways *gateways
}

func (o ruleActions) Feel(ctx context.Context, id device.ID, emotion string) error {
	robot, err := o.known.Get(id)
	if err != nil {
		return err
	}
	face, known := config.EmotionNamed(emotion) // checked with the configuration
	if !known {
		return fmt.Errorf("%.40q is no emotion of robots", emotion)
	}
	return o.robots.Talk.Feel(ctx, id, face.On(robot.Board))
}

func (o ruleActions) Publish(ctx context.Context, topic, payload string) error {
	return o.gateways.Mirror.Publish(ctx, topic, payload)
}

func (o ruleActions) Notify(_ context.Context, id device.ID, text string, aloud bool) error {
	_, err := o.notifier.Notify(notice.Notification{Robot: id, Text: text, Speak: aloud})
	return err
}

// soundPlayer are what robots play: those made here, and files of the data
// directory.
type soundPlayer struct {
	*sounds.Library
	*robot.Server
}

// soundsDirectory holds the owner's own.
func (b basics) soundsDirectory() string { return filepath.Join(b.Data, "sounds") }
