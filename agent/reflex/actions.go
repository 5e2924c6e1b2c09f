package reflex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"perch/agent"
	"perch/device"
)

// action carries out a command and returns the answer, which may contain placeholders. If
// the robot lacks an ability, the answer says so. If an action returns an error, the turn ends
// without an answer of this brain.
type action func(context.Context, *command) (string, error)

// actions returns the actions; the key is the value of "action" in an intent.
func actions() map[string]action {
	return map[string]action{
		"": func(_ context.Context, c *command) (string, error) { return c.intent.Answer, nil },

		"volume":     setLevel("volume"),
		"brightness": setLevel("brightness"),
		"look":       withTool(device.FindHead, turnHead),
		"nod":        withTool(device.FindHead, moves("pitch", 45, 15, 45, 20)),
		"shake":      withTool(device.FindHead, moves("yaw", -25, 25, -25, 0)),
		"lights":     withTool(device.FindLights, setLights),
		"reboot":     reboot,
		"remember":   remember,
		"recall":     recall,
		skillAction:  performSkill,

		"music_play":      withMusic(playMusic),
		"music_stop":      withMusic(stopMusic),
		"photo":           withTool(photoTool, takePhoto),
		"timer":           withTimers(setTimer(false)),
		"reminder":        withTimers(setTimer(true)),
		"timer_left":      withTimers(timeLeft),
		"timer_cancel":    withTimers(cancelTimers(isTimer)),
		"reminder_cancel": withTimers(cancelTimers(isReminder)),
		"alarm":           withTimers(setAlarm),
		"alarm_list":      withTimers(listAlarms),
		"alarm_cancel":    withTimers(cancelAlarms),
	}
}

// withTool returns an action that calls act with the tool that find returns. If the robot
// lacks the tool or act fails, the answer is a phrase that says so.
func withTool(find func([]device.Tool) (device.Control, bool), act func(context.Context, *command, device.Control) error) action {
	return func(ctx context.Context, c *command) (string, error) {
		var tool device.Control
		ok := false
		if c.turn.Body != nil {
			tool, ok = find(c.turn.Body.Tools())
		}
		if !ok {
			return c.book.Phrase("no_tool"), nil
		}
		if err := act(ctx, c, tool); err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return c.book.Phrase("tool_failed"), nil
		}
		return c.intent.Answer, nil
	}
}

// setLevel returns the action that sets a level from 0 to 100: "volume" or "brightness". The
// command's value is the new level or, with a sign, a step from the current level.
func setLevel(level string) action {
	find := func(tools []device.Tool) (device.Control, bool) {
		return device.FindControl(tools, "set "+level, []string{level, "level", "value"})
	}
	return withTool(find, func(ctx context.Context, c *command, t device.Control) error {
		value := c.value()
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%q is not a level", value)
		}
		if strings.HasPrefix(value, "+") || strings.HasPrefix(value, "-") {
			n += currentLevel(ctx, c, t)
		}
		_, err = c.call(ctx, t.Name, map[string]any{t.Arguments[0]: clamp(t, 0, min(max(n, 0), 100))})
		return err
	})
}

// currentLevel returns the number that some part of the robot's status has under the name of t's argument, and
// otherwise 50.
func currentLevel(ctx context.Context, c *command, t device.Control) int {
	var status map[string]map[string]any
	if tool, ok := device.FindControl(c.turn.Body.Tools(), "get device status"); ok {
		if text, err := c.call(ctx, tool.Name, nil); err == nil {
			_ = json.Unmarshal([]byte(text), &status) // after an error, status has the parts that could be decoded
		}
	}
	for _, part := range status {
		if n, ok := part[t.Arguments[0]].(float64); ok {
			return int(n)
		}
	}
	return 50
}

// turnHead turns the head to the yaw and pitch in the command's value, in degrees. A pitch of
// 0 leaves the head's pitch as it is.
func turnHead(ctx context.Context, c *command, t device.Control) error {
	n, err := parseNumbers(c.value())
	if err != nil || len(n) != 2 {
		return fmt.Errorf("%q is not a direction", c.value())
	}
	arguments := map[string]any{t.Arguments[0]: clamp(t, 0, n[0])}
	if pitch := t.Arguments[1]; pitch != "" && n[1] != 0 {
		arguments[pitch] = clamp(t, 1, n[1])
	}
	_, err = c.call(ctx, t.Name, arguments)
	return err
}

// moves returns a function that turns the head to these angles on an axis, one after the
// other, in degrees.
func moves(axis string, angles ...int) func(context.Context, *command, device.Control) error {
	const pause = 350 * time.Millisecond // a servo turns 40 degrees in about 300 ms
	return func(ctx context.Context, c *command, t device.Control) error {
		index := 0
		if axis == "pitch" {
			index = 1
		}
		if t.Arguments[index] == "" {
			return errors.New("this head does not turn that way")
		}
		for i, angle := range angles {
			if i > 0 {
				if err := wait(ctx, pause); err != nil {
					return err
				}
			}
			arguments := map[string]any{t.Arguments[index]: clamp(t, index, angle)}
			if speed, ok := t.Schema.Properties["speed"]; ok {
				arguments["speed"] = speed.Clamp(400)
			}
			if _, err := c.call(ctx, t.Name, arguments); err != nil {
				return err
			}
		}
		return nil
	}
}

// wait waits for d, or returns the error of ctx if it ends earlier.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// setLights sets the lights to the red, green and blue values in the command's value.
func setLights(ctx context.Context, c *command, t device.Control) error {
	rgb, err := parseNumbers(c.value())
	if err != nil || len(rgb) != 3 {
		return fmt.Errorf("%q is not a colour", c.value())
	}
	arguments := map[string]any{}
	for i, n := range rgb {
		arguments[t.Arguments[i]] = clamp(t, i, n)
	}
	_, err = c.call(ctx, t.Name, arguments)
	return err
}

func reboot(ctx context.Context, c *command) (string, error) {
	if c.turn.Body == nil {
		return c.book.Phrase("no_tool"), nil
	}
	return c.intent.Answer, c.turn.Body.Reboot(ctx)
}

// remember stores a fact before it answers: durably, unless a stranger speaks.
func remember(_ context.Context, c *command) (string, error) {
	if c.body = c.fill(c.intent.Body); c.body != "" {
		c.body = sentenceCase(c.body)
	}
	e := agent.Entry{Key: c.key(), Name: c.key(), Type: c.intent.Type, Body: c.body,
		Robot: c.turn.Robot, Source: c.brain.Name()}
	if _, err := c.brain.memory.Of(c.turn).Remember(e, c.turn.Now); err != nil {
		return "", err
	}
	return c.intent.Answer, nil
}

// key returns the key of the memory entry that the command stores or recalls.
func (c *command) key() string { return strings.ToLower(c.fill(c.intent.Key)) }

// recall returns the intent's answer if a fact with the command's key is remembered, and
// otherwise the intent's Missing.
func recall(_ context.Context, c *command) (string, error) {
	e, ok := c.brain.memory.Of(c.turn).Recall(c.key(), c.turn.Now)
	if err := c.brain.memory.Of(c.turn).Err(); !ok && err != nil {
		return "", err
	}
	if !ok {
		return c.intent.Missing, nil
	}
	c.body = e.Body
	return c.intent.Answer, nil
}

// sentenceCase returns s with its first letter capitalized. s must not be empty.
func sentenceCase(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToTitle(first)) + s[size:]
}
