package discovery

import "perch/device"

// MaxNumber is the largest absolute value that a command may set and that a slider may have.
const MaxNumber = 1e6

// Control is a tool of a robot with numeric arguments that an entity of Home Assistant can set.
type Control struct{ device.Control }

// LevelControl returns the tool that sets a level in per cent: "volume" or "brightness". The second result is false if
// there is no such tool.
func LevelControl(tools []device.Tool, what string) (Control, bool) {
	c, found := device.FindControl(tools, "set "+what, []string{what, "level", "value"})
	return Control{c}, found
}

// HeadControl returns the tool that moves the head. The second result is false if there is no such tool.
func HeadControl(tools []device.Tool) (Control, bool) {
	c, found := device.FindHead(tools)
	return Control{c}, found
}

// Percent returns the range of a level of LevelControl. ok is false if the range has only one value.
func (c Control) Percent() (low, high int, ok bool) { return c.argumentRange(0, 0, 100) }

// Axis returns the range of the yaw (i is 0) or the pitch (i is 1) of HeadControl, in degrees. ok is false if the head
// cannot turn about this axis.
func (c Control) Axis(i int) (low, high int, ok bool) {
	if i == 0 {
		return c.argumentRange(i, -device.AssumedHeadYaw, device.AssumedHeadYaw)
	}
	low, high, ok = c.argumentRange(i, device.MinHeadPitch, device.MaxHeadPitch)
	low, high = max(low, device.MinHeadPitch), min(high, device.MaxHeadPitch) // the robot's maker advises against angles beyond these
	return low, high, ok && low < high
}

// argumentRange returns the range of the i-th argument, counted from 0. The defaults are used for limits that are
// missing from the tool's schema. ok is false if the argument is missing or accepts only one value.
func (c Control) argumentRange(i, defaultLow, defaultHigh int) (low, high int, ok bool) {
	if c.Arguments[i] == "" {
		return 0, 0, false
	}
	a := c.Schema.Properties[c.Arguments[i]]
	low, high = defaultLow, defaultHigh
	if a.Maximum != nil {
		high = *a.Maximum
	}
	switch {
	case a.Minimum != nil && *a.Minimum == device.KeepHeadAxis: // the value that leaves the axis unchanged
		low = -high // the head turns equally far to both sides
	case a.Minimum != nil:
		low = *a.Minimum
	}
	low, high = max(low, -MaxNumber), min(high, MaxNumber)
	return low, high, low < high
}
