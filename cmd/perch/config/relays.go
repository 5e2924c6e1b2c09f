package config

import (
	"fmt"

	"perch/agent"
	"perch/device"
	"perch/driver"
	"perch/gateway/avatar/relay"
)

// Relay is an entry of relays in the configuration: an avatar program that shows the agents.
type Relay = relay.Target

// Relays is the list of avatar programs. All kinds have the same keys.
type Relays []Relay

func (Relays) kinds() kinds { return relayKinds{} }

// relayKinds describes the kinds of avatar programs.
type relayKinds struct{}

func (relayKinds) Kinds() (names []string) {
	for _, k := range relay.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func (relayKinds) Options(string) any { return new(Relay) }

func (relayKinds) Fields(string) []driver.Field { return driver.FieldsOf(Relay{})[1:] } // without the field for the kind

// checkRelays checks the avatar programs.
func checkRelays(k *checker, all Relays) {
	seen := map[string]bool{}
	for i, r := range all {
		path := fmt.Sprintf("relays.%d", i)
		k.setChoices(path+".kind", relayKinds{}.Kinds())
		k.keyErrors(path, path+".", relay.Check(r, agent.StockWords()))
		if r.Robot != "" && !isRobotName(r.Robot) {
			k.fault(path+".robot", fmt.Errorf("%.40q is neither a MAC address nor a name", r.Robot))
		}
		name := r.Name
		if name == "" {
			name = r.Kind
		}
		if seen[name] {
			k.fault(path+".name", fmt.Errorf("two relays are called %q; give one of them another name", name))
		}
		seen[name] = true
	}
}

// isRobotName reports whether a text is a MAC address or a valid name of a robot.
func isRobotName(robot string) bool {
	_, idErr := device.ParseID(robot)
	_, nameErr := device.CheckName(robot)
	return idErr == nil || nameErr == nil
}
