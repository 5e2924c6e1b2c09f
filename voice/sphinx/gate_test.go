package sphinx

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// TestAdoptedRobotsComeFirst checks that adopted robots are admitted before strangers
// that have waited longer, and that strangers do not use all of several pairs.
func TestAdoptedRobotsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pairs := range []int{1, 2, 3} {
			g := newGate(pairs)
			var order []bool
			come := func(stranger bool) {
				go func() {
					if g.enter(t.Context(), stranger, nil) == nil { // enter fails at the end of the test
						order = append(order, stranger)
					}
				}()
				synctest.Wait()
			}
			for range 190 {
				come(true)
			}
			if want := max(1, pairs-1); len(order) != want {
				t.Fatalf("of %d pairs, strangers have %d, want %d", pairs, len(order), want)
			}
			for range 3 {
				come(false)
			}
			for left := range 193 {
				g.leave(order[left])
				synctest.Wait()
			}
			first := order[max(1, pairs-1):]
			if !slices.Equal(first[:4], []bool{false, false, false, true}) {
				t.Errorf("of %d pairs, the next went to strangers: %v", pairs, first[:4])
			}
		}
	})
}

// TestCancelledWaitReleasesItsPlace checks that enter returns when its context ends or the
// engine is closed, and then does not occupy a pair.
func TestCancelledWaitReleasesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, closed := newGate(2), make(chan struct{})
		for range 2 {
			must.Succeed(t, g.enter(t.Context(), false, closed))
		}
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 4)
		for _, stranger := range []bool{true, false} {
			go func() { errs <- g.enter(ctx, stranger, closed) }()
		}
		synctest.Wait()
		cancel()
		if err := errors.Join(<-errs, <-errs); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, stranger := range []bool{true, false} {
			go func() { errs <- g.enter(t.Context(), stranger, closed) }()
		}
		synctest.Wait()
		close(closed)
		for range 2 {
			if err := <-errs; !errors.Is(err, voice.ErrUnavailable) {
				t.Error(err)
			}
		}
		g.leave(false)
		g.leave(false)
		if g.free != 2 || g.strangerOK != 1 || len(g.adopted)+len(g.strangers) > 0 {
			t.Errorf("left is %+v", g)
		}
	})
}

// TestFairnessOfRecognition checks that an adopted robot and then a stranger are served
// while 190 strangers speak without end.
func TestFairnessOfRecognition(t *testing.T) {
	e := newEngine(t, Options{Grammar: small})
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan error)
	for range 190 {
		go func() {
			_, err := e.Recognize(ctx, voice.NewUtterance(), voice.Options{Stranger: true})
			done <- err
		}()
	}
	sentence := speak(t, "slt", "good night")
	if got := recognize(t, e, sentence); got.Text != "good night" {
		t.Errorf("one of the household: %+v", got)
	}
	if got, err := e.Recognize(t.Context(), voicetest.Utterance(sentence), voice.Options{Stranger: true}); err != nil || got.Text != "good night" {
		t.Errorf("a stranger: %+v, %v", got, err)
	}
	hangUp()
	for range 190 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
