package bridge

import (
	"net/http"
	"strings"
	"testing"

	"perch/device"
)

// TestTheBridgeTakesARobotsName wherever it takes its MAC address.
func TestTheBridgeTakesARobotsName(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.Find = func(robot string) (device.ID, error) {
			if strings.EqualFold(robot, "kitchen") {
				return device.ParseID(macA)
			}
			return device.ParseID(robot)
		}
	})
	server := h.local(t)
	if status, answer := ask(t, server, http.MethodGet, "/api/perception/state?device_id=Kitchen", ""); status != 200 ||
		!strings.Contains(answer, macA) || strings.Contains(answer, macB) {
		t.Errorf("what it senses: %d %s", status, answer)
	}
	if status, answer := ask(t, server, http.MethodGet, "/api/perception/recent/kitchen", ""); status != 200 || !strings.Contains(answer, macA) {
		t.Errorf("what it sensed last: %d %s", status, answer)
	}
	if status, answer := ask(t, server, http.MethodPost, "/api/perception/event", `{"name":"x","device_id":"kitchen"}`); status != 200 ||
		len(h.senses.took) != 1 || !strings.Contains(h.senses.took[0], "a0b1c2d3e4f5") {
		t.Errorf("an event: %d %s, took %q", status, answer, h.senses.took)
	}
	if status, answer := ask(t, server, http.MethodPost, "/admin/say", `{"text":"hi","device_id":"KITCHEN"}`); status != 200 {
		t.Errorf("said: %d %s", status, answer)
	}
}
