package appliance

import (
	"context"
	"errors"
	"slices"

	"perch/cmd/perch/access"
	"perch/cmd/perch/characters"
	"perch/cmd/perch/config"
	"perch/cmd/perch/settings"
	"perch/event"
	"perch/gateway/robot"
	"perch/perception"
)

// Apply has the running appliance follow a configuration that was checked. What robots say at
// that moment goes on unchanged; their next turns have the change. It returns the keys that
// take effect only at the next start. With an error nothing has changed.
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
	before := a.engines.get()
	e, err := a.newEngines(next, before)
	if err != nil {
		return nil, err
	}
	if err := a.follow(next, e, changed); err != nil {
		e.without(before).close()
		return nil, err
	}
	a.engines.retire(before)
	a.Bus.Publish("", "", event.Changed{What: "settings"})
	a.Log.Info("the changed configuration is followed", "keys", changed, "after_restart", restart)
	return restart, nil
}

// follow makes what else a configuration needs, and then has every part follow it. An error
// is returned before anything has changed.
func (a *Appliance) follow(c *config.Config, e *engines, changed []string) (err error) {
	if a.warmer.loaded.Load() { // else the next turn would wait for that
		if err := e.load(context.Background()); err != nil {
			return err
		}
	}
	people := a.Characters
	if slices.ContainsFunc(changed, ofCharacters) {
		if people, err = characters.New(c, a.Robots, a.Data, a.Log); err != nil {
			return err
		}
	}
	keys, err := access.ReadKeys(c)
	if err != nil {
		return err
	}
	rules := c.BehaviourRules(func(string, error) {}) // the check has reported them
	if err := errors.Join(c.Behaviours.Check(), perception.CheckRules(rules)); err != nil {
		return err
	}
	if err := a.viewers.Apply(c, avatarEngines(e, people.Speech())); err != nil { // the last that can fail
		return err
	}
	a.config.Store(c)
	if people != a.Characters {
		a.Characters.Follow(people)
	}
	a.engines.replace(e)
	a.Talk.Apply(a.talkOptions(c, e))
	if a.warmer.loaded.Load() {
		a.Talk.Prepare()
	}
	if a.wyoming != nil {
		if err := a.wyoming.Apply(a.wyomingOptions(c, e)); err != nil { // of languages, which the check has looked at
			a.Log.Error("the Wyoming server goes on with the languages and voices from before", "err", err)
		}
	}
	a.bridge.Apply(a.bridgeOptions(c, e))
	a.behaviours.Apply(c.Behaviours, rules)
	a.Memory.Bound(c.Memory.Most)
	a.Records.Bound(c.Robots.KeepTurns)
	a.bridgeTurns.Bound(c.Robots.KeepTurns)
	a.Diary.Bound(c.Diary.Keep)
	a.locks.Apply(keys)
	return nil
}

// ofCharacters reports whether characters depend on a key.
func ofCharacters(key string) bool {
	switch key {
	case "language", "speech", "brains", "persona", "characters", "robots.each":
		return true
	}
	return false
}
