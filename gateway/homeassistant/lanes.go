package homeassistant

import (
	"context"

	"perch/device"
)

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
