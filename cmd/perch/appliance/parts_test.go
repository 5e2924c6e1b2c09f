package appliance

import (
	"errors"
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
	stopped := ota.Shown{Record: ota.Record{Image: ota.Image{Version: "2.3.0"}, Stopped: "2 of the first 5 robots did not come back with it"}}
	if p := rolloutsPart([]ota.Shown{stopped}); p.OK || p.Vital || !strings.Contains(p.Note, "2.3.0 has stopped: 2 of the first 5") ||
		!strings.Contains(p.Note, "rollout anew") {
		t.Errorf("a rollout that has stopped: %+v", p)
	}
	damaged := ota.Shown{Record: ota.Record{Image: ota.Image{Version: "2.3.0"}}, Damaged: "its file is damaged; publish it again, and check the disk"}
	if p := rolloutsPart([]ota.Shown{damaged}); p.OK || p.Vital ||
		p.Note != "the image 2.3.0 is offered to no robot: its file is damaged; publish it again, and check the disk" {
		t.Errorf("a damaged image: %+v", p)
	}
}
