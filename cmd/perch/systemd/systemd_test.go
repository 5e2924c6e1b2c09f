package systemd

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheWatchdog: Watchdog notifies the service manager when alive returns nil, and not when alive hangs or
// returns an error.
func TestTheWatchdog(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "60000000")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var asked, fed []time.Duration
		begun := time.Now()
		answers := []func(context.Context) error{
			func(context.Context) error { return nil },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, // hangs
			func(context.Context) error { return errors.New("broken") },
			func(context.Context) error { return nil },
			func(context.Context) error { stop(); return nil },
		}
		feed := func(state string) error {
			fed = append(fed, time.Since(begun))
			if state != "WATCHDOG=1" {
				t.Errorf("told %q", state)
			}
			return nil
		}
		Manager{feed, slog.New(slog.DiscardHandler)}.Watchdog(ctx, func(ctx context.Context) error {
			asked = append(asked, time.Since(begun))
			return answers[len(asked)-1](ctx)
		})
		if want := []time.Duration{0, 20 * time.Second, 60 * time.Second, 80 * time.Second, 100 * time.Second}; !slices.Equal(asked, want) {
			t.Errorf("asked at %v, want %v", asked, want)
		}
		if want := []time.Duration{0, 80 * time.Second}; !slices.Equal(fed, want) {
			t.Errorf("fed at %v, want %v", fed, want)
		}
	})
}

func TestWhatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		never := make(chan struct{})
		defer close(never)
		if err := Await(ctx, "the store", func() { <-never }); err == nil || err.Error() != "the store hangs" {
			t.Errorf("got %v", err)
		}
	})
}
