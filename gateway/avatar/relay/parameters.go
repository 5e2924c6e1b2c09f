package relay

import (
	"math"
	"slices"
	"time"
)

// Moving parameters are sent ten times a second. Programs drop a parameter that was not sent
// for half a second to a second, so unchanged ones are repeated.
const (
	movesEvery = 100 * time.Millisecond
	holdsEvery = 400 * time.Millisecond
)

// value is the value of one parameter.
type value struct {
	ID    string  `json:"id"`
	Value float64 `json:"value"`
}

// round rounds v to three digits after the point, more than can be seen.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// heldParameters are the parameters that were last sent to a program.
type heldParameters struct {
	values []value
	sent   time.Time
}

// next returns the parameters to send now: all of them when one has moved or a repeat is due,
// followed by a final 0 for each that was released. It returns nil while nothing is held.
func (h *heldParameters) next(values []value, now time.Time) (due []value) {
	if len(values) == 0 && len(h.values) == 0 || slices.Equal(values, h.values) && now.Sub(h.sent) < holdsEvery {
		return nil
	}
	due = slices.Clone(values)
	for _, old := range h.values {
		if !slices.ContainsFunc(values, func(v value) bool { return v.ID == old.ID }) {
			due = append(due, value{old.ID, 0})
		}
	}
	h.values, h.sent = values, now
	return due
}
