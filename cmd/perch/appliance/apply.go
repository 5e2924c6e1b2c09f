package appliance

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"perch/cmd/perch/config"
	"perch/event"
	"perch/gateway/robot"
	"perch/perception"
)

// appliesAtOnce reports whether a change of a key, and of all below it, takes effect while
// the appliance runs.
func appliesAtOnce(key string) bool {
	switch key {
	case "language", "speech", "brains", "brain_deep", "persona", "characters", "memory", "diary.keep", "mood", "behaviours", "rules", "relays",
		"bridge", "skins.key", "skins.key_file", "robots.each", "robots.idle", "robots.greeting", "robots.user_tools", "robots.keep_turns":
		return true
	}
	return false
}

// Apply has the running appliance follow a configuration that was checked. What robots are
// saying goes on as it began; their next turns have the change. It returns the keys that
// take effect at the next start only. With an error nothing has changed.
func (a *Appliance) Apply(c *config.Config) (restart []string, err error) {
	a.applying.Lock()
	defer a.applying.Unlock()
	if a.ending {
		return nil, robot.ErrStopping
	}
	next := *a.Config()
	changed, restart := merge(reflect.ValueOf(&next).Elem(), reflect.ValueOf(c).Elem(), "")
	if len(changed) == 0 {
		return restart, nil
	}
	before := a.engines.get()
	e, err := a.newEngines(&next, before)
	if err != nil {
		return nil, err
	}
	if err := a.follow(&next, e, changed); err != nil {
		e.without(before).close()
		return nil, err
	}
	a.engines.retire(before)
	a.Bus.Publish("", "", event.Changed{What: "settings"})
	a.Log.Info("the changed configuration is followed", "keys", changed, "after_restart", restart)
	return restart, nil
}

// merge writes what next has of the keys that apply at once into running. It returns them,
// and the other keys that differ.
func merge(running, next reflect.Value, path string) (changed, restart []string) {
	for i := range running.NumField() {
		name, _, _ := strings.Cut(running.Type().Field(i).Tag.Get("yaml"), ",")
		key, now, then := path+name, running.Field(i), next.Field(i)
		switch {
		case reflect.DeepEqual(now.Interface(), then.Interface()):
		case appliesAtOnce(key):
			now.Set(then)
			changed = append(changed, key)
		case now.Kind() == reflect.Struct:
			more, later := merge(now, then, key+".")
			changed, restart = append(changed, more...), append(restart, later...)
		default:
			restart = append(restart, key)
		}
	}
	return changed, restart
}

// follow makes what else a configuration needs, and then has every part follow it. It
// returns an error before anything has changed.
func (a *Appliance) follow(c *config.Config, e *engines, changed []string) (err error) {
	if a.loaded.Load() { // else the next turn would wait for that
		if err := e.load(context.Background()); err != nil {
			return err
		}
	}
	people := a.Characters
	if slices.ContainsFunc(changed, ofCharacters) {
		if people, err = newCharacters(c, a.Robots, a.Data, a.Log); err != nil {
			return err
		}
	}
	avatars, err := a.avatarOptions(c, e, people.Speech())
	if err != nil {
		return err
	}
	bridgeKey, skinsKey, err := doorKeys(c)
	if err != nil {
		return err
	}
	rules := c.BehaviourRules(func(string, error) {}) // the check has reported them
	if err := errors.Join(c.Behaviours.Check(), perception.CheckRules(rules)); err != nil {
		return err
	}
	targets, err := relayTargets(c)
	if err != nil {
		return err
	}
	if err := a.relays.Apply(targets); err != nil {
		return err
	}
	a.config.Store(c)
	if people != a.Characters {
		a.Characters.follow(people, a.Log)
	}
	a.engines.replace(e)
	a.Talk.Apply(a.talkOptions(c, e))
	if a.loaded.Load() {
		a.Talk.Prepare()
	}
	a.llmvtuber.Apply(avatars)
	if a.wyoming != nil {
		if err := a.wyoming.Apply(a.wyomingOptions(c, e)); err != nil { // of languages, which the check has looked at
			a.Log.Error("the Wyoming server goes on with the languages and voices from before", "err", err)
		}
	}
	a.bridge.Apply(a.bridgeOptions(c, e))
	a.behaviours.Apply(c.Behaviours, rules)
	a.Memory.Bound(c.Memory.Most)
	a.Records.Bound(c.Robots.KeepTurns)
	a.turnsElsewhere.Bound(c.Robots.KeepTurns)
	a.Diary.Bound(c.Diary.Keep)
	a.locks.bridge.Set(bridgeKey)
	a.locks.skins.Set(skinsKey)
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
