package discovery

import "perch/device"

// MaxNumber bounds the absolute values that may be set, and the ranges of sliders.
const MaxNumber = 1e6

// Control is a robot's tool that an entity sets, and the ranges of its arguments.
type Control struct{ device.Control }

// Level returns the tool that sets the volume or the brightness.
func Level(tools []device.Tool, what string) (Control, bool) {
	c, found := device.FindControl(tools, "set "+what, []string{what, "level", "value"})
	return Control{c}, found
}

// Head returns the tool that moves the head.
func Head(tools []device.Tool) (Control, bool) {
	c, found := device.FindHead(tools)
	return Control{c}, found
}

// Percent returns the range of a level. ok is false if it cannot be set.
func (c Control) Percent() (low, high int, ok bool) { return c.span(0, 0, 100) }

// Axis returns how far a head turns (0) or tilts (1), in degrees. ok is false if it cannot.
func (c Control) Axis(i int) (low, high int, ok bool) {
	if i == 0 {
		return c.span(i, -device.AssumedHeadYaw, device.AssumedHeadYaw)
	}
	low, high, ok = c.span(i, device.MinHeadPitch, device.MaxHeadPitch)
	low, high = max(low, device.MinHeadPitch), min(high, device.MaxHeadPitch) // its makers advise against both ends
	return low, high, ok && low < high
}

// span returns the range of the i-th argument, which is from low to high if the tool's schema has
// none. ok is false for an argument that is missing or that accepts a single value.
func (c Control) span(i, low, high int) (least, most int, ok bool) {
	if c.Arguments[i] == "" {
		return 0, 0, false
	}
	a := c.Schema.Properties[c.Arguments[i]]
	least, most = low, high
	if a.Maximum != nil {
		most = *a.Maximum
	}
	switch {
	case a.Minimum != nil && *a.Minimum == device.KeepHeadAxis: // which means "leave it as it is"
		least = -most // it turns as far to either side
	case a.Minimum != nil:
		least = *a.Minimum
	}
	least, most = max(least, -MaxNumber), min(most, MaxNumber)
	return least, most, least < most
}
