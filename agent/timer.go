package agent

import (
	"errors"
	"time"

	"perch/device"
)

// Timer is something to be told at a time: that some minutes are over, or
// what somebody wanted to be reminded of.
type Timer struct {
	ID       string        `json:"id"`
	Robot    device.ID     `json:"robot,omitempty"` // it rings there; without one, wherever somebody is
	Text     string        `json:"text"`            // what is said when it rings
	Set      time.Time     `json:"set"`
	Due      time.Time     `json:"due"`              // by the wall clock
	Length   time.Duration `json:"length,omitempty"` // nanoseconds; 0 for a reminder at a clock time
	Reminder bool          `json:"reminder,omitempty"`
	OnRobot  bool          `json:"on_robot,omitempty"` // the robot rings by itself; the copy here tells the bus
	RobotID  string        `json:"robot_id,omitempty"` // what the robot calls it, where it said so
}

// LongestTimer is the longest that one may wait. A day is also the most that the
// firmware takes.
const LongestTimer = 24 * time.Hour

// Errors of the timers.
var (
	// ErrTimer is wrapped by Set for what cannot be a timer.
	ErrTimer = errors.New("not a timer")
	// ErrTooManyTimers is wrapped by Set where a robot has all it may have.
	ErrTooManyTimers = errors.New("too many timers")
)
