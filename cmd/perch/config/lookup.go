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

// FindRobot returns the ID of a robot. robot is a MAC address, or a name in robots.each. A MAC address
// need not be in robots.each.
func (c *Config) FindRobot(robot string) (device.ID, error) {
	for _, r := range c.Robots.Each {
		if id, err := device.ParseID(r.Robot); err == nil && r.Name != "" && strings.EqualFold(r.Name, strings.TrimSpace(robot)) {
			return id, nil
		}
	}
	id, err := device.ParseID(robot)
	if err != nil {
		return "", fmt.Errorf("no robot in robots.each has this name, and it is %w", err)
	}
	return id, nil
}

// HookRobots returns the robots listed in skins.hooks.robots, which show what coding agents are
// doing. Empty means all adopted robots.
func (c *Config) HookRobots() (ids []device.ID, err error) {
	for i, name := range c.Skins.Hooks.Robots {
		id, e := c.FindRobot(name)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("robot %d: %w", i+1, e))
		}
		ids = append(ids, id)
	}
	return ids, err
}

// BehaviourRules returns the owner's rules in the form of package perception. It calls fault for each
// invalid key.
func (c *Config) BehaviourRules(fault func(key string, err error)) (rules []perception.Rule) {
	for i, r := range c.Rules {
		rules = append(rules, r.build(fmt.Sprintf("rules.%d", i), c.FindRobot, fault))
	}
	return rules
}

// UnfitSetting is a setting of a robot that cannot work, and the reason.
type UnfitSetting struct {
	Key string
	Err error
}

// Unfit returns the settings of a robot that cannot work: a brain that is not configured, a voice
// that the first synthesizer refuses, or a language that is not a tag. It does not check the persona.
func (c *Config) Unfit(s device.Settings) (unfit []UnfitSetting) {
	refuse := func(key string, err error) { unfit = append(unfit, UnfitSetting{key, err}) }
	if brains := c.BrainNames(); s.Brain != "" && !slices.Contains(brains, s.Brain) {
		refuse("brain", fmt.Errorf("there is no brain %q; the brains are: %s", s.Brain, strings.Join(brains, ", ")))
	}
	if s.Voice != "" && len(c.Speech.Synthesizers) > 0 {
		first := c.Speech.Synthesizers[0]
		if err := drivers.Synthesizers().Check(first.Kind, first.Options, voiceSetup(s.Voice)); err != nil {
			refuse("voice", err)
		}
	}
	if s.Language != "" && !languageTag().MatchString(s.Language) {
		refuse("language", fmt.Errorf("%q is not a language such as en or de-AT", s.Language))
	}
	return unfit
}

// BrainNames returns the names that a robot's settings use for the brains: the kind of a brain, or
// "openai 2" for the second brain of the kind openai.
func (c *Config) BrainNames() (names []string) {
	counts := map[string]int{}
	for _, b := range c.Brains {
		name := b.Kind
		if counts[b.Kind]++; counts[b.Kind] > 1 {
			name = fmt.Sprintf("%s %d", b.Kind, counts[b.Kind])
		}
		names = append(names, name)
	}
	return names
}
