package config

import (
	"fmt"

	"perch/agent"
	"perch/device"
	"perch/gateway/relay"
	"perch/secret"
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

// Target returns the program as package relay has it.
func (r Relay) Target() (relay.Target, error) {
	key, err := secret.Read("key", r.Key, r.KeyFile)
	return relay.Target{Kind: r.Kind, Name: r.Name, URL: r.URL, Robot: r.Robot, Secret: key, Words: r.Words}, err
}

// checkRelays finds what is no relay.
func checkRelays(k *checker, all []Relay) {
	seen := map[string]bool{}
	for i, r := range all {
		at := fmt.Sprintf("relays.%d", i)
		t, err := r.Target()
		if err == nil {
			err = relay.Check(t, agent.StockWords())
		}
		k.failed(at, err)
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
