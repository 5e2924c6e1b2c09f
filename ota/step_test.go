package ota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/device"
	"perch/event"
)

// TestVersions checks the comparison of versions against that of the firmware, which isNewerVersion describes.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		offered, running string
		newer            bool
	}{
		{"1.2.4", "1.2.3", true},
		{"1.2.3", "1.2.4", false},
		{"1.2.4", "1.2.4", false},
		{"1.10.0", "1.9.9", true},
		{"2", "1.9.9", true},
		{"1.2.3.0", "1.2.3", true},
		{"1.2.3", "1.2.3.0", false},
		{"", "1.0", false},
		{"", "", false},
		{"0", "", true},
		{"0", "0.0.1", false},
		{"1.2.4-dirty", "1.2.4", false},
		{"1.2.4-rc2", "1.2.4-rc1", false},
		{"1.2.5-rc1", "1.2.4", true},
		{"2.0.0-rc1", "2.0.0", false},
		{"1.2.", "1.2", false},
		{"1.2.", "1.1", true},
		{" 2.0", "1.0", true},
		{"+2.0", "1.0", true},
		{"-1.0", "0.0", false},
		{"0x10", "0", false},
		{"007", "6", true},
		{"2147483647", "2147483646", true},
		{"1.3\x00.v", "1.2", true},
	} {
		got, err := isNewerVersion(c.offered, c.running)
		if err != nil || got != c.newer {
			t.Errorf("%q over %q: %v (%v)", c.offered, c.running, got, err)
		}
	}
	for _, version := range []string{"v1.2.3", "latest", "1.x", "1..2", ".1", ".", "1. ", " ", "-", "+", "+-1", "1.2.v3", "2147483648",
		"1.99999999999999999999", "x"} {
		_, offered := isNewerVersion(version, "1.0")
		_, running := isNewerVersion("1.0", version)
		if offered == nil || running == nil || isComparable(version) {
			t.Errorf("%q would abort a robot, and is compared", version)
		}
	}
}

func FuzzVersion(f *testing.F) {
	for _, v := range []string{"1.2.4", "v1", "1..2", "2147483648", "1.2.4-dirty"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		is, err := isNewerVersion(v, v)
		if is || (err == nil) != isComparable(v) {
			t.Errorf("%q: %v (%v)", v, is, err)
		}
	})
}

func TestShareIsConstantAndProportional(t *testing.T) {
	const robots = 5000
	id := func(n int) device.ID { return device.ID(fmt.Sprintf("%012x", 0xa0b1c2000000+n)) }
	counts, other := [101]int{}, 0
	for n := range robots {
		at := share("image", id(n))
		if at < 0 || at > 99 || at != share("image", id(n)) {
			t.Fatalf("%s stands at %d", id(n), at)
		}
		if share("another", id(n)) != at {
			other++
		}
		for percent := range 101 {
			in := (Rollout{Percent: percent, Auto: true}).reasonAgainst("image", id(n), "b", time.Now()) == ""
			if in {
				counts[percent]++
			}
			if in != (at < percent) {
				t.Fatalf("%s stands at %d; among %d percent: %v", id(n), at, percent, in)
			}
		}
	}
	for percent, n := range counts {
		if want := robots * percent / 100; n < want-150 || n > want+150 {
			t.Errorf("%d percent are %d robots of %d", percent, n, robots)
		}
	}
	if other < robots/2 {
		t.Error("it is the same robots that go first with every image")
	}
}

// recordsOf returns records for the texts "VERSION" or "VERSION force", declared for the board b.
func recordsOf(versions ...string) []Record {
	var images []Record
	for _, text := range versions {
		version, force, _ := strings.Cut(text, " ")
		images = append(images, Record{
			Image: Image{SHA256: "sha-" + version, Version: version, ELF: "elf-" + version, Boards: []string{"b"}, Chip: "esp32s3", Length: 1000,
				Size: 1000},
			Rollout: Rollout{Percent: 100, Auto: true, Force: force != ""},
		})
	}
	slices.SortFunc(images, newestFirst)
	return images
}

// history plays the boots of one robot. A boot is a version, or a version and the hash of the ELF file, with
// which the robot checks in; "got VERSION" is a complete download. history returns the offer and the events of
// each check-in.
func history(images []Record, boots ...string) []string {
	var u Unit
	var happened []string
	for n, boot := range boots {
		if version, got := strings.CutPrefix(boot, "got "); got {
			t := u.Trials["sha-"+version]
			t.Stage = Downloaded
			u.setTrial("sha-"+version, t)
			continue
		}
		before := fmt.Sprint(u)
		version, elf, _ := strings.Cut(boot, " ")
		next, v := step(u, sighting{robot: "a0b1c2d3e4f5", board: "b", version: version, elf: cmp.Or(elf, "elf-"+version),
			at: time.Unix(int64(n), 0)}, images)
		if fmt.Sprint(u) != before {
			panic("step changed the unit that it was given")
		}
		u = next
		var words []string
		for _, e := range v.events {
			words = append(words, strings.TrimPrefix(event.Kind(e), "firmware_"))
		}
		if v.offer != nil {
			words = append(words, v.offer.Version)
		}
		if v.force {
			words = append(words, "force")
		}
		happened = append(happened, strings.Join(words, " "))
	}
	return happened
}

// TestStep checks sequences of check-ins of one robot.
func TestStep(t *testing.T) {
	for _, c := range []struct {
		name   string
		images []Record
		boots  []string
		want   []string
	}{
		{"all goes well: the first answer confirms what runs, the next offers, and the one after that confirms again",
			recordsOf("1.3"), []string{"1.2", "1.2", "got 1.3", "1.3", "1.3"},
			[]string{"", "offered 1.3", "installed", ""}},
		{"each image is confirmed before another is offered",
			recordsOf("1.4", "1.3"), []string{"1.2", "1.2", "1.4", "1.4"},
			[]string{"", "offered 1.4", "installed", ""}},
		{"it never manages to download",
			recordsOf("1.3"), []string{"1.2", "1.2", "1.2", "1.2", "1.2", "1.2"},
			[]string{"", "offered 1.3", "offered 1.3", "offered 1.3", "failed", ""}},
		{"it rolls back each time",
			recordsOf("1.3"), []string{"1.2", "1.2", "got 1.3", "1.2", "got 1.3", "1.2", "got 1.3", "1.2", "1.2"},
			[]string{"", "offered 1.3", "rolled_back offered 1.3", "rolled_back offered 1.3", "rolled_back failed", ""}},
		{"it crashes after its check-in, before that confirmed it",
			recordsOf("1.3"), []string{"1.2", "1.2", "1.3", "1.2", "1.2", "1.3", "1.2", "1.2", "1.3", "1.2", "1.2"},
			[]string{"", "offered 1.3", "installed", "rolled_back", "offered 1.3", "installed", "rolled_back", "offered 1.3", "installed",
				"rolled_back failed", ""}},
		{"it rolls back once, and then stays",
			recordsOf("1.3"), []string{"1.2", "1.2", "got 1.3", "1.2", "got 1.3", "1.3", "1.3"},
			[]string{"", "offered 1.3", "rolled_back offered 1.3", "installed", ""}},
		{"nothing is newer", recordsOf("1.2", "1.1"), []string{"1.2", "1.2", "1.3", "1.3"}, []string{"", "", "", ""}},
		{"force is sent once, and only where the version alone would not do",
			recordsOf("1.1 force"), []string{"1.2", "1.2", "1.1", "1.1", "1.1"},
			[]string{"", "offered 1.1 force", "installed", "", ""}},
		{"force that leads nowhere is not sent again",
			recordsOf("1.1 force"), []string{"1.2", "1.2", "1.2", "1.2"},
			[]string{"", "offered 1.1 force", "failed", ""}},
		{"force of what is newer is an offer like any other",
			recordsOf("1.3 force"), []string{"1.2", "1.2", "1.2", "1.3"},
			[]string{"", "offered 1.3", "offered 1.3", "installed"}},
		{"an older one that is forced over a newer one speaks not against that",
			recordsOf("1.3", "1.1 force"), []string{"1.2", "1.2", "1.3", "1.3", "1.1", "1.1"},
			[]string{"", "offered 1.3", "installed", "offered 1.1 force", "installed", ""}},
		{"an ELF file that never changes: a build that does not fill it in is known by its version",
			recordsOf("1.3"), []string{"1.2 same", "1.2 same", "1.3 same", "1.3 same"}, []string{"", "offered 1.3", "installed", ""}},
		{"a cable brought something newer still", recordsOf("1.3"), []string{"1.2", "1.2", "1.4", "1.4", "1.4", "1.4"},
			[]string{"", "offered 1.3", "", "", "", ""}},
	} {
		if got := history(c.images, c.boots...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestWhatItsOwnerChose checks that a robot keeps the image that its owner has chosen, until an image is added
// after that choice.
func TestWhatItsOwnerChose(t *testing.T) {
	images := recordsOf("1.3", "1.1")
	u := Unit{Wanted: "sha-1.1", Trials: map[string]Trial{"sha-1.3": {Stage: Installed}, "sha-1.1": {Chosen: true, Offered: time.Unix(100, 0)}}}
	boot := func(version string) verdict {
		var v verdict
		u, v = step(u, sighting{robot: "a0b1c2d3e4f5", board: "b", version: version, elf: "elf-" + version, at: time.Unix(200, 0)}, images)
		return v
	}
	for range 3 { // the robot's own tool has installed the image
		if v := boot("1.1"); v.offer != nil || len(v.failed) > 0 || u.Wanted != "" {
			t.Errorf("%+v, wanted %q", v, u.Wanted)
		}
	}
	later := recordsOf("1.4")[0]
	later.Added = time.Unix(300, 0)
	images = append([]Record{later}, images...)
	if v := boot("1.1"); v.offer == nil || v.offer.Version != "1.4" {
		t.Errorf("what came later is not offered: %+v", v)
	}
}

// TestWhoIsRefused checks each reason against an offer. Without the change, the robot would be offered the image.
func TestWhoIsRefused(t *testing.T) {
	good := func() (Unit, Record, sighting) {
		r := recordsOf("1.3")[0]
		return Unit{Reported: true, Facts: Facts{Chip: 9, Revision: 2, Slot: 4000}}, r,
			sighting{robot: "a0b1c2d3e4f5", board: "b", version: "1.2", elf: "elf-1.2", at: time.Unix(0, 0)}
	}
	for _, c := range []struct {
		name   string
		change func(*Unit, *Record, *sighting)
		why    string
	}{
		{"none", func(*Unit, *Record, *sighting) {}, ""},
		{"nothing told", func(u *Unit, _ *Record, _ *sighting) { *u = Unit{} }, ""},
		{"by version alone", func(_ *Unit, _ *Record, s *sighting) { s.elf, s.version = "", "1.3" }, "it already runs the image"},
		{"by its ELF file", func(_ *Unit, _ *Record, s *sighting) { s.elf = "elf-1.3" }, "it already runs the image"},
		{"board", func(_ *Unit, _ *Record, s *sighting) { s.board = "c" }, "not declared"},
		{"no board", func(_ *Unit, r *Record, s *sighting) { s.board, r.Boards = "", []string{""} }, "not declared"},
		{"version", func(_ *Unit, _ *Record, s *sighting) { s.version = "v1.2" }, "cannot be compared"},
		{"failed", func(u *Unit, r *Record, _ *sighting) { u.setTrial(r.SHA256, Trial{Stage: Failed}) }, "came back"},
		{"no slots", func(u *Unit, _ *Record, _ *sighting) { u.Fixed = true }, "cable"},
		{"chip", func(u *Unit, _ *Record, _ *sighting) { u.Chip = 5 }, "esp32s3, and the robot has esp32c3"},
		{"size", func(u *Unit, _ *Record, _ *sighting) { u.Slot = 999 }, "partition takes 999"},
		{"stopped", func(_ *Unit, r *Record, _ *sighting) { r.Stopped = "2 of 5" }, "has stopped"},
		{"as new", func(_ *Unit, _ *Record, s *sighting) { s.version, s.elf = "1.3", "other build" }, "as new"},
		{"no rollout", func(_ *Unit, r *Record, _ *sighting) { r.Rollout = Rollout{} }, "share"},
		{"other boards", func(_ *Unit, r *Record, _ *sighting) { r.Rollout.Boards = []string{"c"} }, "board is not in"},
		{"other robots", func(_ *Unit, r *Record, _ *sighting) { r.Rollout.Robots = []device.ID{"020000000001"} }, "among the robots"},
		{"hours", func(_ *Unit, r *Record, _ *sighting) {
			r.Rollout.Hours = device.Hours{From: time.Hour, To: 2 * time.Hour}
		}, "hour"},
		{"by hand", func(_ *Unit, r *Record, _ *sighting) { r.Rollout.Auto = false }, "by hand"},
		{"wanted", func(u *Unit, r *Record, _ *sighting) { u.Wanted, r.Rollout, r.Stopped = r.SHA256, Rollout{}, "x" }, ""},
		{"wanted on another chip", func(u *Unit, r *Record, _ *sighting) { u.Wanted, u.Chip = r.SHA256, 5 }, "esp32c3"},
	} {
		u, r, s := good()
		c.change(&u, &r, &s)
		if why := u.reasonAgainst(r, s); c.why == "" && why != "" || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestNoRobotIsFlashedForEver checks, for arbitrary sequences of check-ins, that an image is offered to a robot
// a limited number of times, with force only once, and never in the reply that confirms the running image.
func TestNoRobotIsFlashedForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		images := recordsOf("1.3", "1.2.1 force", "1.1 force")
		var u Unit
		offers, forces, last := map[string]int{}, map[string]int{}, ""
		installs := map[string]int{}
		for n := range 60 {
			boot := rapid.SampledFrom([]string{"1.2", "1.3", "1.2.1", "1.1", "1.4"}).Draw(t, "boot")
			next, v := step(u, sighting{robot: "a0b1c2d3e4f5", board: "b", version: boot, elf: "elf-" + boot, at: time.Unix(int64(n), 0)}, images)
			u = next
			for _, e := range v.events {
				if i, is := e.(event.FirmwareInstalled); is {
					installs[i.Version]++
				}
			}
			if v.offer == nil {
				last = boot
				continue
			}
			if last != boot {
				t.Fatalf("boot %d with %s is offered %s before that was confirmed", n, boot, v.offer.Version)
			}
			offers[v.offer.Version]++
			if v.force {
				forces[v.offer.Version]++
			}
			if rapid.Bool().Draw(t, "downloads") {
				trial := u.Trials[v.offer.SHA256]
				trial.Stage = Downloaded
				u.setTrial(v.offer.SHA256, trial)
			}
		}
		for version, n := range forces {
			if n > 1 {
				t.Fatalf("force of %s was sent %d times", version, n)
			}
		}
		for version, n := range offers {
			if n > maxMisses+installs[version] {
				t.Fatalf("%s was offered %d times and installed %d times", version, n, installs[version])
			}
		}
	})
}
