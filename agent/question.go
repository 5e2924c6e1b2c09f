package agent

import (
	"errors"
	"time"

	"perch/device"
)

// ErrNoQuestion is returned for an answer to a question that does not wait for
// one: it was answered, its time is over, or it was never asked.
var ErrNoQuestion = errors.New("no question waits for an answer under that id")

// Question is something that may only be done once somebody has allowed it,
// and that waits for their yes or no.
type Question struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`    // as it is asked
	Robot   device.ID `json:"robot"`   // that asks it
	Session string    `json:"session"` // of the turn that waits
	Asked   time.Time `json:"asked"`
	Until   time.Time `json:"until"` // no answer by then is a no
}
