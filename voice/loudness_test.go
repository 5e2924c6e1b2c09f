package voice

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLoudnessFollowsOnlyWatchedVoices checks that a Loudness stores nothing before the first
// call of Level or for a silent voice, and allocates nothing while a voice speaks.
func TestLoudnessFollowsOnlyWatchedVoices(t *testing.T) {
	var l Loudness
	m := l.Mouth("a")
	now := time.Now()
	packet := func() {
		m.Queue([]float64{0.5, 1}, now.Add(FrameDuration))
		for range 2 {
			m.Update(now)
			now = now.Add(LevelDuration)
		}
	}
	if packet(); len(l.speaking) > 0 || len(m.queued) > 0 {
		t.Error("it follows what nobody watches")
	}
	l.Level("a")
	packet()
	if level, _ := l.Level("a"); level != 1 {
		t.Errorf("it is open by %g", level)
	}
	if n := testing.AllocsPerRun(1000, packet); n > 0 {
		t.Errorf("%g allocations for each packet", n)
	}
	m.Shut()
	l.SetEnd("a", now)
	if !l.End("a").Equal(now) {
		t.Error("the end of a program's sound is not known")
	}
	if l.SetEnd("a", time.Time{}); len(l.speaking)+len(l.ends) > 0 {
		t.Errorf("it keeps %v and %v", l.speaking, l.ends)
	}
}

// TestMouth checks that Mouth.Run sets the levels in order, and sets the level 0 at the end.
func TestMouth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Loudness
		is := func(want float64) {
			t.Helper()
			synctest.Wait()
			if level, _ := l.Level("a"); level != want {
				t.Errorf("it is open by %g, want %g", level, want)
			}
		}
		is(0)
		ctx, stop := context.WithCancel(t.Context())
		given := make(chan []float64)
		var running sync.WaitGroup
		m := l.Mouth("a")
		running.Go(func() { m.Run(ctx, given) })
		given <- []float64{0.2, 0.4}
		given <- []float64{0.6}
		for _, want := range []float64{0.2, 0.4, 0.6, 0} {
			is(want)
			time.Sleep(LevelDuration)
		}
		time.Sleep(time.Minute)
		given <- []float64{0.8, 0.9}
		is(0.8)
		stop()
		running.Wait()
		is(0)
	})
}
