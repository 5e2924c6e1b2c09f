package agent

import (
	"errors"
	"time"

	"perch/device"
)

// Timer is a text to be spoken at a time: a timer's end, or a reminder.
type Timer struct {
	ID       string        `json:"id"`
	Robot    device.ID     `json:"robot,omitempty"` // the robot that announces it; empty is any
	Text     string        `json:"text"`            // spoken when it rings
	Set      time.Time     `json:"set"`
	Due      time.Time     `json:"due"`              // by the wall clock
	Length   time.Duration `json:"length,omitempty"` // nanoseconds; 0 for a reminder at a clock time
	Reminder bool          `json:"reminder,omitempty"`
	OnRobot  bool          `json:"on_robot,omitempty"` // the robot rings by itself; this copy only shows the timer
	RobotID  string        `json:"robot_id,omitempty"` // the robot's id for it, if it gave one
}

// LongestTimer is the longest wait of a timer, which is also the firmware's limit.
const LongestTimer = 24 * time.Hour

// Errors of the timers.
var (
	// ErrTimer is wrapped by the errors for an invalid timer.
	ErrTimer = errors.New("not a timer")
	// ErrTooManyTimers is wrapped if a robot has reached its number of timers.
	ErrTooManyTimers = errors.New("too many timers")
)
