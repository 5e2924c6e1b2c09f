package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"perch/cmd/perch/drivers"
	"perch/device"
	"perch/perception"
)

// FindRobot returns the robot with a MAC address, or with a name that the configuration gives it.
func (c *Config) FindRobot(robot string) (device.ID, error) {
	for _, r := range c.Robots.Each {
		if id, err := device.ParseID(r.Robot); err == nil && r.Name != "" && strings.EqualFold(r.Name, strings.TrimSpace(robot)) {
			return id, nil
		}
	}
	return device.ParseID(robot)
}

// DrivenRobots returns the robots of skins.hooks, which show coding agents.
func (c *Config) DrivenRobots() (all []device.ID, err error) {
	for i, name := range c.Skins.Hooks.Robots {
		id, e := c.FindRobot(name)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("robot %d: %w", i+1, e))
		}
		all = append(all, id)
	}
	return all, err
}

// BehaviourRules returns the rules in the form of package perception.
func (c *Config) BehaviourRules(fault func(key string, err error)) (all []perception.Rule) {
	for i, r := range c.Rules {
		all = append(all, r.rule(fmt.Sprintf("rules.%d", i), c.FindRobot, fault))
	}
	return all
}

// UnfitSetting is a setting that the engines cannot follow.
type UnfitSetting struct {
	Key string
	Err error
}

// Unfit returns the settings of a robot that the engines cannot follow, as far as that is known
// without using them. It does not check the persona, which is checked when it is read.
func (c *Config) Unfit(s device.Settings) (all []UnfitSetting) {
	refuse := func(key string, why error) { all = append(all, UnfitSetting{key, why}) }
	if brains := c.brainNames(); s.Brain != "" && !slices.Contains(brains, s.Brain) {
		refuse("brain", fmt.Errorf("there is no brain %q; there are %s", s.Brain, strings.Join(brains, ", ")))
	}
	if s.Voice != "" && len(c.Speech.Synthesizers) > 0 {
		first := c.Speech.Synthesizers[0]
		if err := drivers.Synthesizers().Check(first.Kind, first.Options, checkedVoice(s.Voice)); err != nil {
			refuse("voice", err)
		}
	}
	if s.Language != "" && !languageTag().MatchString(s.Language) {
		refuse("language", fmt.Errorf("%q is no language such as en or de-AT", s.Language))
	}
	return all
}

// brainNames returns the names of the brains in a robot's settings: the kind, and "openai 2" for the
// second of a kind.
func (c *Config) brainNames() (names []string) {
	of := map[string]int{}
	for _, b := range c.Brains {
		name := b.Kind
		if of[b.Kind]++; of[b.Kind] > 1 {
			name = fmt.Sprintf("%s %d", b.Kind, of[b.Kind])
		}
		names = append(names, name)
	}
	return names
}
