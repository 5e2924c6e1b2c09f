package appliance_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// TestAnUpgradeFromHomeAssistant checks that a firmware image is downloaded from another server, shown as an update
// over MQTT, and installed on a command.
func TestAnUpgradeFromHomeAssistant(t *testing.T) {
	h, mqtt := appliancetest.StartWithBroker(t)
	image := simrobot.Image("9.9.9", 300_000)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(image) }))
	defer elsewhere.Close()
	r := h.NewRobot(simrobot.Options{Upgrades: true})
	boot := func() {
		t.Helper()
		must.Succeed(t, r.Boot(t.Context()))
	}
	boot()
	robot := must.Value(h.Robots.Get("a0b1c2d3e4f5"))(t)
	const topic = "perch/a0b1c2d3e4f5/firmware"
	shows := func(parts ...string) {
		t.Helper()
		h.Eventually(fmt.Sprint("the update shows ", parts), func() bool { return mqtt.Has(topic, parts...) })
	}
	h.Eventually("the robot is announced", func() bool { return mqtt.Has("perch/a0b1c2d3e4f5/state") })
	if mqtt.Has(topic) {
		t.Error("without a firmware catalogue an update is shown")
	}
	h.Publish("perch/bridge/request/firmware", fmt.Sprintf(`{"url":%q,"sha256":"%x","board":%q}`, elsewhere.URL, sha256.Sum256(image), robot.Board))
	shows(`"installed_version":"`+robot.Firmware+`"`, `"latest_version":"9.9.9"`, `"in_progress":false`)
	h.Publish(topic+"/set", "install")
	h.Eventually("it is to be installed", func() bool { return mqtt.Has("perch/a0b1c2d3e4f5/conversation", `"queued"`, `"firmware"`) })
	boot() // the robot is offered the image, downloads it and boots it
	// "in_progress":true may be replaced before it is sent; a test of gateway/homeassistant checks it.
	shows(`"installed_version":"9.9.9"`, `"latest_version":"9.9.9"`, `"in_progress":false`)
	h.Eventually("it is told as done", func() bool { return mqtt.Has("perch/a0b1c2d3e4f5/conversation", `"done"`, `"firmware"`) })
}
