package homeassistant

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
)

// document is a robot's state as it is published. Every key is always there,
// null where nothing is known.
type document struct {
	Name        *string     `json:"name"`
	Character   *string     `json:"character"` // its id
	AgentState  agent.Shown `json:"agent_state"`
	Emotion     *string     `json:"emotion"`
	SessionID   *string     `json:"session_id"`
	Connected   bool        `json:"connected"` // it can be reached
	Talking     bool        `json:"talking"`   // its channel is open
	Transport   *string     `json:"transport"` // from its next boot on
	Face        *bool       `json:"face"`
	Identity    *string     `json:"identity"`
	Volume      *int        `json:"volume"`
	Brightness  *int        `json:"brightness"`
	Mute        bool        `json:"mute"`
	HeadYaw     *int        `json:"head_yaw"`
	HeadPitch   *int        `json:"head_pitch"`
	LED         *light      `json:"led"`
	Battery     *int        `json:"battery"`
	Charging    *bool       `json:"charging"`
	Signal      *string     `json:"signal"`
	Temperature *float64    `json:"temperature"`
	Booted      *time.Time  `json:"booted"`
	Firmware    *string     `json:"firmware"`
	LastHeard   *string     `json:"last_heard"`
	Gesture     *string     `json:"gesture"` // while it is under way
}

// light is a light as Home Assistant's JSON schema has it.
type light struct {
	State      *string `json:"state"` // ON or OFF
	ColorMode  string  `json:"color_mode,omitempty"`
	Color      *colour `json:"color,omitempty"`
	Brightness *int    `json:"brightness,omitempty"` // 0-255
}

// colour is red, green and blue, 0-255 each.
type colour struct {
	R int `json:"r"`
	G int `json:"g"`
	B int `json:"b"`
}

// readings are a robot's answer to a request for its status; nil is unknown.
type readings struct {
	Volume, Brightness, Battery *int
	Charging                    *bool
	Signal                      *string
	Temperature                 *float64 // degrees Celsius
	HeadYaw, HeadPitch          *float64 // degrees
}

// document renders the view. Of the agent's state it holds what was shown
// last, so that no document is ahead of the order in which they are published.
func (v *view) document() document {
	d := document{
		Name:       known(v.robot.Settings.Name),
		Character:  known(v.who),
		AgentState: v.shown, Emotion: known(v.state.Emotion.Name), Connected: v.state.Online, Talking: v.state.Talking,
		Transport: known(string(cmp.Or(v.robot.Settings.Transport, v.transport))),
		Face:      v.face, Identity: v.identity, Volume: v.readings.Volume, Brightness: v.readings.Brightness, Mute: v.mute,
		HeadYaw: degrees(v.readings.HeadYaw), HeadPitch: degrees(v.readings.HeadPitch), LED: v.led, Battery: v.readings.Battery,
		Charging: v.readings.Charging, Signal: v.readings.Signal, Temperature: v.readings.Temperature,
		Firmware: known(v.robot.Firmware), LastHeard: v.lastHeard, Gesture: v.gesture,
	}
	if v.state.Talking {
		d.SessionID = known(v.state.Session)
	}
	if !v.robot.Booted.IsZero() {
		d.Booted = new(v.robot.Booted.UTC().Truncate(time.Second))
	}
	if d.Battery != nil && (*d.Battery < 0 || *d.Battery > 100) {
		d.Battery = nil // it does not know either
	}
	for _, s := range d.sliders(v.tools) {
		*s.value = new(min(max(**s.value, s.least), s.most))
	}
	return d
}

// degrees are an angle as sliders have it.
func degrees(angle *float64) *int {
	if angle == nil {
		return nil
	}
	return new(int(math.Round(min(max(*angle, -discovery.MaxNumber), discovery.MaxNumber))))
}

// slider is a number with an announced range. Home Assistant refuses one outside:
// a head at rest, for example, may point lower than a command can turn it.
type slider struct {
	value       **int
	least, most int
}

// sliders are those of the document's numbers that are known and that the tools
// have a range for.
func (d *document) sliders(tools []device.Tool) (all []slider) {
	add := func(value **int, least, most int, ok bool) {
		if ok && *value != nil {
			all = append(all, slider{value, least, most})
		}
	}
	for what, value := range map[string]**int{"volume": &d.Volume, "brightness": &d.Brightness} {
		if s, found := discovery.Level(tools, what); found {
			least, most, ok := s.Percent()
			add(value, least, most, ok)
		}
	}
	if head, found := discovery.Head(tools); found {
		for i, value := range []**int{&d.HeadYaw, &d.HeadPitch} {
			least, most, ok := head.Axis(i)
			add(value, least, most, ok)
		}
	}
	return all
}

// unknownOutside leaves out what the tools have another range for.
func (d *document) unknownOutside(tools []device.Tool) {
	for _, s := range d.sliders(tools) {
		if **s.value < s.least || **s.value > s.most {
			*s.value = nil
		}
	}
}

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// parseStatus takes over what the firmware answers to self.get_device_status.
func parseStatus(text string, r *readings) error {
	s, err := device.ParseStatus(text)
	if err != nil {
		return err
	}
	r.Volume, r.Brightness, r.Battery, r.Charging, r.Temperature = s.Volume, s.Brightness, s.Battery, s.Charging, s.Temperature
	r.Signal = known(s.Signal)
	return nil
}

// parseHead reads where a head points.
func parseHead(text string, r *readings) {
	var h struct{ Yaw, Pitch *float64 }
	if json.Unmarshal([]byte(text), &h) == nil {
		r.HeadYaw, r.HeadPitch = h.Yaw, h.Pitch
	}
}

// reported brings in an event's values; what it does not hold stays.
func (r *readings) reported(e event.RobotStatus) {
	r.Volume, r.Brightness, r.Battery = cmp.Or(e.Volume, r.Volume), cmp.Or(e.Brightness, r.Brightness), cmp.Or(e.Battery, r.Battery)
	r.Charging, r.Signal = cmp.Or(e.Charging, r.Charging), cmp.Or(known(e.Signal), r.Signal)
}
