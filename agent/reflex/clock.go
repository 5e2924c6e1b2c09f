package reflex

import (
	"strconv"
	"time"

	"perch/agent"
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
	daysSlot    = "days"    // the days on which an alarm repeats, as digits from 1 for Monday to 7
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
		return c.until().Due.Sub(c.turn.Now)
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

// until returns the alarm in the sentence, without a text. Its Due is zero if the time is
// invalid. Of several times of day, until chooses the one that is sooner.
func (c *command) until() (next agent.Timer) {
	after := c.turn.Now
	if day, _ := c.number(daySlot); day > 0 {
		year, month, today := after.Date()
		after = time.Date(year, month, today+day, 0, 0, 0, -1, after.Location())
	}
	for _, clock := range c.clocks() {
		t := agent.Timer{At: clock, Days: parseDays(c.filled[daysSlot].value)}
		if t.Due = t.Next(after); next.Due.IsZero() || t.Due.Before(next.Due) {
			next = t
		}
	}
	return next
}

// clocks returns the times of day that the sentence may mean, such as 07:30, or nil if its
// numbers are invalid. An hour from 1 to 12 without a part of the day means two times or, if the
// sentence names a day or the days to repeat, the one from 6:00 to 17:59.
func (c *command) clocks() (clocks []string) {
	hour, _ := c.number(hourSlot)
	minute, _ := c.number(minuteSlot)
	before, _ := c.number(beforeSlot)
	past, _ := c.number(pastSlot)
	firstHour, hasWindow := c.number(dayPartSlot) // the window of 12 possible hours
	_, hasDay := c.filled[daySlot]
	_, repeats := c.filled[daysSlot]
	if hour > 24 || minute > 59 || before > 59 {
		return nil
	}
	if (hasDay || repeats) && !hasWindow && hour > 0 {
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
	for _, h := range hours {
		clocks = append(clocks, time.Date(2000, 1, 2, h, minute-before+past, 0, 0, time.UTC).Format("15:04"))
	}
	return clocks
}

// parseDays returns the days with these digits, from 1 for Monday to 7 for Sunday.
func parseDays(digits string) (days agent.Days) {
	for _, digit := range digits {
		days |= 1 << ((digit - '0') % 7)
	}
	return days
}
