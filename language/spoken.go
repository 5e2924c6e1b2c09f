package language

import (
	"time"
)

// Time returns the time of day as spoken within a sentence: "3:04 PM", "15 Uhr 4".
func (w *Words) Time(t time.Time) string { return w.ofTime(timeKey(t), t) }

// Clock returns the answer to what time it is, without a face: "It is 3:04 PM."
func (w *Words) Clock(t time.Time) string { return w.ofTime("time.clock", t) }

func timeKey(t time.Time) string {
	switch t.Minute() {
	case 0:
		return "time.hour"
	case 30:
		return "time.half"
	}
	return "time.full"
}

func (w *Words) ofTime(key string, t time.Time) string {
	hour := t.Hour()
	hour12, from := (hour+11)%12+1, hour
	for w.calendar.Parts[from] == "" && from > 0 {
		from--
	}
	pairs := []any{"hour", hour, "hour11", hour12 % 12, "hour12", hour12, "minute", t.Minute(), "minute2", t.Format("04"),
		"part", w.calendar.Parts[from]}
	if key == "time.clock" {
		pairs = append(pairs, "time", w.ofTime(timeKey(t), t))
	}
	return w.Message(key, pairs...)
}

// Weekday returns the name of a day.
func (w *Words) Weekday(d time.Weekday) string { return w.calendar.Weekdays[d] }

// Date returns the day as spoken, with its weekday and without its year.
func (w *Words) Date(t time.Time) string {
	key := "date.day"
	if t.Day() == 1 {
		key = "date.first" // the first of a month has a special form in some languages
	}
	return w.Message(key, "weekday", w.Weekday(t.Weekday()), "month", w.calendar.Months[t.Month()-1], "day", t.Day())
}

// Duration returns a length of time in its two largest units of hours, minutes and
// seconds: "1 hour and 5 minutes". It is at least a second.
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
