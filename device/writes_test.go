package device_test

import (
	"errors"
	"testing"
	"time"

	"perch/device"
)

// TestAVisitWithNothingNewIsNotWritten spares the SD card.
func TestAVisitWithNothingNewIsNotWritten(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	changed := func(change func(*device.CheckIn)) device.CheckIn {
		c := from(robotA, "one")
		change(&c)
		return c
	}
	same := func(*device.CheckIn) {}
	var seen time.Time
	for _, step := range []struct {
		name  string
		visit device.CheckIn
		at    time.Duration
		want  int
	}{
		{"the first", changed(same), 0, 1},
		{"a minute later", changed(same), time.Minute, 0},
		{"ten minutes after the first", changed(same), 10 * time.Minute, 0},
		{"a little more", changed(same), 10*time.Minute + time.Second, 1},
		{"soon again", changed(same), 11 * time.Minute, 0},
		{"new firmware", changed(func(c *device.CheckIn) { c.Firmware = "1.2.5" }), 12 * time.Minute, 1},
		{"the old one", changed(same), 13 * time.Minute, 1},
		{"another board", changed(func(c *device.CheckIn) { c.Board = "bread" }), 14 * time.Minute, 1},
		{"another language", changed(func(c *device.CheckIn) { c.Language = "zh-CN" }), 15 * time.Minute, 1},
		{"another address", changed(func(c *device.CheckIn) { c.Address = "192.168.1.41" }), 16 * time.Minute, 1},
		{"another base", changed(func(c *device.CheckIn) { c.BaseURL = "http://perch:80" }), 17 * time.Minute, 1},
		{"as at first", changed(same), 18 * time.Minute, 1},
		{"a claim", from(robotA, "two"), 19 * time.Minute, 1},
		{"the same claim", from(robotA, "two"), 20 * time.Minute, 0},
		{"another claim", from(robotA, "three"), 21 * time.Minute, 1},
		{"no claim", from(robotA, "one"), 22 * time.Minute, 1},
	} {
		r.CheckIn(step.visit, noon.Add(step.at))
		if got := kept.writes(); got != step.want {
			t.Errorf("%s: %d writes, want %d", step.name, got, step.want)
		}
		if step.visit.Client == device.NewClient("one") {
			seen = noon.Add(step.at)
		}
		if robot, err := r.Get(robotA); err != nil || !robot.LastSeen.Equal(seen) {
			t.Errorf("%s: last seen %v (%v)", step.name, robot.LastSeen, err)
		}
	}
}

// TestARobotThatTalksIsSeen, also where it has not booted for days.
func TestARobotThatTalksIsSeen(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	r.CheckIn(from(robotA, "one"), noon)
	kept.writes()
	r.Seen(robotA, noon.Add(5*time.Minute))
	if n := kept.writes(); n != 0 {
		t.Errorf("a channel soon after the boot is %d writes", n)
	}
	r.Seen(robotA, noon.Add(48*time.Hour))
	r.Seen("a0b1c2d3e4ff", noon)
	robot, err := device.NewRegistry(key, device.AdoptOpen, kept).Get(robotA)
	if err != nil || !robot.LastSeen.Equal(noon.Add(48*time.Hour)) || !robot.Booted.Equal(noon) || len(r.List()) != 1 {
		t.Errorf("kept is %+v (%v)", robot, err)
	}
}

// TestTheKeptVisitIsNeverLongStale: a robot that boots every few minutes is
// one that is seen, and remembered as such.
func TestTheKeptVisitIsNeverLongStale(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	for at := time.Duration(0); at <= time.Hour; at += 6 * time.Minute {
		r.CheckIn(from(robotA, "one"), noon.Add(at))
		for _, robot := range kept.All() {
			if stale := noon.Add(at).Sub(robot.LastSeen); stale > 10*time.Minute {
				t.Fatalf("after %v the visit that is kept is %v old", at, stale)
			}
		}
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	kept.writes()
	r.CheckIn(from(robotA, "one"), noon.Add(time.Hour))
	if n := kept.writes(); n != 0 {
		t.Errorf("a visit right after a restart is %d writes", n)
	}
}

func TestNothingIsWrittenByLooking(t *testing.T) {
	kept, r := newRegistry(device.AdoptCode)
	robot, _ := r.CheckIn(from(robotA, "one"), noon)
	kept.writes()
	r.List()
	r.Code(robot, noon)
	_, _ = r.Get(robotA)
	_, _ = r.Admit(robotA, device.NewClient("one"), "wrong")
	_, _ = r.Adopt("999999999", noon)
	_ = r.Forget(robotB)
	r.KeepTools(robotB, []device.Tool{{Name: "of nobody"}})
	if n := kept.writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// TestToolsAreOfAFirmware: another firmware lists others, so those of the one
// before are not used until it has.
func TestToolsAreOfAFirmware(t *testing.T) {
	kept, r := newRegistry(device.AdoptOpen)
	tools := []device.Tool{{Name: "self.get_device_status", Schema: device.Schema{Type: "object", Properties: map[string]device.Argument{}}}}
	r.CheckIn(from(robotA, "one"), noon)
	r.KeepTools(robotA, tools)
	if robot, err := r.Get(robotA); err != nil || robot.Tools != nil {
		t.Errorf("the tools of a stranger are kept: %v (%v)", robot.Tools, err)
	}
	adopt(t, r, robotA)
	kept.writes()
	r.KeepTools(robotA, tools)
	if n := kept.writes(); n != 1 {
		t.Errorf("the first list is %d writes", n)
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	r.KeepTools(robotA, tools)
	if n := kept.writes(); n != 0 {
		t.Errorf("the same list, after a restart, is %d writes", n)
	}
	if robot, err := r.Get(robotA); err != nil || len(robot.KnownTools()) != 1 {
		t.Errorf("known tools: %v (%v)", robot.KnownTools(), err)
	}
	newer := from(robotA, "one")
	newer.Firmware = "1.3.0"
	if robot, _ := r.CheckIn(newer, noon); robot.KnownTools() != nil {
		t.Errorf("the new firmware has the tools of the old one: %v", robot.KnownTools())
	}
	kept.writes()
	r.KeepTools(robotA, tools) // the same names, but now of the new firmware
	if robot, err := r.Get(robotA); err != nil || len(robot.KnownTools()) != 1 || kept.writes() != 1 {
		t.Errorf("once it has listed them: %v (%v)", robot.KnownTools(), err)
	}
}

// TestAClaimIsTheLatest: after a restart the owner adopts who came last, not
// who came first, and nobody as long as it may be either.
func TestAClaimIsTheLatest(t *testing.T) {
	kept, r := newRegistry(device.AdoptCode)
	r.CheckIn(from(robotA, "first"), noon)
	r.CheckIn(from(robotA, "last"), noon.Add(time.Minute))
	r = device.NewRegistry(key, device.AdoptCode, kept)
	if _, err := r.Adopt(string(robotA), noon.Add(2*time.Minute)); !errors.Is(err, device.ErrContested) {
		t.Errorf("who came last is adopted at once: %v", err)
	}
	if robot, err := r.Adopt(string(robotA), noon.Add(12*time.Minute)); err != nil || robot.Client != device.NewClient("last") {
		t.Errorf("adopted %+v (%v)", robot.Client, err)
	}
}
