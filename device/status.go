package device

import (
	"encoding/json"
	"fmt"
)

// Status is the state that a robot reports. Fields that its board does not support are nil or empty.
type Status struct {
	Volume, Brightness, Battery *int // per cent
	Charging                    *bool
	Signal                      string   // Wi-Fi signal, a word of the firmware
	Temperature                 *float64 // chip temperature in degrees Celsius
}

// maxSignal is the maximum length of Signal, in bytes.
const maxSignal = 32

// ParseStatus parses the result of the firmware's tool self.get_device_status: audio_speaker{volume},
// screen{brightness}, battery{level,charging}, network{signal}, chip{temperature}. It ignores
// percentages that are out of range, and a signal of more than maxSignal bytes.
func ParseStatus(result string) (Status, error) {
	var reported struct {
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
	if err := json.Unmarshal([]byte(result), &reported); err != nil {
		return Status{}, fmt.Errorf("parse a robot's status: %w", err)
	}
	s := Status{
		Volume: percent(reported.Speaker.Volume), Brightness: percent(reported.Screen.Brightness), Battery: percent(reported.Battery.Level),
		Charging: reported.Battery.Charging, Temperature: reported.Chip.Temperature,
	}
	if len(reported.Network.Signal) <= maxSignal {
		s.Signal = reported.Network.Signal
	}
	return s, nil
}

// percent returns *f as an integer, or nil if f is nil or *f is not between 0 and 100.
func percent(f *float64) *int {
	if f == nil || *f < 0 || *f > 100 {
		return nil
	}
	n := int(*f)
	return &n
}
