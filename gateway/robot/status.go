package robot

import (
	"context"
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
		s.publishStatus(tool, answer.Text)
	}
	return answer, err
}

// tellStatus publishes what a robot has just answered of its own condition,
// whoever asked: nothing else tells its battery.
func (s *session) publishStatus(tool, answer string) {
	if strings.HasSuffix(tool, statusTool) {
		if status, ok := parseStatus(answer); ok {
			s.publish(status)
		}
	}
}

// parseStatus makes an event of it.
func parseStatus(answer string) (event.RobotStatus, bool) {
	told, err := device.ParseStatus(answer)
	return event.RobotStatus{Volume: told.Volume, Brightness: told.Brightness, Battery: told.Battery, Charging: told.Charging, Signal: told.Signal}, err == nil
}
