package ota

import (
	"strings"
	"testing"
)

func TestCondition(t *testing.T) {
	stopped := Shown{Record: Record{Image: Image{Version: "2.3.0"}, Stopped: "2 of the first 5 robots did not come back with it"}}
	if p := condition([]Shown{stopped}); p.OK || p.Vital || !strings.Contains(p.Note, "2.3.0 has stopped: 2 of the first 5") ||
		!strings.Contains(p.Note, "set the rollout again") {
		t.Errorf("a rollout that has stopped: %+v", p)
	}
	damaged := Shown{Record: Record{Image: Image{Version: "2.3.0"}}, Damaged: "its file is damaged; publish it again, and check the disk"}
	if p := condition([]Shown{damaged}); p.OK || p.Vital ||
		p.Note != "the image 2.3.0 is not offered: its file is damaged; publish it again, and check the disk" {
		t.Errorf("a damaged image: %+v", p)
	}
}
