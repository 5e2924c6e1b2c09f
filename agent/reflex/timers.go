package reflex

import (
	"context"
	"errors"
	"slices"

	"perch/agent"
)

// The lists of time units, in the singular and in the plural. An entry's value is its
// length in seconds.
const (
	unitList  = "unit"
	unitsList = "units"
)

// withTimers wraps an action on timers. It answers without it if there are no timers, or
// if the turn is untrusted: a timer rings for the whole household.
func withTimers(act action) action {
	return func(ctx context.Context, c *command) (string, error) {
		if c.brain.timers == nil || c.turn.Untrusted {
			return c.book.Phrase("no_tool"), nil
		}
		return act(ctx, c)
	}
}

// setTimer returns the action that sets a timer or reminder. It answers only after that
// is stored on the disk or on the robot.
func setTimer(reminder bool) action {
	return func(ctx context.Context, c *command) (string, error) {
		b := c.book
		length := c.length()
		if length <= 0 {
			return b.Phrase("bad_timer"), nil
		}
		c.left, c.due = b.words().Duration(length), c.turn.Now.Add(length)
		t := agent.Timer{Robot: c.turn.Robot, Text: c.fill(c.intent.Body), Length: length, Reminder: reminder}
		_, err := c.brain.timers.Set(ctx, c.robot(), t, c.turn.Now)
		switch {
		case errors.Is(err, agent.ErrTooManyTimers):
			return b.Phrase("timers_full"), nil
		case errors.Is(err, agent.ErrTimer):
			return b.Phrase("bad_timer"), nil
		}
		return c.intent.Answer, err
	}
}

// robot is the turn's robot, with every call reported; nil if no robot takes part.
func (c *command) robot() agent.Body {
	if c.turn.Body == nil {
		return nil
	}
	return reportingBody{c.turn.Body, c}
}

// timeLeft answers with the remaining time of the next timer, or of the next reminder if
// there is no timer.
func timeLeft(_ context.Context, c *command) (string, error) {
	pending := c.brain.timers.Pending(c.turn.Robot, c.turn.Now)
	if len(pending) == 0 {
		return c.intent.Missing, nil
	}
	next := pending[max(slices.IndexFunc(pending, func(t agent.Timer) bool { return !t.Reminder }), 0)]
	c.left = c.book.words().Duration(next.Due.Sub(c.turn.Now))
	return c.intent.Answer, nil
}

// cancelTimers returns the action that cancels the timers, or the reminders: cancelling
// an egg timer must not cancel the reminder to take a medicine.
func cancelTimers(reminders bool) action {
	return func(ctx context.Context, c *command) (string, error) {
		var ids []string
		for _, t := range c.brain.timers.Pending(c.turn.Robot, c.turn.Now) {
			if t.Reminder == reminders {
				ids = append(ids, t.ID)
			}
		}
		if len(ids) == 0 {
			return c.intent.Missing, nil
		}
		_, err := c.brain.timers.Cancel(ctx, c.robot(), c.turn.Robot, ids...)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			return c.book.Phrase("tool_failed"), nil
		}
		return c.intent.Answer, nil
	}
}
