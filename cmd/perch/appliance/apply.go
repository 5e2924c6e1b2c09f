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

// Apply puts a configuration, which must have been checked, into effect in the running appliance. Turns
// that are running keep the previous configuration. Apply returns the keys that take effect only after
// a restart. If it returns an error, it has changed nothing.
func (a *Appliance) Apply(c *config.Config) (restart []string, err error) {
	a.applying.Lock()
	defer a.applying.Unlock()
	if a.ending.Load() {
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
	a.Log.Info("changed configuration applied", "keys", changed, "after_restart", restart)
	return restart, nil
}

// applyConfig makes a configuration and its agents take effect in all parts. If it returns an error, it
// has changed nothing.
func (a *Appliance) applyConfig(c *config.Config, n *agents.Next) error {
	e := n.Engines
	if err := a.warmer.Load(context.Background(), e); err != nil {
		return err
	}
	keys, err := access.ReadKeys(c)
	if err != nil {
		return err
	}
	rules := c.BehaviourRules(func(string, error) {}) // the check of the configuration has reported faults
	if err := errors.Join(c.Behaviours.Check(), perception.CheckRules(rules)); err != nil {
		return err
	}
	if err := a.viewers.Apply(c, e, n.Characters.Speech()); err != nil { // no later step makes applyConfig return an error
		return err
	}
	a.config.Store(c)
	a.Agents.Replace(n)
	a.Talk.Apply(a.talkOptions(c, e))
	a.warmer.Replaced()
	if a.wyoming != nil {
		if err := a.wyoming.Apply(a.wyomingOptions(c, e)); err != nil { // Apply fails only for languages that the check of the configuration refuses
			a.Log.Error("the Wyoming server keeps its previous languages and voices", "err", err)
		}
	}
	a.bridge.Apply(a.bridgeOptions(c, e))
	a.behaviours.Apply(c.Behaviours, rules)
	a.Memory.Bound(c.Memory.Most)
	a.Records.Bound(c.Robots.KeepTurns)
	a.bridgeTurns.SetMaxTurns(c.Robots.KeepTurns)
	a.Agents.Diary.Bound(c.Diary.Keep)
	a.locks.Apply(keys)
	return nil
}
