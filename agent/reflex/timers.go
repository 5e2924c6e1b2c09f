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

// The lists of the units of time, as they are said of one and of several.
// Each entry stands for its seconds.
const (
	unitList  = "unit"
	unitsList = "units"
)

// withTimers answers where no timers are kept, or not for who is asking: they
// ring for everybody in the house.
func withTimers(act action) action {
	return func(ctx context.Context, d *deed) (string, error) {
		if d.brain.timers == nil || d.turn.Untrusted {
			return d.brain.book.phrases["no_tool"], nil
		}
		return act(ctx, d)
	}
}

// setTimer sets a timer, or a reminder. It answers only when it is safe on
// disk, or the robot itself has it.
func setTimer(reminder bool) action {
	return func(ctx context.Context, d *deed) (string, error) {
		b := d.brain.book
		length, err := d.length()
		if err != nil {
			return "", err
		}
		d.left = b.length(length)
		t := agent.Timer{Robot: d.turn.Robot, Text: d.fill(d.intent.body), Length: length, Reminder: reminder}
		if t.Length == 0 {
			return b.phrases["bad_timer"], nil
		}
		_, err = d.brain.timers.Set(ctx, d.robot(), t, d.turn.Now)
		switch {
		case errors.Is(err, agent.ErrTooManyTimers):
			return b.phrases["timers_full"], nil
		case errors.Is(err, agent.ErrTimer):
			return b.phrases["bad_timer"], nil
		}
		return d.intent.answer, err
	}
}

// length is the time said: a number of units, or one.
func (d *deed) length() (time.Duration, error) {
	unit, found := d.taken[unitsList]
	n := d.taken[d.brain.book.numbers].value
	if !found {
		unit, n = d.taken[unitList], "1"
	}
	number, err := strconv.Atoi(n)
	seconds, err2 := strconv.Atoi(unit.value)
	return time.Duration(number*seconds) * time.Second, errors.Join(err, err2)
}

// robot is the turn's robot, with every call shown; nil where none takes part.
func (d *deed) robot() agent.Body {
	if d.turn.Body == nil {
		return nil
	}
	return showing{d.turn.Body, d}
}

// timeLeft tells how long the next timer has, or the next reminder where
// there is no timer.
func timeLeft(_ context.Context, d *deed) (string, error) {
	pending := d.brain.timers.Pending(d.turn.Robot, d.turn.Now)
	if len(pending) == 0 {
		return d.intent.missing, nil
	}
	next := pending[max(slices.IndexFunc(pending, func(t agent.Timer) bool { return !t.Reminder }), 0)]
	d.left = d.brain.book.length(max(next.Due.Sub(d.turn.Now), time.Second))
	return d.intent.answer, nil
}

// cancelTimers cancels the timers, or the reminders: who is done with an egg
// still wants to be reminded of the medicine.
func cancelTimers(reminders bool) action {
	return func(ctx context.Context, d *deed) (string, error) {
		var ids []string
		for _, t := range d.brain.timers.Pending(d.turn.Robot, d.turn.Now) {
			if t.Reminder == reminders {
				ids = append(ids, t.ID)
			}
		}
		if len(ids) == 0 {
			return d.intent.missing, nil
		}
		_, err := d.brain.timers.Cancel(ctx, d.robot(), d.turn.Robot, ids...)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			return d.brain.book.phrases["tool_failed"], nil
		}
		return d.intent.answer, nil
	}
}

// length says a time in its two largest units: "1 hour and 5 minutes".
func (b *Book) length(left time.Duration) string {
	seconds := int(left.Round(time.Second) / time.Second)
	var parts []string
	for _, of := range b.units() {
		if n := seconds / of; n > 0 && len(parts) < 2 {
			parts = append(parts, itoa(n)+" "+b.unit(n, of))
			seconds -= n * of
		}
	}
	return strings.Join(parts, " "+b.phrases["and"]+" ")
}

// units are the lengths there are words for, the largest first.
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

// unit is the word for n of a length.
func (b *Book) unit(n, of int) string {
	words := b.lists[unitsList].items
	if n == 1 {
		words = append(slices.Clone(b.lists[unitList].items), words...)
	}
	return words[slices.IndexFunc(words, func(it item) bool { return it.value == itoa(of) })].spoken
}
