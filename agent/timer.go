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
	OnRobot  bool          `json:"on_robot,omitempty"` // the robot rings by itself, and this copy is only published
	RobotID  string        `json:"robot_id,omitempty"` // the robot's id of it, if it gave one
}

// LongestTimer is the longest that a timer may wait, also by the firmware.
const LongestTimer = 24 * time.Hour

// Errors of the timers.
var (
	// ErrTimer is wrapped for an invalid timer.
	ErrTimer = errors.New("not a timer")
	// ErrTooManyTimers is wrapped if a robot has all the timers it may have.
	ErrTooManyTimers = errors.New("too many timers")
)
