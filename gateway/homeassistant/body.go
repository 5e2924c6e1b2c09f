package homeassistant

import (
	"cmp"
	"context"
	"fmt"

	"perch/device"
	"perch/gateway/homeassistant/discovery"
)

// do sets the volume or the brightness, by whatever tool the robot has.
func (c adjust) do(ctx context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	s, found := discovery.Level(h.o.Talk.Tools(id), c.what)
	if !found {
		return nil, h.without(id, c.what)
	}
	least, most, ok := s.Percent()
	if ok && (c.value < least || c.value > most) {
		return nil, fmt.Errorf("%s goes from %d to %d, not to %d", c.what, least, most, c.value)
	}
	_, err := h.o.Talk.Call(ctx, id, s.Name, map[string]any{s.Arguments[0]: c.value})
	return h.read, err
}

// without is why a robot cannot do something that others can. One that was
// never here to list its tools may have it: the order waits until it is.
func (h *hub) without(id device.ID, what string) error {
	if len(h.o.Talk.Tools(id)) == 0 {
		return notListed{}
	}
	return fmt.Errorf("this robot has no tool for its %s", what)
}

// notListed is the error of an order to a robot with unknown tools.
type notListed struct{}

func (notListed) Error() string { return "the robot has yet to list its tools" }
func (notListed) Code() string  { return "robot_offline" }

// do turns the head. Where it was turned to is kept, for some heads cannot be asked.
func (c turn) do(ctx context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	s, found := discovery.Head(h.o.Talk.Tools(id))
	if !found {
		return nil, h.without(id, "head")
	}
	arguments := map[string]any{}
	for i, angle := range []*int{c.yaw, c.pitch} {
		if angle == nil {
			continue
		}
		least, most, ok := s.Axis(i)
		if !ok {
			return nil, fmt.Errorf("this robot's head has no %s", []string{"yaw", "pitch"}[i])
		}
		*angle = min(max(*angle, least), most) // servos that are driven into their stops break
		arguments[s.Arguments[i]] = *angle
	}
	if speed := s.Integer("speed", "velocity"); speed != "" && c.speed != nil {
		arguments[speed] = *c.speed // Fit keeps it within what the head takes
	}
	_, err := h.o.Talk.Call(ctx, id, s.Name, arguments)
	return func(ctx context.Context, v *view) {
		if c.yaw != nil {
			v.readings.HeadYaw = new(float64(*c.yaw))
		}
		if c.pitch != nil {
			v.readings.HeadPitch = new(float64(*c.pitch))
		}
		v.dirty = true
		h.read(ctx, v)
	}, err
}

// do sets the lights. What they are is kept, for they cannot be asked.
func (c lamp) do(ctx context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	s, found := device.FindLights(h.o.Talk.Tools(id))
	if !found {
		return nil, h.without(id, "lights")
	}
	is := c.light
	if *is.State == "ON" && is.Color == nil {
		is.Color = &colour{255, 255, 255}
	}
	_, err := h.o.Talk.Call(ctx, id, s.Name, s.Shine(is.levels()))
	if *is.State == "OFF" {
		is = light{State: is.State}
	} else {
		is.ColorMode, is.Brightness = "rgb", cmp.Or(is.Brightness, new(255))
	}
	return func(_ context.Context, v *view) { v.led, v.dirty = &is, true }, err
}

// levels are red, green and blue as they shine, 0-255.
func (l light) levels() [3]int {
	if *l.State == "OFF" || l.Color == nil {
		return [3]int{}
	}
	full := 255
	if l.Brightness != nil {
		full = *l.Brightness
	}
	return [3]int{l.Color.R * full / 255, l.Color.G * full / 255, l.Color.B * full / 255}
}
