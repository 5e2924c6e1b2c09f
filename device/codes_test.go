package device_test

import (
	"fmt"
	"testing"
	"time"

	"perch/device"
)

func TestCodesAreBoundedAndDistinct(t *testing.T) {
	c := device.NewCodes()
	now, given := time.Unix(0, 0), map[string]bool{}
	for n := range 1000 {
		code, ok := c.Issue(device.ID(fmt.Sprint(n)), device.Client{}, "", now)
		if !ok {
			break
		}
		if len(code) != 6 || given[code] {
			t.Errorf("code %d is %q, given before: %v", n, code, given[code])
		}
		given[code] = true
	}
	if len(given) != 200 {
		t.Errorf("%d codes are good at a time", len(given))
	}
	if _, ok := c.Issue("one", device.Client{}, "", now.Add(device.CodeLife)); !ok {
		t.Error("those that have expired are in the way")
	}
}
