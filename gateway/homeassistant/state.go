package homeassistant

import (
	"encoding/json"
	"time"

	"perch/agent"
	"perch/event"
)

// document is a robot's state as it is published. Every key is always there,
// null where nothing is known.
type document struct {
	AgentState  agent.Shown `json:"agent_state"`
	Emotion     *string     `json:"emotion"`
	SessionID   *string     `json:"session_id"`
	Connected   bool        `json:"connected"`
	Face        *bool       `json:"face"`
	Identity    *string     `json:"identity"`
	Volume      *int        `json:"volume"`
	Brightness  *int        `json:"brightness"`
	Mute        bool        `json:"mute"`
	HeadYaw     *float64    `json:"head_yaw"`
	HeadPitch   *float64    `json:"head_pitch"`
	LED         *light      `json:"led"`
	Battery     *int        `json:"battery"`
	Charging    *bool       `json:"charging"`
	Signal      *string     `json:"signal"`
	Temperature *float64    `json:"temperature"`
	Booted      *time.Time  `json:"booted"`
	Firmware    *string     `json:"firmware"`
	LastHeard   *string     `json:"last_heard"`
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

// readings are what a robot tells of itself when it is asked; nil is unknown.
type readings struct {
	Volume, Brightness, Battery *int
	Charging                    *bool
	Signal                      *string
	Temperature                 *float64 // degrees Celsius
	HeadYaw, HeadPitch          *float64 // degrees
}

// document renders the view. Of the agent's state it holds what was shown
// last, so that no document is ahead of the order in which they are told.
func (v *view) document() document {
	d := document{
		AgentState: v.shown, Emotion: known(v.state.Emotion.Name), Connected: v.state.Online,
		Face: v.face, Identity: v.identity, Volume: v.readings.Volume, Brightness: v.readings.Brightness, Mute: v.mute,
		HeadYaw: v.readings.HeadYaw, HeadPitch: v.readings.HeadPitch, LED: v.led, Battery: v.readings.Battery,
		Charging: v.readings.Charging, Signal: v.readings.Signal, Temperature: v.readings.Temperature,
		Firmware: known(v.robot.Firmware), LastHeard: v.lastHeard,
	}
	if v.state.Online {
		d.SessionID = known(v.state.Session)
	}
	if !v.robot.Booted.IsZero() {
		booted := v.robot.Booted.UTC().Truncate(time.Second)
		d.Booted = &booted
	}
	return d
}

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// parseStatus reads what the firmware answers to self.get_device_status:
// audio_speaker{volume}, screen{brightness}, battery{level,charging},
// network{signal}, chip{temperature}, each only where the board has it.
func parseStatus(text string, r *readings) error {
	var s struct {
		Speaker struct {
			Volume *float64 `json:"volume"`
		} `json:"audio_speaker"`
		Screen struct {
			Brightness *float64 `json:"brightness"`
		} `json:"screen"`
		Battery struct {
			Level    *float64 `json:"level"`
			Charging *bool    `json:"charging"`
		} `json:"battery"`
		Network struct {
			Signal string `json:"signal"`
		} `json:"network"`
		Chip struct {
			Temperature *float64 `json:"temperature"`
		} `json:"chip"`
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	r.Volume, r.Brightness, r.Battery = percent(s.Speaker.Volume), percent(s.Screen.Brightness), percent(s.Battery.Level)
	r.Charging, r.Temperature = s.Battery.Charging, s.Chip.Temperature
	if len(s.Network.Signal) <= 32 {
		r.Signal = known(s.Network.Signal)
	}
	return nil
}

// percent is a whole number from 0 to 100, or unknown.
func percent(f *float64) *int {
	if f == nil || *f < 0 || *f > 100 {
		return nil
	}
	n := int(*f)
	return &n
}

// parseHead reads where a head points.
func parseHead(text string, r *readings) {
	var h struct{ Yaw, Pitch *float64 }
	if json.Unmarshal([]byte(text), &h) == nil {
		r.HeadYaw, r.HeadPitch = h.Yaw, h.Pitch
	}
}

// reported brings in what an event tells; what it does not know stays.
func (r *readings) reported(e event.RobotStatus) {
	r.Volume, r.Brightness, r.Battery = newer(r.Volume, e.Volume), newer(r.Brightness, e.Brightness), newer(r.Battery, e.Battery)
	r.Charging, r.Signal = newer(r.Charging, e.Charging), newer(r.Signal, known(e.Signal))
}

func newer[T any](old, told *T) *T {
	if told == nil {
		return old
	}
	return told
}
