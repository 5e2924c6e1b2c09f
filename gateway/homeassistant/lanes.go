package homeassistant

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"perch/device"
)

// newLimiter returns a limiter that allows 20 events at once, and then one per second.
func newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(time.Second), 20) }

// refusals logs refused messages at a limited rate, so that a flood of invalid messages on the broker does
// not flood the log or the event bus.
type refusals struct {
	logger *slog.Logger
	pace   map[device.ID]*rate.Limiter // key: robot ID, or "" for all messages that concern no adopted robot
}

// log writes a line and reports whether the rate limit allowed it.
func (r refusals) log(id device.ID, now time.Time, message string, attributes ...any) bool {
	if r.pace[id] == nil {
		r.pace[id] = newLimiter()
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

// lanes runs jobs that may block, such as a command to a robot, and passes their results to the hub's goroutine. The jobs
// of one lane run one after the other. The name of a lane is a robot ID or another name, such as answerLane.
type lanes struct {
	device.Lanes
	calls chan func() // functions that the hub's goroutine is to call
}

// callInHub passes a function to the hub's goroutine, which calls it. It returns once the hub has accepted
// the function or ctx ends.
func (l *lanes) callInHub(ctx context.Context, call func()) {
	select {
	case l.calls <- call:
	case <-ctx.Done():
	}
}
