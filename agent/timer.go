package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"perch/device"
)

// Timer is a timer or reminder.
type Timer struct {
	ID       string        `json:"id"`
	Robot    device.ID     `json:"robot,omitempty"`  // the robot that announces it; "" means any
	Text     string        `json:"text"`             // the text to be spoken when it is due
	Set      time.Time     `json:"set"`              // when it was set
	Due      time.Time     `json:"due"`              // when it rings, by the wall clock
	Length   time.Duration `json:"length,omitempty"` // duration in nanoseconds; 0 for a reminder at a time of day
	Reminder bool          `json:"reminder,omitempty"`
	OnRobot  bool          `json:"on_robot,omitempty"` // whether the robot itself rings; then this copy is only for display
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

// NextTime returns the next occurrence after now of a time of day such as 18:30, in the time zone of now. An error wraps
// ErrTimer.
func NextTime(clock string, now time.Time) (time.Time, error) {
	at, err := time.Parse("15:04", strings.TrimSpace(clock))
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: at is a time such as 18:30", ErrTimer)
	}
	y, m, d := now.Date()
	next := time.Date(y, m, d, at.Hour(), at.Minute(), 0, 0, now.Location())
	if !next.After(now) {
		next = time.Date(y, m, d+1, at.Hour(), at.Minute(), 0, 0, now.Location())
	}
	return next, nil
}
