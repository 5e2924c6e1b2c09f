package reflex

import (
	"strconv"
	"time"
)

// Slots of a duration: a number of units, or a unit for one of it ("half an hour"), or
// both ("an hour and 20 minutes"); optionally half a unit more; and optionally a number
// of other units.
const (
	halfSlot      = "half"
	numberMore    = "number_more"
	unitsMoreSlot = "units_more"
)

// Slots of a time of day. The hour is a number, or a name with a fixed half of the day.
// Minute and before are the minutes after and before it, and past is an offset in
// minutes, such as -30 of "halb vier". Daytime is the hour at which the named half of
// the day begins.
const (
	hourSlot    = "hour"
	minuteSlot  = "minute"
	beforeSlot  = "before"
	pastSlot    = "past"
	daytimeSlot = "daytime"
	daySlot     = "day" // 0 is today, and 1 tomorrow
)

// number returns the value of a slot, and whether it was said.
func (c *command) number(slot string) (n int, said bool) {
	it, said := c.filled[slot]
	if !said {
		return 0, false
	}
	n, err := strconv.Atoi(it.value)
	return n, err == nil
}

// length returns the duration in the sentence; it is not positive without a valid one.
func (c *command) length() time.Duration {
	if _, at := c.filled[hourSlot]; at {
		return c.until().Sub(c.turn.Now)
	}
	n, _ := c.number(c.book.numbers)
	of, many := c.number(unitsList)
	if _, said := c.filled[c.book.numbers]; !said {
		n = 1
	}
	more, _ := c.number(numberMore)
	ofMore, _ := c.number(unitsMoreSlot)
	seconds, whole := c.number(unitList)
	if whole {
		of = seconds
	}
	if many {
		seconds = n * of
	}
	if _, half := c.filled[halfSlot]; half {
		seconds += of / 2
	}
	return time.Duration(seconds+more*ofMore) * time.Second
}

// until returns the next occurrence of the time of day in the sentence, or zero if it is
// invalid. An ambiguous hour up to twelve means the nearer half of the day, or, on a
// named day, one from six to eighteen.
func (c *command) until() time.Time {
	hour, _ := c.number(hourSlot)
	minute, _ := c.number(minuteSlot)
	before, _ := c.number(beforeSlot)
	past, _ := c.number(pastSlot)
	from, half := c.number(daytimeSlot)
	day, named := c.number(daySlot)
	if hour > 24 || minute > 59 || before > 59 {
		return time.Time{}
	}
	if named && !half {
		from, half = 6, true
	}
	hours := []int{hour}
	switch {
	case hour > 12 || !c.filled[hourSlot].number:
	case half:
		hours = []int{from + (hour-from+24)%12}
	case hour > 0:
		hours = append(hours, hour+12)
	}
	var next time.Time
	now := c.turn.Now
	for _, h := range hours {
		for later := range 3 {
			at := time.Date(now.Year(), now.Month(), now.Day()+day+later, h, minute-before+past, 0, 0, now.Location())
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}
