package homeassistant

import (
	"context"
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
	logger *slog.Logger
	pace   map[device.ID]*rate.Limiter // by robot; the empty id stands for messages that concern no known robot
}

// log writes a line and reports whether it was within the bounds.
func (r refusals) log(id device.ID, now time.Time, message string, attributes ...any) bool {
	if r.pace[id] == nil {
		r.pace[id] = newAllowance()
	}
	if !r.pace[id].AllowN(now, 1) {
		return false
	}
	if id != "" {
		attributes = append(attributes, "robot", id)
	}
	r.logger.Warn(message, attributes...)
	return true
}

// lanes run what may wait for a robot, and hand results to the hub's goroutine.
type lanes struct {
	device.Lanes
	calls chan func() // to be called by the hub's goroutine
}

// inHub has the hub's goroutine call a function. It returns once the hub has accepted it.
func (l *lanes) inHub(ctx context.Context, call func()) {
	select {
	case l.calls <- call:
	case <-ctx.Done():
	}
}
