package device_test

import (
	"testing"

	"perch/device"
)

func TestClamp(t *testing.T) {
	low, high := -10, 90
	for _, c := range []struct {
		name     string
		argument device.Argument
		n, want  int
	}{
		{"inside", device.Argument{Minimum: &low, Maximum: &high}, 7, 7},
		{"below", device.Argument{Minimum: &low, Maximum: &high}, -11, -10},
		{"above", device.Argument{Minimum: &low, Maximum: &high}, 91, 90},
		{"no floor", device.Argument{Maximum: &high}, -1000, -1000},
		{"no ceiling", device.Argument{Minimum: &low}, 1000, 1000},
		{"no range", device.Argument{}, 42, 42},
	} {
		if got := c.argument.Clamp(c.n); got != c.want {
			t.Errorf("%s: %d becomes %d, want %d", c.name, c.n, got, c.want)
		}
	}
}

func TestFindTool(t *testing.T) {
	tools := []device.Tool{{Name: "self.robot.set_head_angles"}, {Name: "self.camera.take_photo"}}
	if tool, found := device.FindTool(tools, "self.camera.take_photo"); !found || tool.Name != "self.camera.take_photo" {
		t.Errorf("found %+v, %t", tool, found)
	}
	if tool, found := device.FindTool(tools, "self.camera"); found {
		t.Errorf("half a name found %+v", tool)
	}
	if _, found := device.FindTool(nil, ""); found {
		t.Error("something was found among no tools")
	}
}
