package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"perch/agent"
	"perch/device"
)

// The tools of the Stack-chan firmware for reminders on the robot itself. They are
// matched by the end of their names, because other builds use other prefixes.
const (
	createTool = "create_reminder" // {duration_seconds 1..86400, message, repeat} -> its id
	stopTool   = "stop_reminder"   // {id} -> whether there was one
)

// errOnRobot is wrapped if a reminder on the robot cannot be stopped.
var errOnRobot = errors.New("the robot's own reminder cannot be stopped")

// create sets a reminder on the robot, if it has the tool. If that fails, the
// appliance rings instead.
func create(ctx context.Context, body agent.Body, t agent.Timer) (id string, onRobot bool) {
	const duration = "duration_seconds"
	tool, found := robotTool(body, createTool, duration)
	if !found {
		return "", false
	}
	seconds := int(math.Ceil(t.Due.Sub(t.Set).Seconds()))
	if seconds != tool.Schema.Properties[duration].Clamp(seconds) {
		return "", false
	}
	arguments := map[string]any{duration: seconds}
	for name, value := range map[string]any{"message": t.Text, "repeat": false} {
		if _, has := tool.Schema.Properties[name]; has {
			arguments[name] = value
		}
	}
	result, err := body.Call(ctx, tool.Name, arguments)
	if err != nil || strings.TrimSpace(result.Text) == "false" {
		return "", false
	}
	return reminderID(result.Text), true
}

// reminderID reads the id from the result of create_reminder: a number, or an
// object that holds one.
func reminderID(text string) string {
	text = strings.TrimSpace(text)
	if _, err := strconv.Atoi(text); err == nil {
		return text
	}
	var object struct{ ID *int }
	if err := json.Unmarshal([]byte(text), &object); err != nil || object.ID == nil {
		return ""
	}
	return strconv.Itoa(*object.ID)
}

// stop removes a reminder from the robot. A robot that does not know the reminder
// has restarted since and will not ring.
func stop(ctx context.Context, body agent.Body, t agent.Timer) error {
	if !t.OnRobot {
		return nil
	}
	tool, found := robotTool(body, stopTool, "id")
	id, err := strconv.Atoi(t.RobotID)
	if !found || err != nil {
		return fmt.Errorf("%w: it lists no tool to do so, or did not say which it is", errOnRobot)
	}
	if _, err := body.Call(ctx, tool.Name, map[string]any{"id": id}); err != nil {
		return fmt.Errorf("%w: %w", errOnRobot, err)
	}
	return nil
}

// robotTool finds a tool by the end of its name and by an integer argument that it
// must have.
func robotTool(body agent.Body, name, argument string) (device.Tool, bool) {
	if body == nil {
		return device.Tool{}, false
	}
	for _, t := range body.Tools() {
		if a, has := t.Schema.Properties[argument]; has && a.Type == "integer" && strings.HasSuffix(t.Name, name) {
			return t, true
		}
	}
	return device.Tool{}, false
}
