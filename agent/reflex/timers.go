package reflex

import (
	"context"
	"errors"
	"slices"
	"strings"

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
		return c.set(ctx, agent.Timer{Length: length, Reminder: reminder})
	}
}

// setAlarm sets an alarm, which repeats if the sentence has the slot of days.
func setAlarm(ctx context.Context, c *command) (string, error) {
	t := c.until()
	if t.Due.IsZero() {
		return c.book.Phrase("bad_alarm"), nil
	}
	c.describe(t)
	return c.set(ctx, t)
}

// set sets a timer whose text is the body of the intent.
func (c *command) set(ctx context.Context, t agent.Timer) (string, error) {
	t.Robot, t.Text = c.turn.Robot, c.fill(c.intent.Body)
	_, err := c.brain.timers.Set(ctx, c.robot(), t, c.turn.Now)
	switch {
	case errors.Is(err, agent.ErrTooManyTimers):
		return c.book.Phrase("timers_full"), nil
	case errors.Is(err, agent.ErrTimer):
		return c.book.Phrase("bad_timer"), nil
	}
	return c.intent.Answer, err
}

// describe sets the results of the action to the time of day and the days of an alarm.
func (c *command) describe(alarm agent.Timer) {
	c.due, _ = agent.ParseClock(alarm.At) // valid: clocks has formatted it, or Set has checked it
	c.days = c.book.spokenDays(alarm.Days)
}

// spokenDays returns the words for a set of days: an entry of the list for the slot of days, or
// those for each of the days.
func (b *Book) spokenDays(days agent.Days) string {
	var each []string
	for _, it := range b.lists[daysSlot].items {
		switch of := parseDays(it.value); {
		case of == days:
			return it.spoken
		case len(it.value) == 1 && of&days != 0 && !slices.Contains(each, it.spoken):
			each = append(each, it.spoken)
		}
	}
	return strings.Join(each, b.words().Message("skill.between"))
}

// listAlarms answers with the alarms of the robot. The body of the intent describes each.
func listAlarms(_ context.Context, c *command) (string, error) {
	var list []string
	for _, t := range c.brain.timers.Pending(c.turn.Robot, c.turn.Now) {
		if t.At != "" {
			c.describe(t)
			list = append(list, strings.TrimSpace(c.fill(c.intent.Body)))
		}
	}
	if len(list) == 0 {
		return c.intent.Missing, nil
	}
	c.body = strings.Join(list, c.book.words().Message("skill.between"))
	return c.intent.Answer, nil
}

// robot returns the robot of the turn, or nil if there is none. Its tool calls are reported.
func (c *command) robot() agent.Body {
	if c.turn.Body == nil {
		return nil
	}
	return reportingBody{c.turn.Body, c}
}

// timeLeft answers with the time until the next timer or, without timers, until the next
// reminder or alarm.
func timeLeft(_ context.Context, c *command) (string, error) {
	pending := c.brain.timers.Pending(c.turn.Robot, c.turn.Now)
	if len(pending) == 0 {
		return c.intent.Missing, nil
	}
	next := pending[max(slices.IndexFunc(pending, isTimer), 0)]
	c.left = c.book.words().Duration(next.Due.Sub(c.turn.Now))
	return c.intent.Answer, nil
}

// isTimer reports whether t is neither a reminder nor an alarm.
func isTimer(t agent.Timer) bool { return !t.Reminder && t.At == "" }

func isReminder(t agent.Timer) bool { return t.Reminder }

// cancelTimers returns the action that cancels the timers of the robot for which selects is
// true. Timers, reminders and alarms are separate, because cancelling an egg timer must not
// cancel a reminder to take medicine.
func cancelTimers(selects func(agent.Timer) bool) action {
	return func(ctx context.Context, c *command) (string, error) {
		var ids []string
		for _, t := range c.brain.timers.Pending(c.turn.Robot, c.turn.Now) {
			if selects(t) {
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

// cancelAlarms cancels the alarms at the time of day in the sentence, or else all alarms of the
// robot.
func cancelAlarms(ctx context.Context, c *command) (string, error) {
	_, hasTime := c.filled[hourSlot]
	clocks := c.clocks()
	return cancelTimers(func(t agent.Timer) bool {
		return t.At != "" && (!hasTime || slices.Contains(clocks, t.At))
	})(ctx, c)
}
