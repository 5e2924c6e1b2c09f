package homeassistant

import (
	"log/slog"
	"time"

	"perch/device"
)

// How many refusals of one robot are published at once, and how often then.
const (
	refusalsAtOnce = 20
	refusalEvery   = time.Second
)

// refusals logs what was not done, and not without end: a flood of nonsense on the
// broker must not flood the log and the bus too.
type refusals struct {
	out  *slog.Logger
	left map[device.ID]*allowance // by robot; empty for what concerns none
}

// allowance is room for some at once and, after that, one each second. The zero
// one is whole.
type allowance struct {
	left     int
	since    time.Time // when left was last right; zero is never
	silenced int
}

// take reports whether there is room for one more.
func (a *allowance) take(now time.Time) bool {
	if a.since.IsZero() {
		a.left, a.since = refusalsAtOnce, now
	}
	if more := int(now.Sub(a.since) / refusalEvery); more > 0 {
		a.left = min(a.left+more, refusalsAtOnce)
		a.since = now
	}
	if a.left == 0 {
		a.silenced++
		return false
	}
	a.left--
	return true
}

// log writes a line, and reports whether there was room for it. Only robots
// that are known are named.
func (r refusals) log(id device.ID, now time.Time, what string, more ...any) bool {
	a := r.left[id]
	if a == nil {
		a = &allowance{}
		r.left[id] = a
	}
	if !a.take(now) {
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
