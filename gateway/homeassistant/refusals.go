package homeassistant

import (
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"perch/device"
)

// newAllowance returns room for twenty at once and, after that, one each second.
func newAllowance() *rate.Limiter { return rate.NewLimiter(rate.Every(time.Second), 20) }

// refusals logs what was not done, and not without end: a flood of nonsense on the
// broker must not flood the log and the bus too.
type refusals struct {
	out *slog.Logger
	of  map[device.ID]*refused // by robot; empty for what concerns none
}

// refused is how often one robot is logged.
type refused struct {
	allowance *rate.Limiter
	silenced  int
}

// log writes a line, and reports whether there was room for it. Only robots
// that are known are named.
func (r refusals) log(id device.ID, now time.Time, what string, more ...any) bool {
	a := r.of[id]
	if a == nil {
		a = &refused{allowance: newAllowance()}
		r.of[id] = a
	}
	if !a.allowance.AllowN(now, 1) {
		a.silenced++
		return false
	}
	if id != "" {
		more = append(more, "robot", id)
	}
	if a.silenced > 0 {
		more = append(more, "dropped_before", a.silenced)
		a.silenced = 0
	}
	r.out.Warn(what, more...)
	return true
}
