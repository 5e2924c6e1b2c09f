package machine

import (
	"context"
	"log/slog"

	"perch/event"
	"perch/idlememory"
)

// ReleaseMemory gives idle memory back until ctx ends. All of it is loaded again when a robot is
// about to talk, so that its hello does not wait for it.
func ReleaseMemory(ctx context.Context, events *event.Reader, log *slog.Logger) {
	idlememory.Run(ctx, func(ctx context.Context) (urgent bool, err error) {
		e, err := events.Next(ctx)
		switch e.Event.(type) {
		case event.RobotSeen, event.RobotConnected:
			urgent = true
		}
		return urgent, err
	}, log)
}
