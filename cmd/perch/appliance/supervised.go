package appliance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"perch/remote"
)

// supervisor reports the program's state to the service manager, where the unit
// has Type=notify.
type supervisor struct {
	notify func(state string) error
	log    *slog.Logger
}

// systemd is the manager that NOTIFY_SOCKET names, if it does (sd_notify(3)).
func systemd(log *slog.Logger) supervisor {
	return supervisor{func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}, log}
}

func (s supervisor) report(state string) {
	if err := s.notify(state); err != nil {
		s.log.Warn("the service manager cannot be notified", "err", err)
	}
}

// watch feeds the manager's watchdog for as long as alive returns without an
// error, until ctx ends. It is asked three times in the manager's interval,
// and may take two thirds of it: a machine that is only slow is not restarted.
func (s supervisor) watch(ctx context.Context, alive func(context.Context) error) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil || within <= 0 {
		return // nobody wants to know
	}
	every := time.NewTicker(within / 3)
	defer every.Stop()
	for {
		asked, cancel := context.WithTimeout(ctx, within*2/3)
		err := alive(asked)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Error("a part does not answer; the service manager will restart perch if that goes on", "err", err)
		default:
			s.report(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// alive reports whether the loops that everything rests on still turn. Faults
// with which the program goes on, such as a full disk or an unreachable broker,
// are no reason for a restart; only a loop that hangs is.
func (a *Appliance) alive(ctx context.Context) error {
	return errors.Join(
		answers(ctx, "the store", func() { _ = a.DB.Readable() }), // that it answers is enough
		a.delivers(ctx),
		a.Doors.answer(ctx),
	)
}

// answers reports whether f returns before ctx ends. One that hangs keeps its
// goroutine: the program is about to be ended for it.
func answers(ctx context.Context, what string, f func()) error {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s hangs", what)
	}
}

// delivers reports whether what is on the bus reaches the board.
func (a *Appliance) delivers(ctx context.Context) error {
	var latest uint64
	if err := answers(ctx, "the bus", func() { latest = a.Bus.Seq() }); err != nil {
		return err
	}
	for {
		var reached uint64
		if err := answers(ctx, "the board", func() { _, reached = a.board.Snapshot() }); err != nil || reached >= latest {
			return err
		}
		if remote.Sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("the board is at event %d and the bus at %d", reached, latest)
		}
	}
}

// answer reports whether every listener still answers.
func (d *doors) answer(ctx context.Context) error {
	var failed error
	for _, s := range d.Servers {
		if err := s.answers(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("listener %s: %w", s.Listener.Addr(), err))
		}
	}
	return failed
}

// answers requests /health of a listener. Any answer will do.
func (s *Served) answers(ctx context.Context) error {
	own := s.Listener.Addr()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, own.Network(), dialable(own.String()))
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/health", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	return errors.Join(err, response.Body.Close())
}

// dialable is where an address that this machine listens on is reached from
// within it.
func dialable(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", at.Port())
	}
	return address
}
