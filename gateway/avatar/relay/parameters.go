package relay

import (
	"math"
	"slices"
	"time"
)

// Intervals of sending parameters.
const (
	moveEvery   = 100 * time.Millisecond // while parameters change
	repeatEvery = 400 * time.Millisecond // while none changes: programs drop a parameter that was not sent for 0.5 to 1 s
)

// value is the value of one parameter.
type value struct {
	ID    string  `json:"id"`
	Value float64 `json:"value"`
}

// round rounds v to three decimal places. Smaller differences are not visible.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// sentParameters holds the parameters that were last sent to a program.
type sentParameters struct {
	values []value
	at     time.Time // when the values were sent
}

// next returns the parameters to send now; values are the current values of all parameters. It
// returns nil if no value has changed and no repeat is due. A parameter that is no longer in values
// is sent once more, as 0 at the end of the result.
func (h *sentParameters) next(values []value, now time.Time) (due []value) {
	if len(values) == 0 && len(h.values) == 0 || slices.Equal(values, h.values) && now.Sub(h.at) < repeatEvery {
		return nil
	}
	due = slices.Clone(values)
	for _, old := range h.values {
		if !slices.ContainsFunc(values, func(v value) bool { return v.ID == old.ID }) {
			due = append(due, value{old.ID, 0})
		}
	}
	h.values, h.at = values, now
	return due
}
