package device_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/must"
)

// registryWithTwo returns a registry with two adopted robots.
func registryWithTwo(t *testing.T, kept *table) *device.Registry {
	t.Helper()
	r := device.NewRegistry(key, device.AdoptOpen, kept)
	for _, id := range []device.ID{robotA, robotB} {
		r.CheckIn(from(id, "one"), noon)
		adopt(t, r, id)
	}
	return r
}

func name(s string) device.Change { return device.Change{Name: &s} }

func TestRobotIsFoundByName(t *testing.T) {
	kept := newTable()
	r := registryWithTwo(t, kept)
	kept.writes()
	robot, err := r.Configure(robotA, name("Kitchen"))
	if err != nil || robot.Settings.Name != "Kitchen" {
		t.Fatalf("rename: %+v, %v", robot.Settings, err)
	}
	if kept.put != 1 {
		t.Errorf("a name is %d durable writes, not 1", kept.put)
	}
	for _, r := range []*device.Registry{r, device.NewRegistry(key, device.AdoptOpen, kept)} {
		for _, spelled := range []string{"Kitchen", "kitchen", " KITCHEN ", "A0:B1:C2:D3:E4:F5", string(robotA)} {
			if id, err := r.Resolve(spelled); id != robotA || err != nil {
				t.Errorf("%q is %q, %v", spelled, id, err)
			}
		}
		if got, err := r.Get(robotA); err != nil || got.Settings.Name != "Kitchen" || r.Settings(robotA).Name != "Kitchen" {
			t.Errorf("it is shown as %+v, %v", got.Settings, err)
		}
		_, err := r.Resolve("kitchn")
		if !errors.Is(err, device.ErrID) || !strings.Contains(err.Error(), "kitchn") || !strings.Contains(err.Error(), "perch robot list") {
			t.Errorf("a name that nobody has: %v", err)
		}
		if robot, err := r.Adopt("kitchen", noon); err != nil || robot.ID != robotA {
			t.Errorf("adopted by name: %+v, %v", robot.ID, err)
		}
	}
	if robot, err := r.Configure(robotA, name("")); err != nil || robot.Settings.Name != "" {
		t.Errorf("a name taken away: %+v, %v", robot.Settings, err)
	}
	if _, err := r.Resolve("kitchen"); err == nil {
		t.Error("the name it had before still finds it")
	}
}

func TestNameBelongsToOneRobot(t *testing.T) {
	r := registryWithTwo(t, newTable())
	must.Value(r.Configure(robotA, name("Küche")))(t)
	_, err := r.Configure(robotB, name("KÜCHE"))
	if !errors.Is(err, device.ErrTaken) || !strings.Contains(err.Error(), string(robotA)) {
		t.Errorf("the name of another: %v", err)
	}
	if _, err := r.Configure(robotA, name("küche")); err != nil {
		t.Errorf("its own name in another case: %v", err)
	}
	for _, wrong := range []string{
		"a0-b1-c2-d3-e4-f5", "A0B1C2D3E4F6", "123456", "a\nb", "a\u202eb", "a/b", "a#b", "a+b", "skin:desk", "-x", ".", "..",
		strings.Repeat("ü", 33), "a\xff", "all\x00",
	} {
		if _, err := r.Configure(robotB, name(wrong)); !errors.Is(err, device.ErrName) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for _, fine := range []string{strings.Repeat("ü", 32), " Wohnzimmer ", "厨房", "R2-D2", "Chan 2"} {
		if robot, err := r.Configure(robotB, name(fine)); err != nil || robot.Settings.Name != strings.TrimSpace(fine) {
			t.Errorf("%q: %q, %v", fine, robot.Settings.Name, err)
		}
	}
}

// TestStrangerHasNoName: a stranger, a forgotten robot and a robot whose client was replaced have no settings
// and are not found by name. After Replace, adoption restores the stored settings.
func TestStrangerHasNoName(t *testing.T) {
	r := registryWithTwo(t, newTable())
	const robotC device.ID = "a0b1c2d3e4f7"
	r.CheckIn(from(robotC, "one"), noon)
	if _, err := r.Configure(robotC, name("hall")); !errors.Is(err, device.ErrNotAdopted) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := r.Configure("020000000001", name("hall")); !errors.Is(err, device.ErrUnknownRobot) {
		t.Errorf("nobody: %v", err)
	}
	must.Value(r.Configure(robotA, name("hall")))(t)
	r.CheckIn(from(robotA, "two"), noon.Add(time.Hour))
	if robot, err := r.Replace(robotA, ""); err != nil || robot.Settings != (device.Settings{}) || r.Settings(robotA) != (device.Settings{}) {
		t.Errorf("one that is replaced: %+v, %v", robot.Settings, err)
	}
	if _, err := r.Resolve("hall"); err == nil {
		t.Error("a stranger is found by the name of the robot that it replaced")
	}
	if robot, err := r.Adopt(string(robotA), noon.Add(2*time.Hour)); err != nil || robot.Settings.Name != "hall" {
		t.Errorf("adopted again: %+v, %v", robot.Settings, err)
	}
	must.Succeed(t, r.Forget(robotA))
	if _, err := r.Configure(robotB, name("hall")); err != nil {
		t.Errorf("the name of one that is forgotten: %v", err)
	}
}

func TestConfigurationFileOverridesStoredSettings(t *testing.T) {
	kept := newTable()
	r := registryWithTwo(t, kept)
	voice, language := "af_heart", "de"
	must.Value(r.Configure(robotA, device.Change{Voice: &voice, Language: &language}))(t)
	for id, n := range map[device.ID]string{robotA: "den", robotB: "hall"} {
		must.Value(r.Configure(id, name(n)))(t)
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	hidden := r.SetFixed(map[device.ID]device.Settings{robotA: {Name: "Hall", Voice: "af_sky"}})
	if len(hidden) != 1 || hidden[0].ID != robotB || hidden[0].Settings.Name != "hall" {
		t.Errorf("the robots whose name the file gives to another: %+v", hidden)
	}
	if got := r.Settings(robotA); got != (device.Settings{Name: "Hall", Voice: "af_sky", Language: "de"}) {
		t.Errorf("with the file: %+v", got)
	}
	if id, err := r.Resolve("hall"); id != robotA || err != nil {
		t.Errorf("hall is %q, %v", id, err)
	}
	if got := r.Settings(robotB); got.Name != "" {
		t.Errorf("the other still shows the name %q", got.Name)
	}
	_, err := r.Configure(robotA, name("attic"))
	if !errors.Is(err, device.ErrFixed) || !strings.Contains(err.Error(), "name") || !strings.Contains(err.Error(), "configuration file") {
		t.Errorf("a name that the file sets: %v", err)
	}
	if _, err := r.Configure(robotA, name("Hall")); err != nil {
		t.Errorf("the name that the file sets, once more: %v", err)
	}
	if _, err := r.Configure(robotB, name("HALL")); !errors.Is(err, device.ErrTaken) {
		t.Errorf("a name of the file's for another: %v", err)
	}
	french := "fr"
	if robot, err := r.Configure(robotA, device.Change{Language: &french}); err != nil || robot.Settings.Language != "fr" ||
		robot.Settings.Voice != "af_sky" {
		t.Errorf("what the file does not set: %+v, %v", robot.Settings, err)
	}
	r = device.NewRegistry(key, device.AdoptOpen, kept)
	if got := r.Settings(robotA); got != (device.Settings{Name: "den", Voice: "af_heart", Language: "fr"}) {
		t.Errorf("without the file: %+v", got)
	}
	if got := r.Settings(robotB); got.Name != "hall" {
		t.Errorf("the other without the file: %+v", got)
	}
}

func TestFailedWriteChangesNoName(t *testing.T) {
	kept := newTable()
	r := registryWithTwo(t, kept)
	kept.Breaks(errDiskFull)
	if _, err := r.Configure(robotA, name("kitchen")); !errors.Is(err, errDiskFull) {
		t.Errorf("%v", err)
	}
	if got := r.Settings(robotA); got.Name != "" {
		t.Errorf("it is called %q", got.Name)
	}
}
