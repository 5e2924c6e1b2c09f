package homeassistant

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"perch/device"
	"perch/must"
	"perch/store/storetest"
)

// TestDiscoveryIsNotKeptInMemory tests that the outbox stores no discovery payloads, and that the same payloads are
// published each time, including the steps that remove earlier components.
func TestDiscoveryIsNotKeptInMemory(t *testing.T) {
	h := newHarness()
	defer h.bus.Close()
	for n := range 3 {
		h.meet(device.ID(fmt.Sprintf("a0b1c2d3e5%02x", n)))
	}
	announced := &storetest.Table[[]string]{}
	must.Succeed(t, announced.Put("a0b1c2d3e501", []string{"sensor/gone", "number/gone", "sensor/battery"}))
	h.options.Announced = announced
	hub := h.hub(t)
	hub.out.Open()
	hub.start(time.Now())
	discovery := func() (all []message) {
		return slices.DeleteFunc(hub.drained(), func(m message) bool { return m.MakePayload == nil })
	}
	first := discovery()
	hub.out.Republish()
	again := discovery()
	if len(first) != 3+2+1 || // three robots, two more steps of one of them, and the robot of the harness
		!slices.EqualFunc(first, again, func(a, b message) bool {
			return a.Topic == b.Topic && bytes.Equal(a.Payload, b.Payload) && len(a.Payload) > 5000
		}) {
		t.Errorf("%d messages are published first, %d again, or others", len(first), len(again))
	}
	hub.reconcile(time.Now())
	if more := discovery(); len(more) > 0 {
		t.Errorf("%d are published without a change", len(more))
	}
}
