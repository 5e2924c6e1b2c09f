package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"perch/device"
)

// Timer is a timer, a reminder or an alarm. An alarm rings at a time of day.
type Timer struct {
	ID       string        `json:"id"`
	Robot    device.ID     `json:"robot,omitempty"`  // the robot that announces it; "" means any
	Text     string        `json:"text"`             // the text to be spoken when it is due
	Set      time.Time     `json:"set"`              // when it was set
	Due      time.Time     `json:"due"`              // when it rings next, by the wall clock
	Length   time.Duration `json:"length,omitempty"` // duration in nanoseconds; 0 for an alarm
	At       string        `json:"at,omitempty"`     // the time of day of an alarm, such as 07:00, in the household's time zone
	Days     Days          `json:"days,omitempty"`   // the days on which an alarm rings; none for an alarm that rings once
	Reminder bool          `json:"reminder,omitempty"`
	OnRobot  bool          `json:"on_robot,omitempty"` // whether the robot itself rings; then Perch makes no notification
	RobotID  string        `json:"robot_id,omitempty"` // the timer's ID on the robot; "" if the robot has not given it one
}

// MaxTimer is the maximum duration of a timer. The firmware has the same limit.
const MaxTimer = 24 * time.Hour

// Errors of the timers.
var (
	// ErrTimer is wrapped by the errors for an invalid timer.
	ErrTimer = errors.New("not a timer")
	// ErrTooManyTimers is wrapped by the error for a timer of a robot that already has the
	// maximum number.
	ErrTooManyTimers = errors.New("too many timers")
)

// ParseClock parses a time of day such as 18:30. An error wraps ErrTimer.
func ParseClock(clock string) (time.Time, error) {
	at, err := time.Parse("15:04", strings.TrimSpace(clock))
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: at is a time such as 18:30", ErrTimer)
	}
	return at, nil
}

// Next returns when an alarm rings next after the given time, in the time zone of that
// time. If the clocks skip the alarm's time of day, the alarm rings when the clocks go forward;
// if they repeat it, the alarm rings once. An At that ParseClock refuses counts as midnight.
func (t Timer) Next(after time.Time) time.Time {
	clock, _ := ParseClock(t.At)
	year, month, day := after.Date()
	for ; ; day++ {
		asked := time.Date(year, month, day, clock.Hour(), clock.Minute(), 0, 0, time.UTC)
		at := time.Date(year, month, day, clock.Hour(), clock.Minute(), 0, 0, after.Location())
		_, offset := at.Zone()
		start, end := at.ZoneBounds()
		switch shown := at.Unix() + int64(offset); { // the clocks skip the time if they show another one
		case shown > asked.Unix():
			at = start
		case shown < asked.Unix():
			at = end
		}
		if at.After(after) && (t.Days == 0 || t.Days.Has(asked.Weekday())) {
			return at
		}
	}
}

// Days is a set of days of the week. As text it is written like "mon tue".
type Days uint8

// Has reports whether the set contains a day.
func (d Days) Has(day time.Weekday) bool { return d&(1<<day) != 0 }

// eachDay returns the days of the week, beginning with Monday.
func eachDay() (days [7]time.Weekday) {
	for i := range days {
		days[i] = time.Weekday((i + 1) % len(days))
	}
	return days
}

// ParseDays parses names of days such as "mon tue" or "Monday, Tuesday". An error wraps
// ErrTimer.
func ParseDays(text string) (days Days, err error) {
	for name := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == ',' }) {
		found := false
		for _, day := range eachDay() {
			if full := strings.ToLower(day.String()); name == full || name == full[:3] {
				days, found = days|1<<day, true
			}
		}
		if !found {
			return 0, fmt.Errorf("%w: days are names such as mon tue wed, not %.20q", ErrTimer, name)
		}
	}
	return days, nil
}

// String returns the names of the days, such as "mon tue".
func (d Days) String() string {
	var names []string
	for _, day := range eachDay() {
		if d.Has(day) {
			names = append(names, strings.ToLower(day.String()[:3]))
		}
	}
	return strings.Join(names, " ")
}

// MarshalText implements encoding.TextMarshaler.
func (d Days) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Days) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDays(string(text))
	return err
}
