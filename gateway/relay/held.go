package relay

import (
	"math"
	"slices"
	"time"
)

// Parameters that move are told ten times a second. Programs forget a parameter of which
// nothing was said for half a second or a second, so that one which stays is repeated.
const (
	movesEvery = 100 * time.Millisecond
	holdsEvery = 400 * time.Millisecond
)

// value is a parameter's.
type value struct {
	ID    string  `json:"id"`
	Value float64 `json:"value"`
}

// round leaves out what nobody sees.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// held are the parameters that a program was told last.
type held struct {
	values []value
	told   time.Time
}

// due are those to be told now: all when one has moved or it is time to repeat them, and
// a last 0 for each that is handed back. None are due while there is nothing to hold.
func (h *held) due(values []value, now time.Time) (due []value) {
	if len(values) == 0 && len(h.values) == 0 || slices.Equal(values, h.values) && now.Sub(h.told) < holdsEvery {
		return nil
	}
	due = slices.Clone(values)
	for _, old := range h.values {
		if !slices.ContainsFunc(values, func(v value) bool { return v.ID == old.ID }) {
			due = append(due, value{old.ID, 0})
		}
	}
	h.values, h.told = values, now
	return due
}
