package playback

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
)

// TestSchedulerLetsInWhoRunsDryFirst checks that the session whose robot runs dry first encodes first. The
// order in which the sessions have begun to wait must not matter.
func TestSchedulerLetsInWhoRunsDryFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, now := NewScheduler(), time.Now()
		e.free = 1
		must.Succeed(t, e.acquire(t.Context(), newWaiter(), 0, now))
		var order []time.Duration
		var all sync.WaitGroup
		for _, dry := range []time.Duration{3 * time.Second, time.Second, 0, 2 * time.Second} {
			all.Go(func() {
				if err := e.acquire(t.Context(), newWaiter(), 0, now.Add(dry)); err != nil {
					t.Error(err)
				}
				order = append(order, dry) // not at the same time as others, because only one core is free
				e.release()
			})
			synctest.Wait()
		}
		e.release()
		all.Wait()
		if want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(order, want) {
			t.Errorf("let in were those who run dry after %s", order)
		}
		if e.free != 1 || len(e.waiting) != 0 {
			t.Errorf("%d are free and %d wait", e.free, len(e.waiting))
		}
	})
}

// TestSchedulerForgetsWhoIsCancelled checks that a cancelled session occupies no core, even if release chooses
// the session at the same time.
func TestSchedulerForgetsWhoIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, atOnce := range []bool{false, true} {
			e := NewScheduler()
			e.free = 1
			must.Succeed(t, e.acquire(t.Context(), newWaiter(), 0, time.Now()))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				err := e.acquire(ctx, newWaiter(), 0, time.Now())
				if err == nil {
					e.release()
				}
				ended <- err
			}()
			synctest.Wait()
			cancel()
			if atOnce {
				e.release()
			}
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if !atOnce {
				e.release()
			}
			if e.free != 1 || len(e.waiting) != 0 {
				t.Errorf("let in at once %v: %d are free and %d wait", atOnce, e.free, len(e.waiting))
			}
		}
	})
}
