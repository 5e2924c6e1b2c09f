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
)

// action carries out a command and returns the answer. An error ends the turn. If
// a robot lacks an ability, the answer says so.
type action func(context.Context, *command) (string, error)

// actions returns the actions by their names in intents. The empty name only answers.
func actions() map[string]action {
	return map[string]action{
		"": func(_ context.Context, c *command) (string, error) { return c.intent.Answer, nil },

		"volume":     level(levelTool("volume")),
		"brightness": level(levelTool("brightness")),
		"look":       withTool(headTool, turnHead),
		"nod":        withTool(headTool, moves("pitch", 45, 15, 45, 20)),
		"shake":      withTool(headTool, moves("yaw", -25, 25, -25, 0)),
		"lights":     withTool(lightTool, lights),
		"reboot":     reboot,
		"remember":   remember,
		"recall":     recall,
		skillAction:  skill,

		"photo":           withTool(photoTool, photo),
		"timer":           withTimers(setTimer(false)),
		"reminder":        withTimers(setTimer(true)),
		"timer_left":      withTimers(timeLeft),
		"timer_cancel":    withTimers(cancelTimers(false)),
		"reminder_cancel": withTimers(cancelTimers(true)),
	}
}

// withTool wraps an action that needs a tool. It answers if the robot lacks the tool or
// the tool fails.
func withTool(find toolFinder, act func(context.Context, *command, bodyTool) error) action {
	return func(ctx context.Context, c *command) (string, error) {
		var tool bodyTool
		found := false
		if c.turn.Body != nil {
			tool, found = find(c.turn.Body.Tools())
		}
		if !found {
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

// level returns the action that sets a value from 0 to 100: to a number, or by a step
// up or down from the robot's present value.
func level(find toolFinder) action {
	return withTool(find, func(ctx context.Context, c *command, t bodyTool) error {
		value := c.value()
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%q is no level", value)
		}
		if strings.HasPrefix(value, "+") || strings.HasPrefix(value, "-") {
			n += currentLevel(ctx, c, t)
		}
		_, err = c.call(ctx, t.Name, map[string]any{t.argument[0]: t.clamp(0, min(max(n, 0), 100))})
		return err
	})
}

// currentLevel returns the robot's present value, or the middle of the range if the
// robot does not answer.
func currentLevel(ctx context.Context, c *command, t bodyTool) int {
	var status map[string]map[string]any
	if tool, found := findIntTool(c.turn.Body.Tools(), []string{"get device status"}); found {
		if text, err := c.call(ctx, tool.Name, nil); err == nil {
			_ = json.Unmarshal([]byte(text), &status) // without a status it is the middle
		}
	}
	for _, part := range status {
		if n, ok := part[t.argument[0]].(float64); ok {
			return int(n)
		}
	}
	return 50
}

func turnHead(ctx context.Context, c *command, t bodyTool) error {
	n, err := numbers(c.value())
	if err != nil || len(n) != 2 {
		return fmt.Errorf("%q is no direction", c.value())
	}
	arguments := map[string]any{t.argument[0]: t.clamp(0, n[0])}
	if pitch := t.argument[1]; pitch != "" && n[1] != 0 {
		arguments[pitch] = t.clamp(1, n[1])
	}
	_, err = c.call(ctx, t.Name, arguments)
	return err
}

// moves returns the action for a gesture: the head turns to one angle after the other.
func moves(axis string, angles ...int) func(context.Context, *command, bodyTool) error {
	const each = 350 * time.Millisecond // a servo turns 40 degrees in about 300 ms
	return func(ctx context.Context, c *command, t bodyTool) error {
		index := 0
		if axis == "pitch" {
			index = 1
		}
		if t.argument[index] == "" {
			return errors.New("this head does not turn that way")
		}
		for i, angle := range angles {
			if i > 0 {
				if err := wait(ctx, each); err != nil {
					return err
				}
			}
			arguments := map[string]any{t.argument[index]: t.clamp(index, angle)}
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

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func lights(ctx context.Context, c *command, t bodyTool) error {
	rgb, err := numbers(c.value())
	if err != nil || len(rgb) != 3 {
		return fmt.Errorf("%q is no colour", c.value())
	}
	arguments := map[string]any{}
	for i, n := range rgb {
		arguments[t.argument[i]] = t.clamp(i, n)
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

// remember answers only after the fact is on the disk.
func remember(_ context.Context, c *command) (string, error) {
	c.body = sentenceCase(c.fill(c.intent.Body))
	e := agent.Entry{Key: c.key(), Name: c.key(), Type: c.intent.Type, Body: c.body,
		Robot: c.turn.Robot, Source: c.brain.Name()}
	if _, err := c.brain.memory.Of(c.turn).Remember(e, c.turn.Now); err != nil {
		return "", err
	}
	return c.intent.Answer, nil
}

// key returns the key of the memory that an intent stores or recalls.
func (c *command) key() string { return strings.ToLower(c.fill(c.intent.Key)) }

func recall(_ context.Context, c *command) (string, error) {
	e, found := c.brain.memory.Of(c.turn).Recall(c.key(), c.turn.Now)
	if err := c.brain.memory.Of(c.turn).Err(); !found && err != nil {
		return "", err
	}
	if !found {
		return c.intent.Missing, nil
	}
	c.body = e.Body
	return c.intent.Answer, nil
}

func sentenceCase(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToTitle(first)) + s[size:]
}
