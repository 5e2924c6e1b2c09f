package sphinx

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// small is a grammar for tests that do not measure the quality of recognition.
var small = Grammar{Top: []string{"top"}, Rules: []Rule{{Name: "top", Body: "good night | what time is it"}}}

func newEngine(t *testing.T, o Options) *Engine {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := New(o)
	t.Cleanup(e.Close)
	return e
}

// count returns the number of pairs.
func count(e *Engine) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pairs
}

func TestConcurrentLoadsMakeOnePair(t *testing.T) {
	e := newEngine(t, Options{Grammar: small})
	if e.Name() != "sphinx" || e.Loaded() {
		t.Fatalf("a new engine is %q, loaded %v", e.Name(), e.Loaded())
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := e.Load(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := count(e); n != 1 || !e.Loaded() {
		t.Errorf("%d pairs, want 1", n)
	}
}

func TestUnavailable(t *testing.T) {
	unknown := Grammar{Top: []string{"top"}, Rules: []Rule{{Name: "top", Body: "frobnicate"}}}
	tests := map[string]struct {
		options  Options
		language string
	}{
		"no model":         {Options{Grammar: small, Model: t.TempDir()}, ""},
		"a faulty grammar": {Options{Grammar: unknown}, "en"},
		"another language": {Options{Grammar: small}, "de-CH"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, test.options)
			_, err := e.Recognize(t.Context(), voicetest.Utterance(nil), voice.Options{Language: test.language})
			if !errors.Is(err, voice.ErrUnavailable) {
				t.Errorf("%v does not wrap ErrUnavailable", err)
			}
			if e.Loaded() {
				t.Error("it is loaded all the same")
			}
		})
	}
}

func TestNoCommandInNoise(t *testing.T) {
	e := newEngine(t, Options{Grammar: homeGrammar})
	hum := make([]int16, 2*voice.MicRate)
	breath := make([]int16, 2*voice.MicRate)
	for i := range hum {
		hum[i] = int16(3000 * math.Sin(float64(i)*2*math.Pi*100/voice.MicRate))
		breath[i] = int16(math.MaxInt16 * float64(i%voice.MicRate) / voice.MicRate)
	}
	addNoise(breath, 1)
	for i, s := range addNoise(make([]int16, len(breath)), 1000) {
		breath[i] = int16(float64(s) * math.Pow(math.Sin(float64(i)*math.Pi/voice.MicRate), 2))
	}
	for name, pcm := range map[string][]int16{
		"nothing at all":       nil,
		"one sample":           make([]int16, 1),
		"digital silence":      make([]int16, 3*voice.MicRate),
		"a quiet room":         addNoise(make([]int16, 3*voice.MicRate), 15),
		"faint hiss":           addNoise(make([]int16, 3*voice.MicRate), 500),
		"hiss":                 addNoise(make([]int16, 3*voice.MicRate), 800),
		"loud hiss":            addNoise(make([]int16, 3*voice.MicRate), 8000),
		"a hum":                addNoise(hum, 30),
		"breath":               breath,
		"the longest there is": addNoise(make([]int16, 15*voice.MicRate), 200),
	} {
		if got := recognize(t, e, pcm); !got.Refused || got.Text != "" {
			t.Errorf("%s was taken for %q", name, got.Text)
		}
		got, err := e.Recognize(t.Context(), voicetest.Utterance(pcm), voice.Options{YesNo: true})
		if err != nil || means(got.Text) != "" {
			t.Errorf("%s was taken for the answer %q, %v", name, got.Text, err)
		}
	}
}

func TestRecognizesWhileItIsBeingSpoken(t *testing.T) {
	e := newEngine(t, Options{Grammar: small})
	u := voice.NewUtterance()
	got := make(chan voice.Transcript)
	go func() {
		transcript, err := e.Recognize(t.Context(), u, voice.Options{})
		if err != nil {
			t.Error(err)
		}
		got <- transcript
	}()
	for pcm := speak(t, "slt", "what time is it"); len(pcm) > 0; pcm = pcm[min(len(pcm), 700):] {
		u.Write(pcm[:min(len(pcm), 700)])
	}
	u.Finish()
	if text := (<-got).Text; text != "what time is it" {
		t.Errorf("heard %q", text)
	}
}

// TestUtterancesDoNotAffectEachOther checks that a loud or faint utterance does not change the result
// of the next utterance.
func TestUtterancesDoNotAffectEachOther(t *testing.T) {
	e := newEngine(t, Options{Grammar: small, Pairs: 1})
	must.Succeed(t, e.Load(t.Context()))
	p := e.takeIdle()
	defer e.putBack(p)
	sentence := speak(t, "slt", "good night")
	first, err := p.recognize(t.Context(), voicetest.Utterance(sentence), false)
	if err != nil || first.text != "good night" {
		t.Fatalf("heard %q, %v", first.text, err)
	}
	if _, err := p.recognize(t.Context(), voicetest.Utterance(addNoise(make([]int16, 10*voice.MicRate), 5000)), false); err != nil {
		t.Fatal(err)
	}
	if again, err := p.recognize(t.Context(), voicetest.Utterance(sentence), false); again != first || err != nil {
		t.Errorf("heard %v, then %v, %v", first, again, err)
	}
}

func TestCancelledInTheMiddleLeavesThePairClean(t *testing.T) {
	e := newEngine(t, Options{Grammar: small, Pairs: 1})
	sentence := speak(t, "slt", "good night")
	for _, heardSoFar := range []int{0, 1000, len(sentence)} {
		u := voice.NewUtterance()
		u.Write(sentence[:heardSoFar])
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			_, err := e.Recognize(ctx, u, voice.Options{})
			done <- err
		}()
		cancel(nil)
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if got := recognize(t, e, sentence); got.Text != "good night" {
			t.Errorf("after one that was cancelled at %d: %+v", heardSoFar, got)
		}
	}
}

// busy starts to recognize an utterance, and waits until the engine has at least this number of pairs
// and no pair is idle.
func busy(t *testing.T, e *Engine, pairs int) (u *voice.Utterance, done chan error) {
	t.Helper()
	u, done = voice.NewUtterance(), make(chan error, 1)
	go func() {
		_, err := e.Recognize(t.Context(), u, voice.Options{})
		done <- err
	}()
	for isIdle := true; isIdle || count(e) < pairs; {
		e.mu.Lock()
		isIdle = len(e.idle) > 0
		e.mu.Unlock()
		runtime.Gosched()
	}
	return u, done
}

func TestTheSecondPairIsMadeWhenTheFirstIsBusy(t *testing.T) {
	e := newEngine(t, Options{Grammar: small})
	if recognize(t, e, nil); count(e) != 1 {
		t.Fatalf("%d pairs after one utterance", count(e))
	}
	if recognize(t, e, nil); count(e) != 1 {
		t.Fatalf("%d pairs after another", count(e))
	}
	first, firstDone := busy(t, e, 1)
	second, secondDone := busy(t, e, 2)

	waiting := make(chan voice.Transcript)
	sentence := speak(t, "slt", "good night")
	go func() { waiting <- recognize(t, e, sentence) }()
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Recognize(impatient, voicetest.Utterance(nil), voice.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("one that is cancelled while it waits: %v", err)
	}
	first.Finish()
	if got := <-waiting; got.Text != "good night" {
		t.Errorf("one that had to wait: %+v", got)
	}
	second.Finish()
	if err := errors.Join(<-firstDone, <-secondDone); err != nil {
		t.Error(err)
	}
	if n := count(e); n != 2 {
		t.Errorf("%d pairs, want 2", n)
	}
}

// TestIdlePairsAreClosed checks that a pair is closed when it was unused for idleTime, and not while it is in use, however
// long that takes; and that its memory is then free.
func TestIdlePairsAreClosed(t *testing.T) {
	sentence := speak(t, "slt", "good night")
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Grammar: homeGrammar})
		defer e.Close()
		recognize(t, e, sentence) // Go's memory for it, and that of the race detector, are not measured
		time.Sleep(idleTime)
		synctest.Wait()
		before := residentMB(t)
		long, done := voice.NewUtterance(), make(chan error)
		go func() {
			_, err := e.Recognize(t.Context(), long, voice.Options{})
			done <- err
		}()
		synctest.Wait()
		recognize(t, e, sentence)
		used := residentMB(t) - before
		want := func(pairs int, when string) {
			t.Helper()
			synctest.Wait()
			if n := count(e); n != pairs {
				t.Errorf("%d pairs %s, want %d", n, when, pairs)
			}
		}
		time.Sleep(idleTime - time.Second)
		want(2, "before the end of the time")
		time.Sleep(time.Second)
		want(1, "while one of them is in use")
		long.Finish()
		must.Succeed(t, <-done)
		for range 3 { // each use begins the time again
			time.Sleep(idleTime - time.Second)
			recognize(t, e, nil)
		}
		want(1, "after three uses")
		time.Sleep(idleTime)
		want(0, "that nobody uses")
		left := residentMB(t) - before
		if t.Logf("two pairs took %.1f MB, of which %.1f are left", used, left); used < 15 || left > used/4 {
			t.Errorf("two pairs took %.1f MB, of which %.1f are left", used, left)
		}
		must.Succeed(t, e.Warm(t.Context()))
		if want(1, "when a robot listens again"); recognize(t, e, sentence).Text != "good night" {
			t.Error("nothing is understood afterwards")
		}
	})
}

// TestAnExpiredPairIsNotUsed checks that a pair whose time has just ended is closed, and not used again.
func TestAnExpiredPairIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Grammar: small})
		defer e.Close()
		must.Succeed(t, e.Load(t.Context()))
		e.mu.Lock() // closeIdle waits
		time.Sleep(idleTime)
		e.mu.Unlock()
		if p := e.takeIdle(); p != nil {
			t.Error("a pair is used that is being closed")
		}
		synctest.Wait()
		if n := count(e); n != 0 {
			t.Errorf("%d pairs are left", n)
		}
	})
}

func TestCloseWaitsAndThenRefuses(t *testing.T) {
	e := newEngine(t, Options{Grammar: small, Pairs: 1})
	u, done := busy(t, e, 1)
	closed := make(chan struct{})
	go func() { e.Close(); close(closed) }()
	<-e.closed
	if _, err := e.Recognize(t.Context(), voicetest.Utterance(nil), voice.Options{}); !errors.Is(err, voice.ErrUnavailable) {
		t.Errorf("while it closes: %v", err)
	}
	select {
	case <-closed:
		t.Error("Close did not wait for the utterance")
	default:
	}
	u.Finish()
	if err := <-done; err != nil {
		t.Errorf("the utterance in hand: %v", err)
	}
	<-closed
	e.Close()
	if err := e.Load(t.Context()); !errors.Is(err, voice.ErrUnavailable) || e.Loaded() {
		t.Errorf("Load after Close: %v", err)
	}
}
