// Package systemd reports the program's state to the service manager, where the unit has
// Type=notify (sd_notify(3)).
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Manager is the service manager that NOTIFY_SOCKET names; without one nothing is sent.
type Manager struct {
	notify func(state string) error
	log    *slog.Logger
}

// New returns the manager of this process.
func New(log *slog.Logger) Manager {
	return Manager{func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}, log}
}

// Ready reports that the program serves.
func (m Manager) Ready() { m.report(daemon.SdNotifyReady) }

// Stopping reports that the program is about to end.
func (m Manager) Stopping() { m.report(daemon.SdNotifyStopping) }

func (m Manager) report(state string) {
	if err := m.notify(state); err != nil {
		m.log.Warn("the service manager cannot be notified", "err", err)
	}
}

// Watchdog feeds the manager's watchdog until ctx ends, for as long as alive returns no error.
// It calls alive three times in the manager's interval, and gives it two thirds of that: a
// machine that is only slow is not restarted.
func (m Manager) Watchdog(ctx context.Context, alive func(context.Context) error) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil || within <= 0 {
		return // there is no watchdog
	}
	every := time.NewTicker(within / 3)
	defer every.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, within*2/3)
		err := alive(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.log.Error("a part does not answer; the service manager will restart perch if that goes on", "err", err)
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

// Returns reports an error, which names what, where f does not return before ctx ends. A
// function that hangs keeps its goroutine: the program is about to be ended for it.
func Returns(ctx context.Context, what string, f func()) error {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s hangs", what)
	}
}
