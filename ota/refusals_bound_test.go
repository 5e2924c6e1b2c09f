package ota

import (
	"fmt"
	"testing"
	"time"
)

// TestAStrangerCannotHideRefusedRobots checks that many refusals of one address do not displace the refusals of
// other addresses.
func TestAStrangerCannotHideRefusedRobots(t *testing.T) {
	var r refusals
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	r.add(Refusal{At: now, Address: "192.168.1.5", Device: "a0:b1:c2:d3:e4:f5", Code: "no_upgrade"})
	for i := range 50 {
		r.add(Refusal{At: now, Address: "192.168.1.66", Device: fmt.Sprintf("02:00:00:00:00:%02x", i), Code: "unknown_host"})
	}
	if last := r.list[len(r.list)-1]; last.Address != "192.168.1.5" || len(r.list) != 1+maxOfAddress {
		t.Errorf("listed are %+v", r.list)
	}
}
