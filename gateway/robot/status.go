package robot

import (
	"context"
	"encoding/json"
	"strings"

	"perch/device"
	"perch/event"
)

// statusTool ends the name of the tool by which every build tells its condition.
const statusTool = "get_device_status"

// call runs one of the robot's tools.
func (s *session) call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	answer, err := s.toolbox.Call(ctx, tool, arguments)
	if err == nil {
		s.tellStatus(tool, answer.Text)
	}
	return answer, err
}

// tellStatus publishes what a robot has just answered of its own condition,
// whoever asked: nothing else tells its battery.
func (s *session) tellStatus(tool, answer string) {
	if strings.HasSuffix(tool, statusTool) {
		if status, ok := parseStatus(answer); ok {
			s.publish(status)
		}
	}
}

// parseStatus reads audio_speaker{volume}, screen{brightness},
// battery{level,charging} and network{signal}, each only where the board has it.
func parseStatus(answer string) (event.RobotStatus, bool) {
	var told struct {
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
	}
	if json.Unmarshal([]byte(answer), &told) != nil {
		return event.RobotStatus{}, false
	}
	return event.RobotStatus{
		Volume: percent(told.Speaker.Volume), Brightness: percent(told.Screen.Brightness),
		Battery: percent(told.Battery.Level), Charging: told.Battery.Charging, Signal: clip(told.Network.Signal, 32),
	}, true
}

// percent is a whole number from 0 to 100, or unknown.
func percent(f *float64) *int {
	if f == nil || *f < 0 || *f > 100 {
		return nil
	}
	n := int(*f)
	return &n
}
