package reflex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"perch/agent"
)

// action does what an utterance asks for and returns the answer. An error
// ends the turn; that a robot cannot do a thing is an answer.
type action func(context.Context, *deed) (string, error)

// actions are those an intent may name; none is to answer only.
func actions() map[string]action {
	return map[string]action{
		"": func(_ context.Context, d *deed) (string, error) { return d.intent.answer, nil },

		"volume":     level(volumeTool),
		"brightness": level(brightnessTool),
		"look":       withTool(headTool, look),
		"nod":        withTool(headTool, moves("pitch", 45, 15, 45, 20)),
		"shake":      withTool(headTool, moves("yaw", -25, 25, -25, 0)),
		"lights":     withTool(lightTool, lights),
		"reboot":     reboot,
		"remember":   remember,
		"recall":     recall,

		"photo":           withTool(photoTool, photo),
		"timer":           withTimers(setTimer(false)),
		"reminder":        withTimers(setTimer(true)),
		"timer_left":      withTimers(timeLeft),
		"timer_cancel":    withTimers(cancelTimers(false)),
		"reminder_cancel": withTimers(cancelTimers(true)),
	}
}

// withTool finds the tool an action needs and answers for a robot that has
// none, or on which it fails.
func withTool(find toolFinder, act func(context.Context, *deed, bodyTool) error) action {
	return func(ctx context.Context, d *deed) (string, error) {
		if d.turn.Body == nil {
			return d.brain.book.phrases["no_tool"], nil
		}
		tool, ok := find(d.turn.Body.Tools())
		if !ok {
			return d.brain.book.phrases["no_tool"], nil
		}
		if err := act(ctx, d, tool); err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return d.brain.book.phrases["tool_failed"], nil
		}
		return d.intent.answer, nil
	}
}

// level sets something from 0 to 100: to a number said, or by a step up or
// down from where the robot says it is.
func level(find toolFinder) action {
	return withTool(find, func(ctx context.Context, d *deed, t bodyTool) error {
		value := d.value()
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%q is no level", value)
		}
		if strings.HasPrefix(value, "+") || strings.HasPrefix(value, "-") {
			n += currentLevel(ctx, d, t)
		}
		_, err = d.call(ctx, t.Name, map[string]any{t.argument[0]: t.clamp(0, min(max(n, 0), 100))})
		return err
	})
}

// currentLevel asks the robot; one that does not say is taken to be half way.
func currentLevel(ctx context.Context, d *deed, t bodyTool) int {
	const halfWay = 50
	tool, ok := statusTool(d.turn.Body.Tools())
	if !ok {
		return halfWay
	}
	text, err := d.call(ctx, tool.Name, nil)
	if err != nil {
		return halfWay
	}
	var status map[string]map[string]any
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return halfWay
	}
	for _, part := range status {
		if n, ok := part[t.argument[0]].(float64); ok {
			return int(n)
		}
	}
	return halfWay
}

func look(ctx context.Context, d *deed, t bodyTool) error {
	n, err := numbers(d.value())
	if err != nil || len(n) != 2 {
		return fmt.Errorf("%q is no direction", d.value())
	}
	arguments := map[string]any{t.argument[0]: t.clamp(0, n[0])}
	if pitch := t.argument[1]; pitch != "" && n[1] != 0 {
		arguments[pitch] = t.clamp(1, n[1])
	}
	_, err = d.call(ctx, t.Name, arguments)
	return err
}

// moves is a gesture: the head goes to one angle after the other.
func moves(axis string, angles ...int) func(context.Context, *deed, bodyTool) error {
	const each = 350 * time.Millisecond // a servo turns 40 degrees in about 300 ms
	return func(ctx context.Context, d *deed, t bodyTool) error {
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
			if _, err := d.call(ctx, t.Name, arguments); err != nil {
				return err
			}
		}
		return nil
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func lights(ctx context.Context, d *deed, t bodyTool) error {
	rgb, err := numbers(d.value())
	if err != nil || len(rgb) != 3 {
		return fmt.Errorf("%q is no colour", d.value())
	}
	arguments := map[string]any{}
	for i, n := range rgb {
		arguments[t.argument[i]] = t.clamp(i, n)
	}
	_, err = d.call(ctx, t.Name, arguments)
	return err
}

func reboot(ctx context.Context, d *deed) (string, error) {
	if d.turn.Body == nil {
		return d.brain.book.phrases["no_tool"], nil
	}
	return d.intent.answer, d.turn.Body.Reboot(ctx)
}

// remember answers only when what was said is safe on disk.
func remember(_ context.Context, d *deed) (string, error) {
	d.body = sentenceCase(d.fill(d.intent.body))
	e := agent.Entry{Key: d.fill(d.intent.key), Name: d.fill(d.intent.key), Type: d.intent.kind, Body: d.body,
		Robot: d.turn.Robot, Source: d.brain.Name()}
	if _, err := d.brain.memory.Of(d.turn).Remember(e, d.turn.Now); err != nil {
		return "", err
	}
	return d.intent.answer, nil
}

func recall(_ context.Context, d *deed) (string, error) {
	e, found := d.brain.memory.Of(d.turn).Recall(d.fill(d.intent.key), d.turn.Now)
	if err := d.brain.memory.Of(d.turn).Err(); !found && err != nil {
		return "", err
	}
	if !found {
		return d.intent.missing, nil
	}
	d.body = e.Body
	return d.intent.answer, nil
}

func sentenceCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
