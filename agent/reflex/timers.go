package reflex

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"perch/agent"
)

// The lists of the units of time, in the singular and in the plural. The value of
// each entry is its length in seconds.
const (
	unitList  = "unit"
	unitsList = "units"
)

// withTimers answers without the action if there are no timers, or if the turn is
// untrusted: a timer rings for all in the household.
func withTimers(act action) action {
	return func(ctx context.Context, c *command) (string, error) {
		if c.brain.timers == nil || c.turn.Untrusted {
			return c.brain.book.phrases["no_tool"], nil
		}
		return act(ctx, c)
	}
}

// setTimer sets a timer or reminder. It answers only after the timer is on the
// disk, or on the robot.
func setTimer(reminder bool) action {
	return func(ctx context.Context, c *command) (string, error) {
		b := c.brain.book
		length, err := c.length()
		if err != nil {
			return "", err
		}
		c.left = b.length(length)
		t := agent.Timer{Robot: c.turn.Robot, Text: c.fill(c.intent.Body), Length: length, Reminder: reminder}
		if t.Length == 0 {
			return b.phrases["bad_timer"], nil
		}
		_, err = c.brain.timers.Set(ctx, c.robot(), t, c.turn.Now)
		switch {
		case errors.Is(err, agent.ErrTooManyTimers):
			return b.phrases["timers_full"], nil
		case errors.Is(err, agent.ErrTimer):
			return b.phrases["bad_timer"], nil
		}
		return c.intent.Answer, err
	}
}

// length is the time in the sentence: a number of units, or one.
func (c *command) length() (time.Duration, error) {
	unit, found := c.taken[unitsList]
	n := c.taken[c.brain.book.numbers].value
	if !found {
		unit, n = c.taken[unitList], "1"
	}
	number, err := strconv.Atoi(n)
	seconds, err2 := strconv.Atoi(unit.value)
	return time.Duration(number*seconds) * time.Second, errors.Join(err, err2)
}

// robot is the turn's robot, with every call reported; nil if no robot takes part.
func (c *command) robot() agent.Body {
	if c.turn.Body == nil {
		return nil
	}
	return reportingBody{c.turn.Body, c}
}

// timeLeft says the remaining time of the next timer, or of the next reminder if
// there is no timer.
func timeLeft(_ context.Context, c *command) (string, error) {
	pending := c.brain.timers.Pending(c.turn.Robot, c.turn.Now)
	if len(pending) == 0 {
		return c.intent.Missing, nil
	}
	next := pending[max(slices.IndexFunc(pending, func(t agent.Timer) bool { return !t.Reminder }), 0)]
	c.left = c.brain.book.length(max(next.Due.Sub(c.turn.Now), time.Second))
	return c.intent.Answer, nil
}

// cancelTimers cancels the timers, or the reminders: cancelling an egg timer must
// not cancel the reminder to take a medicine.
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
			return c.brain.book.phrases["tool_failed"], nil
		}
		return c.intent.Answer, nil
	}
}

// length writes a time in its two largest units: "1 hour and 5 minutes".
func (b *Book) length(left time.Duration) string {
	seconds := int(left.Round(time.Second) / time.Second)
	var parts []string
	for _, of := range b.units() {
		if n := seconds / of; n > 0 && len(parts) < 2 {
			parts = append(parts, strconv.Itoa(n)+" "+b.unit(n, of))
			seconds -= n * of
		}
	}
	return strings.Join(parts, " "+b.phrases["and"]+" ")
}

// units are the lengths of the units that have words, the largest first.
func (b *Book) units() []int {
	var all []int
	for _, it := range b.lists[unitsList].items {
		if n, err := strconv.Atoi(it.value); err == nil && n > 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return slices.Compact(all)
}

// unit is the word for n units of a length.
func (b *Book) unit(n, of int) string {
	words := b.lists[unitsList].items
	if n == 1 {
		words = append(slices.Clone(b.lists[unitList].items), words...)
	}
	return words[slices.IndexFunc(words, func(it item) bool { return it.value == strconv.Itoa(of) })].spoken
}
