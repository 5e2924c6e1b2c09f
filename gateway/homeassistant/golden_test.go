package homeassistant

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"perch/gateway/homeassistant/discovery"
)

// TestDiscoveryIsAsItWas compares all that is announced of a robot with every tool and
// sense, of the appliance and of an agent with testdata/discovery.json. A change of that file
// changes entities in households. PERCH_GOLDEN=rewrite writes it.
func TestDiscoveryIsAsItWas(t *testing.T) {
	const file = "testdata/discovery.json"
	n, card := discoveryNames(), stackChan()
	card.Version, card.Senses = "1.2.3", discovery.NewSenses([]string{"sensor/battery", "sensor/charging", "sensor/signal", "sensor/temperature",
		"sensor/face", "sensor/identity", "event/touch", "event/perception", "sensor/mood"})
	robot, _ := announceRobot(n, card, []string{"sensor/gone", "switch/led"})
	bridge, _ := announceBridge(n, "1.2.3", "http://perch.local:8003/", nil)
	agent, _ := announceAgent(n, "coding-1", "1.2.3", nil)
	var got bytes.Buffer
	for _, m := range slices.Concat(robot, bridge, agent, messagesOf(discovery.RemovedRobot(n, card.ID))) {
		got.WriteString(m.Topic + "\n")
		if len(m.Payload) > 0 {
			if err := json.Indent(&got, m.Payload, "", " "); err != nil {
				t.Fatal(err)
			}
		}
		got.WriteString("\n")
	}
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("announced is now\n%s", got.Bytes())
	}
}
