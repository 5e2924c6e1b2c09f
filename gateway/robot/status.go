package robot

import (
	"context"
	"strings"

	"perch/device"
	"perch/event"
)

// statusTool ends the name of the tool by which every build reports its condition.
const statusTool = "get_device_status"

// call runs one of the robot's tools. It publishes the condition that a robot
// answers to any caller: its battery is reported nowhere else.
func (s *session) call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	answer, err := s.toolbox.Call(ctx, tool, arguments)
	if err == nil && strings.HasSuffix(tool, statusTool) {
		if status, ok := parseStatus(answer.Text); ok {
			s.publish(status)
		}
	}
	return answer, err
}

// parseStatus makes an event of it.
func parseStatus(answer string) (event.RobotStatus, bool) {
	status, err := device.ParseStatus(answer)
	return event.RobotStatus{
		Volume: status.Volume, Brightness: status.Brightness, Battery: status.Battery, Charging: status.Charging, Signal: status.Signal,
	}, err == nil
}
