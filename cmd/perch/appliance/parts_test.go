package appliance

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"perch/ota"
)

// TestPartsOfTheMachine are what /ready says of disk, clock, doors and
// rollouts where something is wrong.
func TestPartsOfTheMachine(t *testing.T) {
	if p := diskPart(t.TempDir(), errors.New("no space left on device")); p.OK || p.Vital ||
		!strings.Contains(p.Note, "nothing can be kept: no space left") {
		t.Errorf("a disk that refuses: %+v", p)
	}
	if p := clockPart(time.Unix(0, 0), time.Now()); p.OK || p.Vital || !strings.Contains(p.Note, "time server") {
		t.Errorf("a clock that is wrong: %+v", p)
	}
	h := open(t, testConfig(), t.TempDir())
	if p := h.Doors.condition(h.Data); !p.OK {
		t.Errorf("the doors: %+v", p)
	}
	if err := os.Remove(socketPath(h.Data)); err != nil {
		t.Fatal(err)
	}
	if p := h.Doors.condition(h.Data); p.OK || !strings.Contains(p.Note, "perch.sock") || !strings.Contains(p.Note, "restart") {
		t.Errorf("the doors without a socket: %+v", p)
	}
	stopped := ota.Shown{Record: ota.Record{Image: ota.Image{Version: "2.3.0"}, Stopped: "2 of the first 5 robots did not come back with it"}}
	if p := rolloutsPart([]ota.Shown{stopped}); p.OK || p.Vital || !strings.Contains(p.Note, "2.3.0 has stopped: 2 of the first 5") ||
		!strings.Contains(p.Note, "rollout anew") {
		t.Errorf("a rollout that has stopped: %+v", p)
	}
}

// TestDiskAndClockAreParts of what /ready lists, and keep nobody from talking.
func TestDiskAndClockAreParts(t *testing.T) {
	h := open(t, testConfig(), t.TempDir())
	for _, name := range []string{"disk", "clock"} {
		if p := h.part(name); p.Name != name || p.Vital || p.Note == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
