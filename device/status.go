package device

import (
	"encoding/json"
	"fmt"
)

// Status is what a robot reports about itself. What its board lacks is nil or empty.
type Status struct {
	Volume, Brightness, Battery *int // per cent
	Charging                    *bool
	Signal                      string   // of Wi-Fi, in the firmware's word
	Temperature                 *float64 // of the chip, in degrees Celsius
}

// mostSignal is the maximum length of Signal, in bytes.
const mostSignal = 32

// ParseStatus parses the answer of the firmware's self.get_device_status:
// audio_speaker{volume}, screen{brightness}, battery{level,charging},
// network{signal}, chip{temperature}. A percentage out of range is left nil.
func ParseStatus(answer string) (Status, error) {
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
	if err := json.Unmarshal([]byte(answer), &reported); err != nil {
		return Status{}, fmt.Errorf("read a robot's condition: %w", err)
	}
	s := Status{
		Volume: percent(reported.Speaker.Volume), Brightness: percent(reported.Screen.Brightness), Battery: percent(reported.Battery.Level),
		Charging: reported.Battery.Charging, Temperature: reported.Chip.Temperature,
	}
	if len(reported.Network.Signal) <= mostSignal {
		s.Signal = reported.Network.Signal
	}
	return s, nil
}

// percent returns a whole number from 0 to 100, or nil.
func percent(f *float64) *int {
	if f == nil || *f < 0 || *f > 100 {
		return nil
	}
	n := int(*f)
	return &n
}
