package sphinx

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// enter enters a gate with an utterance that does not end.
func enter(ctx context.Context, g *gate, stranger bool, closed <-chan struct{}) error {
	return g.enter(ctx, voice.NewUtterance(), voice.Options{Stranger: stranger}, closed)
}

// TestAdoptedRobotsComeFirst checks that adopted robots are admitted before strangers
// that have waited longer, and that strangers do not use all of several pairs.
func TestAdoptedRobotsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pairs := range []int{1, 2, 3} {
			g := newGate(pairs)
			var order []bool
			come := func(stranger bool) {
				go func() {
					if enter(t.Context(), g, stranger, nil) == nil { // enter fails at the end of the test
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
			must.Succeed(t, enter(t.Context(), g, false, closed))
		}
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 4)
		for _, stranger := range []bool{true, false} {
			go func() { errs <- enter(ctx, g, stranger, closed) }()
		}
		synctest.Wait()
		cancel()
		if err := errors.Join(<-errs, <-errs); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, stranger := range []bool{true, false} {
			go func() { errs <- enter(t.Context(), g, stranger, closed) }()
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

// TestWaitsForAPairEnd checks that an utterance waits for a pair while it is being spoken, and then for shortWait, or for
// longWait with the option Patient; and that it is refused at once if too many wait before it.
func TestWaitsForAPairEnd(t *testing.T) {
	for _, o := range []voice.Options{{}, {Patient: true}} {
		limit, most := shortWait, 10
		if o.Patient {
			limit, most = longWait, 67
		}
		synctest.Test(t, func(t *testing.T) {
			g := newGate(1)
			must.Succeed(t, enter(t.Context(), g, false, nil))
			waits := make(chan time.Duration, most)
			for range most {
				go func() {
					u := voice.NewUtterance()
					time.AfterFunc(voice.MaxUtterance, u.Finish)
					began := time.Now()
					if err := g.enter(t.Context(), u, o, nil); !errors.Is(err, voice.ErrBusy) {
						t.Errorf("%+v: %v", o, err)
					}
					waits <- time.Since(began)
				}()
			}
			synctest.Wait()
			began := time.Now()
			err := g.enter(t.Context(), voicetest.Utterance(nil), voice.Options{Stranger: true, Patient: o.Patient}, nil)
			if waited := time.Since(began); !errors.Is(err, voice.ErrBusy) || waited > 0 {
				t.Errorf("%+v: the next: %v after %s", o, err, waited)
			}
			for range most {
				if waited := <-waits; waited != voice.MaxUtterance+limit {
					t.Errorf("%+v: waited for %s", o, waited)
				}
			}
			if len(g.adopted)+len(g.strangers) > 0 {
				t.Errorf("left is %+v", g)
			}
		})
	}
}

// TestAFormerWaitCounts checks that an utterance that waits again, with the option Patient, goes before utterances that
// ended later.
func TestAFormerWaitCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		must.Succeed(t, enter(t.Context(), g, false, nil))
		var order []string
		wait := func(name string, u *voice.Utterance, patient bool) {
			if err := g.enter(t.Context(), u, voice.Options{Patient: patient}, nil); err != nil {
				order = append(order, name+" is refused")
				return
			}
			order = append(order, name)
			g.leave(false)
		}
		first, second, third := voicetest.Utterance(nil), voice.NewUtterance(), voice.NewUtterance()
		go wait("second", second, true)
		synctest.Wait()
		go wait("third", third, true)
		wait("first", first, false)
		second.Finish()
		go wait("first", first, true)
		synctest.Wait()
		g.leave(false)
		synctest.Wait()
		if want := []string{"first is refused", "first", "second", "third"}; !slices.Equal(order, want) {
			t.Errorf("the order is %q, want %q", order, want)
		}
	})
}

// TestTheNextEngineIsAsked checks that the next recognizer gets an utterance that would wait too long for a pair.
func TestTheNextEngineIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Grammar: small, Pairs: 1})
		defer e.Close()
		long, done := voice.NewUtterance(), make(chan error)
		go func() {
			_, err := e.Recognize(t.Context(), long, voice.Options{})
			done <- err
		}()
		synctest.Wait()
		began := time.Now()
		got, err := voice.Recognizers{e, spare{}}.Recognize(t.Context(), voicetest.Utterance(nil), voice.Options{})
		if waited := time.Since(began); err != nil || got.Text != "the next" || waited != shortWait {
			t.Errorf("recognized %+v, %v after %s", got, err, waited)
		}
		long.Finish()
		must.Succeed(t, <-done)
	})
}

// spare is a recognizer that recognizes "the next" in every utterance.
type spare struct{}

func (spare) Name() string { return "spare" }

func (spare) Recognize(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
	return voice.Transcript{Text: "the next"}, nil
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

// TestACrowdOfStrangersDoesNotMakeUsBusy tests that an adopted robot is neither refused nor behind strangers, however many of
// them wait.
func TestACrowdOfStrangersDoesNotMakeUsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		must.Succeed(t, enter(t.Context(), g, true, nil))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 100 {
			go func() { _ = enter(ctx, g, true, nil) }()
		}
		synctest.Wait()
		admitted := make(chan error, 1)
		go func() { admitted <- g.enter(ctx, voicetest.Utterance(nil), voice.Options{}, nil) }()
		time.Sleep(shortWait / 2)
		g.leave(true)
		synctest.Wait()
		select {
		case err := <-admitted:
			must.Succeed(t, err)
		default:
			t.Error("an adopted robot waits for strangers")
		}
	})
}
