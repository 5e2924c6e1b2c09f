package state

import (
	"cmp"
	"encoding/json"

	"perch/device"
	"perch/event"
)

// Readings are a robot's answers to requests for its status. Nil is unknown.
type Readings struct {
	Volume, Brightness, Battery *int // per cent
	Charging                    *bool
	Signal                      *string
	Temperature                 *float64 // degrees Celsius
	HeadYaw, HeadPitch          *float64 // degrees
}

// ParseStatus sets what the firmware answers to self.get_device_status.
func (r *Readings) ParseStatus(text string) error {
	s, err := device.ParseStatus(text)
	if err != nil {
		return err
	}
	r.Volume, r.Brightness, r.Battery, r.Charging, r.Temperature = s.Volume, s.Brightness, s.Battery, s.Charging, s.Temperature
	r.Signal = known(s.Signal)
	return nil
}

// ParseAngles sets the angles of a head, if text holds them.
func (r *Readings) ParseAngles(text string) {
	var h struct{ Yaw, Pitch *float64 }
	if json.Unmarshal([]byte(text), &h) == nil {
		r.HeadYaw, r.HeadPitch = h.Yaw, h.Pitch
	}
}

// update sets the values that an event has.
func (r *Readings) update(e event.RobotStatus) {
	r.Volume, r.Brightness, r.Battery = cmp.Or(e.Volume, r.Volume), cmp.Or(e.Brightness, r.Brightness), cmp.Or(e.Battery, r.Battery)
	r.Charging, r.Signal = cmp.Or(e.Charging, r.Charging), cmp.Or(known(e.Signal), r.Signal)
}
