package config

import (
	"fmt"

	"perch/device"
)

// Relay is an avatar program that shows the agents.
type Relay struct {
	Kind    string            `yaml:"kind"`
	Name    string            `yaml:"name"`
	URL     string            `yaml:"url"`
	Robot   string            `yaml:"robot"`
	Key     string            `yaml:"key"`
	KeyFile string            `yaml:"key_file"`
	Words   map[string]string `yaml:"words"`
}

// relays finds what is no relay.
func (k *checker) relays(c *Config) {
	seen := map[string]bool{}
	for i, r := range c.Relays {
		at := fmt.Sprintf("relays.%d", i)
		k.failed(at, k.Check(c, r))
		if r.Robot != "" && !named(r.Robot) {
			k.fault(at+".robot", fmt.Errorf("%.40q is neither a MAC address nor a name", r.Robot))
		}
		name := r.Name
		if name == "" {
			name = r.Kind
		}
		if seen[name] {
			k.fault(at+".name", fmt.Errorf("two relays are called %q; give one of them another name", name))
		}
		seen[name] = true
	}
}

// named reports whether a text can name a robot.
func named(robot string) bool {
	_, err := device.ParseID(robot)
	_, unnamed := device.CheckName(robot)
	return err == nil || unnamed == nil
}
