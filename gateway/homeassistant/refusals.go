package homeassistant

import (
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"perch/device"
)

// newAllowance returns a limiter that allows twenty at once and then one each second.
func newAllowance() *rate.Limiter { return rate.NewLimiter(rate.Every(time.Second), 20) }

// refusals logs messages that were not obeyed, within bounds: a flood of nonsense on the broker must
// flood neither the log nor the bus.
type refusals struct {
	logger  *slog.Logger
	byRobot map[device.ID]*refusal // the empty id stands for messages that concern no known robot
}

// refusal bounds the log lines about one robot.
type refusal struct {
	allowance *rate.Limiter
	dropped   int
}

// log writes a line and reports whether it was within the bounds.
func (r refusals) log(id device.ID, now time.Time, message string, attributes ...any) bool {
	f := r.byRobot[id]
	if f == nil {
		f = &refusal{allowance: newAllowance()}
		r.byRobot[id] = f
	}
	if !f.allowance.AllowN(now, 1) {
		f.dropped++
		return false
	}
	if id != "" {
		attributes = append(attributes, "robot", id)
	}
	if f.dropped > 0 {
		attributes = append(attributes, "dropped_before", f.dropped)
		f.dropped = 0
	}
	r.logger.Warn(message, attributes...)
	return true
}
