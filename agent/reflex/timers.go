package reflex

import (
	"context"
	"errors"
	"slices"

	"perch/agent"
)

// Names of the lists of time units, and of the slots for them. The value of an entry is the
// length of the unit in seconds.
const (
	singularUnitSlot = "unit"
	pluralUnitsSlot  = "units"
)

// withTimers returns an action that runs act. If the brain has no timers or the turn is
// untrusted, the action answers with the phrase "no_tool" instead. Untrusted turns set no timers,
// because a timer disturbs everybody in the home.
func withTimers(act action) action {
	return func(ctx context.Context, c *command) (string, error) {
		if c.brain.timers == nil || c.turn.Untrusted {
			return c.book.Phrase("no_tool"), nil
		}
		return act(ctx, c)
	}
}

// setTimer returns the action that sets a timer or reminder. The action answers only after
// the timer has been stored on disk or on the robot.
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

// robot returns the robot of the turn, or nil if there is none. Its tool calls are reported.
func (c *command) robot() agent.Body {
	if c.turn.Body == nil {
		return nil
	}
	return reportingBody{c.turn.Body, c}
}

// timeLeft answers with the time until the next timer or, without timers, until the next
// reminder.
func timeLeft(_ context.Context, c *command) (string, error) {
	pending := c.brain.timers.Pending(c.turn.Robot, c.turn.Now)
	if len(pending) == 0 {
		return c.intent.Missing, nil
	}
	next := pending[max(slices.IndexFunc(pending, func(t agent.Timer) bool { return !t.Reminder }), 0)]
	c.left = c.book.words().Duration(next.Due.Sub(c.turn.Now))
	return c.intent.Answer, nil
}

// cancelTimers returns the action that cancels all timers, or all reminders, of the robot. They
// are separate, because cancelling an egg timer must not cancel a reminder to take medicine.
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
