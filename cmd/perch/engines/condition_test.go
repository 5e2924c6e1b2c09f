package engines

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/openai"
	"perch/event"
	"perch/gateway/owner/admin"
	"perch/must"
	"perch/remote"
	"perch/voice"
)

// scripted is an engine that returns err, and counts its uses.
type scripted struct {
	err  error
	uses int
}

func (s *scripted) Name() string { return "scripted" }

func (s *scripted) Recognize(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
	s.uses++
	return voice.Transcript{Text: "words"}, s.err
}

func (s *scripted) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	s.uses++
	if s.err != nil {
		return s.err
	}
	return out(nil)
}

func (s *scripted) Think(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
	s.uses++
	if s.err != nil {
		return s.err
	}
	return out(agent.Done{End: agent.Continue})
}

// hung is a recognizer that takes the time takes before it fails.
type hung struct {
	*scripted
	takes time.Duration
}

func (h hung) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if h.err != nil {
		time.Sleep(h.takes)
	}
	return h.scripted.Recognize(ctx, u, o)
}

// TestAnEngineThatHangs: an engine whose checks succeed, but which hangs when it is used, delays only a few
// turns. A successful check does not make the next turn use the engine. When a check has failed and a later one
// succeeds, the next turn uses the engine.
func TestAnEngineThatHangs(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, log *bytes.Buffer, _ *[]event.Event) {
		var away atomic.Bool
		var looking sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		looking.Go(func() {
			c.Watch(ctx, func(context.Context) error {
				if away.Load() {
					return voice.ErrUnavailable
				}
				return nil
			})
		})
		dead, spare := hung{&scripted{err: voice.ErrUnavailable}, 15 * time.Second}, &scripted{}
		recognizers := voice.Recognizers{watchedRecognizer{dead, c, false}, spare}
		use := func() {
			t.Helper()
			must.Value(recognizers.Recognize(t.Context(), voice.NewUtterance(), voice.Options{}))(t)
		}
		for range 60 { // ten minutes with a turn every ten seconds
			use()
			time.Sleep(10 * time.Second)
		}
		if dead.uses > 5 {
			t.Errorf("it cost %d turns of 60 its whole time", dead.uses)
		}
		if _, _, cause := c.Status(); cause == nil || strings.Contains(log.String(), "works again") {
			t.Errorf("it has done nothing, and is well: %v; %s", cause, log)
		}
		away.Store(true)
		use() // fails, so that the engine rests again
		time.Sleep(2 * remote.DespiteChecks)
		use()
		time.Sleep(remote.LongestRest)
		away.Store(false)
		dead.err = nil
		time.Sleep(2 * remote.DespiteChecks)
		before := spare.uses
		use()
		use()
		if spare.uses != before || !strings.Contains(log.String(), "works again") {
			t.Errorf("it is back, and not used; %s", log)
		}
		cancel()
		looking.Wait()
	})
}

// TestARecoveredEngineIsUsedAtOnce: an engine is used again as soon as a check succeeds after failed checks,
// even if its rest is not over.
func TestARecoveredEngineIsUsedAtOnce(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, _ *bytes.Buffer, _ *[]event.Event) {
		var away atomic.Bool
		away.Store(true)
		var looking sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		dead := &scripted{err: voice.ErrUnavailable}
		looking.Go(func() {
			c.Watch(ctx, func(context.Context) error {
				if away.Load() {
					return voice.ErrUnavailable
				}
				return nil
			})
		})
		_, _ = watchedRecognizer{dead, c, false}.Recognize(ctx, voice.NewUtterance(), voice.Options{})
		time.Sleep(20 * time.Second)
		if c.Resting() == nil {
			t.Error("it is away, and tried")
		}
		away.Store(false)
		time.Sleep(20 * time.Second) // the checks are 16 s apart by now
		if err := c.Resting(); err != nil {
			t.Errorf("it is back, and not tried: %v", err)
		}
		cancel()
		looking.Wait()
	})
}

// watched calls do in a synctest bubble with a condition, its log and the faults that it publishes.
func watched(t *testing.T, do func(t *testing.T, c *condition, log *bytes.Buffer, faults *[]event.Event)) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var faults []event.Event
		c := newCondition("recognizer x", slog.New(slog.NewTextHandler(&log, nil)), func(e event.Event) { faults = append(faults, e) }, time.Now)
		do(t, c, &log, &faults)
	})
}

// TestADeadEngineIsLeftAlone: after each failure, an engine is not used for a longer time. The failure is logged
// once, and so is the recovery.
func TestADeadEngineIsLeftAlone(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, log *bytes.Buffer, faults *[]event.Event) {
		dead, spare := &scripted{err: voice.ErrUnavailable}, &scripted{}
		recognizers := voice.Recognizers{watchedRecognizer{dead, c, false}, spare}
		use := func() {
			t.Helper()
			if got, err := recognizers.Recognize(t.Context(), voice.NewUtterance(), voice.Options{}); err != nil || got.Text != "words" {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		for range 600 { // ten minutes with an utterance every second
			use()
			time.Sleep(time.Second)
		}
		if dead.uses < 12 || dead.uses > 16 { // after 2, 4, 8, 16, 32 and then every 60 s
			t.Errorf("it was tried %d times in ten minutes", dead.uses)
		}
		if spare.uses != 600 || strings.Count(log.String(), "does not work") != 1 || len(*faults) != 1 {
			t.Errorf("the next was used %d times; %d faults, the log is\n%s", spare.uses, len(*faults), log)
		}
		dead.err = nil
		time.Sleep(remote.LongestRest)
		use()
		use()
		if spare.uses != 600 || !strings.Contains(log.String(), "works again") {
			t.Errorf("back, it is not used; the log is\n%s", log)
		}
	})
}

// TestTheLastEngineIsAlwaysTried: the last engine of a list is used even if it has just failed.
func TestTheLastEngineIsAlwaysTried(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, _ *bytes.Buffer, _ *[]event.Event) {
		c.Last = true
		dead := &scripted{err: voice.ErrUnavailable}
		for range 5 {
			if _, err := (watchedRecognizer{dead, c, false}).Recognize(t.Context(), voice.NewUtterance(), voice.Options{}); err == nil {
				t.Fatal("a dead engine works")
			}
		}
		if dead.uses != 5 {
			t.Errorf("the last was tried %d times of 5", dead.uses)
		}
	})
}

// TestWhoseFaultItIs: an engine has not failed if the receiver of its output returns an error, if the turn was
// cancelled, or if a brain's error is not agent.ErrAway.
func TestWhoseFaultItIs(t *testing.T) {
	gone := errors.New("the robot has gone")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, use := range map[string]func(c *condition) error{
		"the listener of speech": func(c *condition) error {
			return watchedSynthesizer{&scripted{}, c, false}.Synthesize(t.Context(), "x", voice.Options{}, func([]int16) error { return gone })
		},
		"the listener of an answer": func(c *condition) error {
			return watchedBrain{Brain: &scripted{}, condition: c}.Think(t.Context(), agent.Turn{}, func(agent.Reply) error { return gone })
		},
		"a brain that failed its turn": func(c *condition) error {
			return watchedBrain{Brain: &scripted{err: gone}, condition: c}.Think(t.Context(), agent.Turn{}, func(agent.Reply) error { return nil })
		},
		"a cancelled utterance": func(c *condition) error {
			_, err := watchedRecognizer{&scripted{err: voice.ErrUnavailable}, c, false}.Recognize(cancelled, voice.NewUtterance(), voice.Options{})
			return err
		},
	} {
		watched(t, func(t *testing.T, c *condition, log *bytes.Buffer, _ *[]event.Event) {
			if use(c) == nil {
				t.Errorf("%s: no error", name)
			}
			if c.Resting() != nil || log.Len() > 0 {
				t.Errorf("%s is taken for the engine's: %s", name, log)
			}
		})
	}
	watched(t, func(t *testing.T, c *condition, _ *bytes.Buffer, _ *[]event.Event) {
		away := watchedBrain{Brain: &scripted{err: agent.ErrAway}, condition: c}
		if err := away.Think(t.Context(), agent.Turn{}, nil); !errors.Is(err, agent.ErrAway) || c.Resting() == nil {
			t.Errorf("a brain that is away: %v, resting %v", err, c.Resting())
		}
	})
}

// TestFailedEnginesAreChecked: an engine that fails is checked until a check succeeds. An engine whose checks
// succeed and whose uses fail rests longer after each failure, too.
func TestFailedEnginesAreChecked(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, log *bytes.Buffer, _ *[]event.Event) {
		ctx, cancel := context.WithCancel(t.Context())
		var looks atomic.Int64
		var well atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Watch(ctx, func(context.Context) error {
				looks.Add(1)
				if well.Load() {
					return nil
				}
				return voice.ErrUnavailable
			})
		}()
		time.Sleep(10 * time.Minute)
		if _, _, cause := c.Status(); looks.Load() < 12 || looks.Load() > 16 || cause == nil || c.Resting() != nil {
			t.Errorf("%d looks in ten minutes, %v; nobody has used it, resting %v", looks.Load(), cause, c.Resting())
		}
		works := &scripted{} // the engine works although its check fails, as with a key that is valid for speech only
		if _, err := (watchedRecognizer{works, c, false}).Recognize(ctx, voice.NewUtterance(), voice.Options{}); err != nil {
			t.Error(err)
		}
		if _, _, cause := c.Status(); cause != nil {
			t.Errorf("a use went well, and it is said to fail: %v", cause)
		}
		time.Sleep(10 * time.Minute)
		if _, _, cause := c.Status(); cause != nil {
			t.Errorf("a look knows better than a use: %v", cause)
		}
		well.Store(true)
		time.Sleep(remote.LongestRest + time.Second)
		seen := looks.Load()
		time.Sleep(time.Hour)
		if n := looks.Load() - seen; c.Resting() != nil || n > 0 {
			t.Errorf("it works, and is still looked at: %d times, resting %v", n, c.Resting())
		}
		dead := &scripted{err: voice.ErrUnavailable}
		for range 600 {
			_, _ = watchedRecognizer{dead, c, false}.Recognize(t.Context(), voice.NewUtterance(), voice.Options{}) // it fails
			time.Sleep(time.Second)
		}
		if dead.uses > 16 {
			t.Errorf("one that only looks well was tried %d times in ten minutes", dead.uses)
		}
		if n := strings.Count(log.String(), "does not work"); n > 3 {
			t.Errorf("it was told %d times:\n%s", n, log)
		}
		cancel()
		<-done
	})
}

// limited is a brain whose model rejects tools while limits is set.
type limited struct {
	*scripted
	limits, next error
}

func (l *limited) Limits() error { return l.limits }

// Think changes limits to next.
func (l *limited) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	l.limits = l.next
	return l.scripted.Think(ctx, t, out)
}

// TestLimitationEnds checks that a limitation is no longer shown after a turn without it, and after a check that finds
// nothing.
func TestLimitationEnds(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, _ *bytes.Buffer, _ *[]event.Event) {
		brain := &limited{scripted: &scripted{}}
		think := func(limits error) {
			brain.next = limits
			must.Succeed(t, watchedBrain{Brain: brain, condition: c}.Think(t.Context(), agent.Turn{}, func(agent.Reply) error { return nil }))
			if c.Limits() != limits {
				t.Errorf("shown %v, want %v", c.Limits(), limits)
			}
		}
		think(openai.ErrNoTools)
		think(nil)
		c.RecordLimits(agent.ErrBlind) // by a check
		brain.next = nil
		must.Succeed(t, watchedBrain{Brain: brain, condition: c}.Think(t.Context(), agent.Turn{}, func(agent.Reply) error { return nil }))
		if c.Limits() == nil {
			t.Error("a turn without an image shows that the brain sees")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.Watch(ctx, func(context.Context) error { return nil }); close(done) }()
		time.Sleep(time.Second)
		if c.Limits() != nil {
			t.Errorf("a check finds no limitation, and %v is shown", c.Limits())
		}
		cancel()
		<-done
	})
}

// choosy is an engine that supports one voice and one language.
type choosy struct{ uses []voice.Options }

func (*choosy) Name() string { return "choosy" }

func (c *choosy) Recognize(_ context.Context, _ *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	c.uses = append(c.uses, o)
	if o.Language != "en" {
		return voice.Transcript{}, voice.ErrLanguage
	}
	return voice.Transcript{Text: "words"}, nil
}

func (c *choosy) Synthesize(_ context.Context, _ string, o voice.Options, out func([]int16) error) error {
	c.uses = append(c.uses, o)
	if o.Voice != "" || o.Language != "en" {
		return voice.ErrUnavailable
	}
	return out(nil)
}

// stuck is a synthesizer that takes the time takes before it fails, and makes no sound.
type stuck struct {
	*scripted
	takes time.Duration
}

func (m stuck) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	time.Sleep(m.takes)
	return m.scripted.Synthesize(ctx, text, o, out)
}

// TestAnEngineThatHangsIsAskedOnce: a late error does not mean that the engine refuses the robot's voice, so the
// engine is not used again with the default voice.
func TestAnEngineThatHangsIsAskedOnce(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, _ *bytes.Buffer, _ *[]event.Event) {
		c.language = "en"
		dead := stuck{&scripted{err: voice.ErrUnavailable}, 10 * time.Second}
		if err := (watchedSynthesizer{dead, c, false}).Synthesize(t.Context(), "x", voice.Options{Language: "en", Voice: "its own"}, nil); err == nil ||
			dead.uses != 1 {
			t.Errorf("asked %d times, %v", dead.uses, err)
		}
	})
}

// TestAMissingVoiceIsNoFailure: an engine that does not support a robot's voice or language has not failed. A
// synthesizer then speaks with the default voice.
func TestAMissingVoiceIsNoFailure(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, log *bytes.Buffer, faults *[]event.Event) {
		c.language = "en"
		engine := &choosy{}
		if _, err := (watchedRecognizer{engine, c, false}).Recognize(t.Context(), voice.NewUtterance(), voice.Options{Language: "de"}); err == nil {
			t.Error("it hears German")
		}
		for _, o := range []voice.Options{{Language: "en", Voice: "nobody"}, {Language: "de"}, {Language: "en"}, {Language: "en", Voice: "nobody"},
			{Language: "de"}} {
			said := 0
			if err := (watchedSynthesizer{engine, c, false}).Synthesize(t.Context(), "x", o, func([]int16) error { said++; return nil }); err != nil ||
				said != 1 {
				t.Errorf("%+v: said %d times, %v", o, said, err)
			}
		}
		if c.Resting() != nil || len(*faults) > 0 {
			t.Errorf("it has failed: %v, %v", c.Resting(), *faults)
		}
		if n := strings.Count(log.String(), "own voice"); n != 2 {
			t.Errorf("told %d times in %s", n, log)
		}
		c.Last = true // the last engine does not rest after a failure
		if _, err := (watchedRecognizer{&scripted{err: voice.ErrLanguage}, c, false}).Recognize(t.Context(), voice.NewUtterance(),
			voice.Options{Language: "en"}); err == nil || c.Failures() != 1 {
			t.Errorf("the appliance's own language: %v, %d failures", err, c.Failures())
		}
		if err := (watchedSynthesizer{&scripted{err: voice.ErrUnavailable}, c, false}).Synthesize(t.Context(), "x",
			voice.Options{Language: "en", Voice: "a"}, nil); err == nil || c.Failures() != 2 {
			t.Errorf("one that does not work at all: %v, %d failures", err, c.Failures())
		}
	})
}

// TestAnUnknownLanguageGoesToTheNextEngine: if a synthesizer does not support a language, the next one is used. Only
// the last one tries the default language.
func TestAnUnknownLanguageGoesToTheNextEngine(t *testing.T) {
	for _, c := range []struct {
		name     string
		last     bool
		language string
		uses     int
		err      error
		failures uint64
	}{
		{"one that others follow", false, "ja", 1, voice.ErrLanguage, 0},
		{"of its own language", false, "en", 1, voice.ErrLanguage, 0},
		{"the last tries it in the appliance's", true, "ja", 2, voice.ErrLanguage, 0},
		{"the last, of the appliance's", true, "en", 1, voice.ErrLanguage, 1},
		{"a text that the last cannot read", true, "en", 1, voice.ErrText, 0},
	} {
		watched(t, func(t *testing.T, w *condition, _ *bytes.Buffer, _ *[]event.Event) {
			w.language, w.Last = "en", c.last
			engine := &scripted{err: c.err}
			err := (watchedSynthesizer{engine, w, false}).Synthesize(t.Context(), "x", voice.Options{Language: c.language}, nil)
			if !errors.Is(err, voice.ErrLanguage) || engine.uses != c.uses || w.Failures() != c.failures {
				t.Errorf("%s: asked %d times, %d failures, %v", c.name, engine.uses, w.Failures(), err)
			}
		})
	}
}

// TestABusyEngineIsAskedAgain: if a recognizer is busy, the next one gets the utterance, and the busy one the utterance
// after that.
func TestABusyEngineIsAskedAgain(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, _ *bytes.Buffer, faults *[]event.Event) {
		busy, next := &scripted{err: voice.ErrBusy}, &scripted{}
		for range 2 {
			must.Value(voice.Recognizers{watchedRecognizer{busy, c, false}, next}.Recognize(t.Context(), voice.NewUtterance(), voice.Options{}))(t)
		}
		if busy.uses != 2 || next.uses != 2 || c.Failures() > 0 || len(*faults) > 0 {
			t.Errorf("asked %d and %d times, %d failures, %v", busy.uses, next.uses, c.Failures(), *faults)
		}
	})
}

// slow is an engine that takes a second to begin its output, and another second to end it.
type slow struct{ *scripted }

func (s slow) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	_ = u.Send(ctx, func([]byte) error { return nil })
	time.Sleep(2 * time.Second)
	return s.scripted.Recognize(ctx, u, o)
}

func (s slow) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	time.Sleep(time.Second)
	defer time.Sleep(time.Second)
	return s.scripted.Synthesize(ctx, text, o, out)
}

func (s slow) Think(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
	time.Sleep(time.Second)
	defer time.Sleep(time.Second)
	return s.scripted.Think(ctx, turn, out)
}

// TestWaits: the wait for a recognizer begins at the end of speech; the waits for a synthesizer and a brain end at the
// first sound and the first reply. Trials and failures do not count.
func TestWaits(t *testing.T) {
	watched(t, func(t *testing.T, c *condition, _ *bytes.Buffer, _ *[]event.Event) {
		wants := func(uses int, median, p95 int64) {
			t.Helper()
			got := c.waits.summary()
			if uses == 0 && got != nil || uses > 0 && (got == nil || *got != admin.Wait{Uses: uses, Median: median, P95: p95}) {
				t.Errorf("the wait is %+v, want %d, %d, %d", got, uses, median, p95)
			}
			c.waits = new(waits)
		}
		engine, broken := slow{&scripted{}}, slow{&scripted{err: voice.ErrUnavailable}}
		recognize := func(r voice.Recognizer, trial bool) {
			u := voice.NewUtterance()
			var speaking sync.WaitGroup
			speaking.Go(func() {
				time.Sleep(5 * time.Second) // somebody speaks
				u.Finish()
			})
			_, _ = watchedRecognizer{r, c, trial}.Recognize(t.Context(), u, voice.Options{})
			speaking.Wait()
		}
		recognize(engine, false)
		wants(1, 2000, 2000)
		recognize(engine, true)
		recognize(broken, false)
		wants(0, 0, 0)
		c.Last = true
		for range 3 {
			_ = watchedSynthesizer{engine, c, false}.Synthesize(t.Context(), "words", voice.Options{}, func([]int16) error { return nil })
		}
		wants(3, 1000, 1000)
		_ = watchedSynthesizer{engine, c, true}.Synthesize(t.Context(), "words", voice.Options{}, func([]int16) error { return nil })
		wants(0, 0, 0)
		_ = watchedBrain{Brain: engine, condition: c}.Think(t.Context(), agent.Turn{}, func(agent.Reply) error { return nil })
		wants(1, 1000, 1000)
		for i := range 2 * maxWaits {
			c.waits.add(time.Duration(i) * time.Second)
		}
		wants(maxWaits, 149_000, 194_000)
	})
}
