package config

import (
	"fmt"

	"perch/agent"
	"perch/device"
	"perch/driver"
	"perch/gateway/avatar/relay"
)

// Relay is an avatar program that shows the agents.
type Relay = relay.Target

// Relays is the list of them. All kinds have the same keys.
type Relays []Relay

func (Relays) kinds() kinds { return relayKinds{} }

type relayKinds struct{}

func (relayKinds) Kinds() (names []string) {
	for _, k := range relay.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func (relayKinds) Options(string) any { return new(Relay) }

func (relayKinds) Fields(string) []driver.Field { return driver.FieldsOf(Relay{})[1:] } // without kind

// checkRelays checks the avatar programs.
func checkRelays(k *checker, all Relays) {
	seen := map[string]bool{}
	for i, r := range all {
		at := fmt.Sprintf("relays.%d", i)
		k.chosen(at+".kind", relayKinds{}.Kinds())
		k.failed(at, relay.Check(r, agent.StockWords()))
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
