package robot

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

// TestEncodersLetInWhoRunsDryFirst, whoever came first, and again one that made way.
func TestEncodersLetInWhoRunsDryFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, now := newEncoders(), time.Now()
		e.free = 1
		must.Succeed(t, e.begin(t.Context(), newPlace(), 0, now))
		var order []time.Duration
		var all sync.WaitGroup
		for _, dry := range []time.Duration{3 * time.Second, time.Second, 0, 2 * time.Second} {
			all.Go(func() {
				if err := e.begin(t.Context(), newPlace(), 0, now.Add(dry)); err != nil {
					t.Error(err)
				}
				order = append(order, dry) // one at a time
				e.end()
			})
			synctest.Wait()
		}
		e.end()
		all.Wait()
		if want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(order, want) {
			t.Errorf("let in were those who run dry after %s", order)
		}
		if e.free != 1 || len(e.waiting) != 0 {
			t.Errorf("%d are free and %d wait", e.free, len(e.waiting))
		}
	})
}

// TestEncodersForgetWhoIsCancelled: nobody waits for a turn that has been cut off, not even
// where it is let in at that moment.
func TestEncodersForgetWhoIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, atOnce := range []bool{false, true} {
			e := newEncoders()
			e.free = 1
			must.Succeed(t, e.begin(t.Context(), newPlace(), 0, time.Now()))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				err := e.begin(ctx, newPlace(), 0, time.Now())
				if err == nil {
					e.end()
				}
				ended <- err
			}()
			synctest.Wait()
			cancel()
			if atOnce {
				e.end()
			}
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if !atOnce {
				e.end()
			}
			if e.free != 1 || len(e.waiting) != 0 {
				t.Errorf("let in at once %v: %d are free and %d wait", atOnce, e.free, len(e.waiting))
			}
		}
	})
}
