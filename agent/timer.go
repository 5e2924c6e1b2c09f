package agent

import (
	"errors"
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
