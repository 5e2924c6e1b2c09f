package reflex

import (
	"strconv"
	"time"
)

// Slots of a duration, besides those of its first unit (timers.go): a duration has a number
// and a unit in the plural ("20 minutes"), or one unit in the singular ("an hour"). A unit of
// the list of plurals without a number counts once, because French has no other list for
// "d'une heure". halfSlot adds half of the first unit. The other two slots add a number of
// further units ("an hour and 20 minutes").
const (
	halfSlot       = "half"
	numberMoreSlot = "number_more"
	unitsMoreSlot  = "units_more"
)

// Slots of a time of day.
const (
	hourSlot    = "hour"    // a number, or the name of an hour such as noon, which is unambiguous
	minuteSlot  = "minute"  // minutes after the hour
	beforeSlot  = "before"  // minutes before the hour
	pastSlot    = "past"    // offset from the hour in minutes, such as -30 for "halb" in "halb vier"
	dayPartSlot = "daytime" // part of the day, such as the evening; its value is the first of the 12 hours that the time may be in: 16 means 16:00 to 3:59
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
	unit, isPlural := c.number(pluralUnitsSlot)
	if !isPlural {
		unit, _ = c.number(singularUnitSlot)
	}
	n := 1
	if _, hasNumber := c.filled[c.book.numbers]; hasNumber && isPlural {
		n, _ = c.number(c.book.numbers)
	}
	seconds := n * unit
	if _, ok := c.filled[halfSlot]; ok {
		seconds += unit / 2
	}
	more, _ := c.number(numberMoreSlot)
	moreUnit, _ := c.number(unitsMoreSlot)
	return time.Duration(seconds+more*moreUnit) * time.Second
}

// until returns the next occurrence of the time of day in the sentence, or the zero time if
// it is invalid. An hour from 1 to 12 without a part of the day has two possible times: until
// returns the sooner one or, if the day is given, the one from 6:00 to 17:59.
func (c *command) until() time.Time {
	hour, _ := c.number(hourSlot)
	minute, _ := c.number(minuteSlot)
	before, _ := c.number(beforeSlot)
	past, _ := c.number(pastSlot)
	firstHour, hasWindow := c.number(dayPartSlot) // the window of 12 possible hours
	day, hasDay := c.number(daySlot)
	if hour > 24 || minute > 59 || before > 59 {
		return time.Time{}
	}
	if hasDay && !hasWindow {
		firstHour, hasWindow = 6, true
	}
	hours := []int{hour}
	switch {
	case hour > 12 || !c.filled[hourSlot].isNumber: // the hour is unambiguous
	case hasWindow:
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
