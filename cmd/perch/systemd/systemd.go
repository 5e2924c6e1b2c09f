// Package systemd reports the program's state to the service manager of a unit with Type=notify
// (sd_notify(3)).
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Manager sends notifications to the service manager. The methods do nothing if no service manager has
// started this process.
type Manager struct {
	notify func(state string) error
	log    *slog.Logger
}

// New returns a Manager for the service manager whose socket the environment variable NOTIFY_SOCKET names.
func New(log *slog.Logger) Manager {
	return Manager{func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}, log}
}

// Ready reports that the start is complete.
func (m Manager) Ready() { m.report(daemon.SdNotifyReady) }

// Stopping reports that the program is about to end.
func (m Manager) Stopping() { m.report(daemon.SdNotifyStopping) }

// report sends a state, and logs a failure.
func (m Manager) report(state string) {
	if err := m.notify(state); err != nil {
		m.log.Warn("the service manager cannot be notified", "err", err)
	}
}

// Watchdog calls alive until ctx ends, and notifies the watchdog of the service manager each time that
// alive returns nil. It calls alive every third of the watchdog's interval. The context of alive ends after
// two thirds of the interval: on a slow machine, a late result still reaches the service manager in time.
func (m Manager) Watchdog(ctx context.Context, alive func(context.Context) error) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return // the service manager expects no notifications from this process, or its variables are invalid
	}
	every := time.NewTicker(interval / 3)
	defer every.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, interval*2/3)
		err := alive(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.log.Error("a part of perch does not respond; the service manager will restart perch if this continues", "err", err)
		default:
			m.report(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// Await calls f and waits until f returns. If ctx ends first, Await returns an error that contains name. The
// goroutine of f then remains until f returns. The function alive of Watchdog uses Await to detect a part that
// hangs.
func Await(ctx context.Context, name string, f func()) error {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s hangs", name)
	}
}
