package vccp

import (
	"strings"
	"testing"

	"perch/device"
)

// TestAModelNamesARobot by the name that its owner has given it.
func TestAModelNamesARobot(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.Find = func(robot string) (device.ID, error) {
			if strings.EqualFold(robot, "kitchen") {
				return robotA, nil
			}
			return device.ParseID(robot)
		}
	})
	m := h.model(t)
	m.must("register-agent", object{"robot": "Kitchen"})
	if text := m.must("get-capability", nil); text == "null" {
		t.Errorf("it was given no robot: %s", text)
	}
}
