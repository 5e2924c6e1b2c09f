package agent

import (
	"errors"
	"time"

	"perch/device"
)

// ErrNoQuestion is returned for an answer to a question that does not wait for
// one: it was answered, it has expired, or it was never asked.
var ErrNoQuestion = errors.New("no question waits for an answer under that id")

// Question is a permission that an agent waits for: a yes or no to something that
// it wants to do.
type Question struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`    // as it is asked
	Robot   device.ID `json:"robot"`   // the robot that asks
	Session string    `json:"session"` // of the waiting turn
	Asked   time.Time `json:"asked"`
	Until   time.Time `json:"until"` // without an answer by then, the answer is no
}
