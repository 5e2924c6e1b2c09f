package reflex

import (
	"strconv"
	"time"
)

// Further slots of a duration. A duration has a number and a unit in the plural ("20
// minutes"), or one unit in the singular ("an hour"). halfSlot adds half of this unit. The
// other two slots add a number of further units ("an hour and 20 minutes").
const (
	halfSlot      = "half"
	numberMore    = "number_more"
	unitsMoreSlot = "units_more"
)

// Slots of a time of day.
const (
	hourSlot    = "hour"    // a number, or the name of an hour such as noon, which is unambiguous
	minuteSlot  = "minute"  // minutes after the hour
	beforeSlot  = "before"  // minutes before the hour
	pastSlot    = "past"    // offset from the hour in minutes, such as -30 for "halb" in "halb vier"
	daytimeSlot = "daytime" // part of the day, such as the morning; its value is the first of the 12 hours that this part allows
	daySlot     = "day"     // 0 for today, 1 for tomorrow
)

// number returns the value of a slot. ok is false if the slot is not filled or its value is
// not a number.
func (c *command) number(slot string) (n int, ok bool) {
	it, ok := c.filled[slot]
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(it.value)
	return n, err == nil
}

// length returns the duration in the sentence, or the time until the time of day in it. It
// is zero or negative if neither is valid.
func (c *command) length() time.Duration {
	if _, ok := c.filled[hourSlot]; ok {
		return c.until().Sub(c.turn.Now)
	}
	n, _ := c.number(c.book.numbers)
	unit, isPlural := c.number(unitsList)
	if _, ok := c.filled[c.book.numbers]; !ok {
		n = 1
	}
	more, _ := c.number(numberMore)
	moreUnit, _ := c.number(unitsMoreSlot)
	seconds, isSingular := c.number(unitList)
	if isSingular {
		unit = seconds
	}
	if isPlural {
		seconds = n * unit
	}
	if _, ok := c.filled[halfSlot]; ok {
		seconds += unit / 2
	}
	return time.Duration(seconds+more*moreUnit) * time.Second
}

// until returns the next occurrence of the time of day in the sentence, or the zero time if
// it is invalid. An hour from 1 to 12 without a part of the day means the earlier one of the
// two possible times, or, if the day is given, the one between 6 and 18 o'clock.
func (c *command) until() time.Time {
	hour, _ := c.number(hourSlot)
	minute, _ := c.number(minuteSlot)
	before, _ := c.number(beforeSlot)
	past, _ := c.number(pastSlot)
	firstHour, hasDaytime := c.number(daytimeSlot)
	day, hasDay := c.number(daySlot)
	if hour > 24 || minute > 59 || before > 59 {
		return time.Time{}
	}
	if hasDay && !hasDaytime {
		firstHour, hasDaytime = 6, true
	}
	hours := []int{hour}
	switch {
	case hour > 12 || !c.filled[hourSlot].number:
	case hasDaytime:
		hours = []int{firstHour + (hour-firstHour+24)%12}
	case hour > 0:
		hours = append(hours, hour+12)
	}
	var next time.Time
	now := c.turn.Now
	for _, h := range hours {
		for daysLater := range 3 {
			at := time.Date(now.Year(), now.Month(), now.Day()+day+daysLater, h, minute-before+past, 0, 0, now.Location())
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}
