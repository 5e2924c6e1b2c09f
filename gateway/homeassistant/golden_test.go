package homeassistant

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"perch/gateway/homeassistant/discovery"
	"perch/must"
)

// TestDiscoveryIsAsItWas compares the announcements of the appliance, of an agent, and of a robot with every tool and
// sense with testdata/discovery.json. A change of that file changes the entities of existing installations. With
// PERCH_GOLDEN=rewrite, the test writes the file.
func TestDiscoveryIsAsItWas(t *testing.T) {
	const file = "testdata/discovery.json"
	n, card := discoveryNames(), stackChan()
	card.Version, card.Senses = "1.2.3", discovery.NewSenses([]string{"sensor/battery", "sensor/charging", "sensor/signal", "sensor/temperature",
		"sensor/face", "sensor/identity", "event/touch", "event/perception", "sensor/mood", "update/firmware"})
	var got bytes.Buffer
	for _, m := range messagesOf(discovery.Robot(n, card, []string{"sensor/gone", "switch/led"}),
		discovery.Bridge(n, "1.2.3", "http://perch.local:8003/", nil), discovery.Agent(n, "coding-1", "1.2.3", nil),
		discovery.RemovedRobot(n, card.ID)) {
		got.WriteString(m.Topic + "\n")
		if len(m.Payload) > 0 {
			must.Succeed(t, json.Indent(&got, m.Payload, "", " "))
		}
		got.WriteString("\n")
	}
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		must.Succeed(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	want := must.Value(os.ReadFile(file))(t)
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("announced is now\n%s", got.Bytes())
	}
}
