package language

import (
	"time"
)

// Time returns the time of day as it is spoken within a sentence: "3:04 PM", "15 Uhr 4".
func (w *Words) Time(t time.Time) string { return w.timeMessage(timeKey(t), t) }

// Clock returns the time of day as a sentence: "It is 3:04 PM."
func (w *Words) Clock(t time.Time) string { return w.timeMessage("time.clock", t) }

// timeKey returns the key of the message for a time of day. Full hours and half hours have
// their own messages.
func timeKey(t time.Time) string {
	switch t.Minute() {
	case 0:
		return "time.hour"
	case 30:
		return "time.half"
	}
	return "time.full"
}

// timeMessage returns the message of a key with the values of a time of day.
func (w *Words) timeMessage(key string, t time.Time) string {
	hour := t.Hour()
	hour12, partStart := (hour+11)%12+1, hour
	for w.calendar.Parts[partStart] == "" && partStart > 0 {
		partStart--
	}
	pairs := []any{"hour", hour, "hour11", hour12 % 12, "hour12", hour12, "minute", t.Minute(), "minute2", t.Format("04"),
		"part", w.calendar.Parts[partStart]}
	if key == "time.clock" {
		pairs = append(pairs, "time", w.timeMessage(timeKey(t), t))
	}
	return w.Message(key, pairs...)
}

// Weekday returns the name of a day of the week.
func (w *Words) Weekday(d time.Weekday) string { return w.calendar.Weekdays[d] }

// Date returns the date as it is spoken, with the weekday and without the year.
func (w *Words) Date(t time.Time) string {
	key := "date.day"
	if t.Day() == 1 {
		key = "date.first" // some languages have a special form for the first day of a month
	}
	return w.Message(key, "weekday", w.Weekday(t.Weekday()), "month", w.calendar.Months[t.Month()-1], "day", t.Day())
}

// Duration returns a duration as it is spoken, in hours, minutes and seconds. It leaves out units
// that are zero, and names at most two: "1 hour and 5 minutes". A duration of less than a second
// becomes one second.
func (w *Words) Duration(d time.Duration) string {
	d = max(d.Round(time.Second), time.Second)
	var parts []string
	for _, unit := range []struct {
		key    string
		length time.Duration
	}{{"duration.hours", time.Hour}, {"duration.minutes", time.Minute}, {"duration.seconds", time.Second}} {
		if n := d / unit.length; len(parts) < 2 && n > 0 {
			parts = append(parts, w.Message(unit.key, "n", int(n)))
			d -= n * unit.length
		}
	}
	if len(parts) == 2 {
		return w.Message("duration.two", "first", parts[0], "second", parts[1])
	}
	return parts[0]
}
