package appliance

import (
	"context"
	"errors"

	"perch/cmd/perch/access"
	"perch/cmd/perch/agents"
	"perch/cmd/perch/config"
	"perch/cmd/perch/settings"
	"perch/event"
	"perch/gateway/robot"
	"perch/perception"
)

// Apply makes a configuration that was checked take effect in the running appliance. Turns that have
// begun go on unchanged; the next ones have the change. It returns the keys that take effect only at
// the next start. If it returns an error, nothing has changed.
func (a *Appliance) Apply(c *config.Config) (restart []string, err error) {
	a.applying.Lock()
	defer a.applying.Unlock()
	if a.ending {
		return nil, robot.ErrStopping
	}
	next, changed, restart := settings.Merge(a.Config(), c)
	if len(changed) == 0 {
		return restart, nil
	}
	n, err := a.Agents.Next(next, changed)
	if err != nil {
		return nil, err
	}
	if err := a.applyConfig(next, n); err != nil {
		n.Discard()
		return nil, err
	}
	a.Agents.Retire(n)
	a.Bus.Publish("", "", event.Changed{What: "settings"})
	a.Log.Info("the changed configuration is followed", "keys", changed, "after_restart", restart)
	return restart, nil
}

// applyConfig makes a configuration with its agents take effect in every part. It returns an error
// before anything has changed.
func (a *Appliance) applyConfig(c *config.Config, n *agents.Next) error {
	e := n.Engines
	if err := a.warmer.Load(context.Background(), e); err != nil {
		return err
	}
	keys, err := access.ReadKeys(c)
	if err != nil {
		return err
	}
	rules := c.BehaviourRules(func(string, error) {}) // the check has reported them
	if err := errors.Join(c.Behaviours.Check(), perception.CheckRules(rules)); err != nil {
		return err
	}
	if err := a.viewers.Apply(c, e, n.Characters.Speech()); err != nil { // the last that can fail
		return err
	}
	a.config.Store(c)
	a.Agents.Replace(n)
	a.Talk.Apply(a.talkOptions(c, e))
	a.warmer.Replaced()
	if a.wyoming != nil {
		if err := a.wyoming.Apply(a.wyomingOptions(c, e)); err != nil { // of languages, which the check has seen
			a.Log.Error("the Wyoming server goes on with the languages and voices from before", "err", err)
		}
	}
	a.bridge.Apply(a.bridgeOptions(c, e))
	a.behaviours.Apply(c.Behaviours, rules)
	a.Memory.Bound(c.Memory.Most)
	a.Records.Bound(c.Robots.KeepTurns)
	a.bridgeTurns.Bound(c.Robots.KeepTurns)
	a.Agents.Diary.Bound(c.Diary.Keep)
	a.locks.Apply(keys)
	return nil
}
