package homeassistant

import (
	"context"
	"fmt"

	"perch/device"
)

// adjust sets the volume or the brightness, by whatever tool the robot has.
func (h *hub) adjust(ctx context.Context, id device.ID, c adjust) error {
	s, found := findLevel(h.o.Talk.Tools(id), c.what)
	if !found {
		return h.without(ctx, id, c.what)
	}
	least, most, ok := s.span(0, 0, 100)
	if ok && (c.value < least || c.value > most) {
		return fmt.Errorf("%s goes from %d to %d, not to %d", c.what, least, most, c.value)
	}
	_, err := h.o.Talk.Call(ctx, id, s.Name, map[string]any{s.Arguments[0]: c.value})
	return err
}

// without is why a robot cannot do something that others can. One that was
// never here to list its tools may have it: the order waits until it is.
func (h *hub) without(ctx context.Context, id device.ID, what string) error {
	if len(h.o.Talk.Tools(id)) == 0 {
		return notListed{}
	}
	return fmt.Errorf("this robot has no tool for its %s", what)
}

// notListed is the error of an order to a robot with unknown tools.
type notListed struct{}

func (notListed) Error() string { return "the robot has yet to list its tools" }
func (notListed) Code() string  { return "robot_offline" }

// turn turns the head, and returns where to.
func (h *hub) turn(ctx context.Context, id device.ID, c turn) (turn, error) {
	s, found := findHead(h.o.Talk.Tools(id))
	if !found {
		return turn{}, h.without(ctx, id, "head")
	}
	arguments := map[string]any{}
	for i, angle := range []*int{c.yaw, c.pitch} {
		if angle == nil {
			continue
		}
		least, most, ok := s.axis(i)
		if !ok {
			return turn{}, fmt.Errorf("this robot's head has no %s", []string{"yaw", "pitch"}[i])
		}
		*angle = min(max(*angle, least), most) // servos that are driven into their stops break
		arguments[s.Arguments[i]] = *angle
	}
	if speed := s.Integer("speed", "velocity"); speed != "" && c.speed != nil {
		arguments[speed] = *c.speed // Fit keeps it within what the head takes
	}
	_, err := h.o.Talk.Call(ctx, id, s.Name, arguments)
	return turn{yaw: c.yaw, pitch: c.pitch}, err
}

// turned keeps where a head was turned to that cannot be asked.
func (r *readings) turned(to turn) {
	if to.yaw != nil {
		r.HeadYaw = new(float64(*to.yaw))
	}
	if to.pitch != nil {
		r.HeadPitch = new(float64(*to.pitch))
	}
}

// lamp sets the lights, and returns them as they are now. They cannot be asked.
func (h *hub) lamp(ctx context.Context, id device.ID, want light) (*light, error) {
	s, found := device.FindLights(h.o.Talk.Tools(id))
	if !found {
		return nil, h.without(ctx, id, "lights")
	}
	if *want.State == "ON" && want.Color == nil {
		want.Color = &colour{255, 255, 255}
	}
	if _, err := h.o.Talk.Call(ctx, id, s.Name, s.Shine(want.levels())); err != nil {
		return nil, err
	}
	if *want.State == "OFF" {
		return &light{State: want.State}, nil
	}
	want.ColorMode = "rgb"
	if want.Brightness == nil {
		want.Brightness = new(255)
	}
	return &want, nil
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
