package limit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"perch/limit"
)

func TestFirst(t *testing.T) {
	oldest := func(a, b time.Duration) int { return int(a - b) }
	if got := limit.First(map[string]time.Duration{"b": 2, "a": 1, "c": 3}, oldest); got != "a" {
		t.Errorf("%q gives way", got)
	}
	if got := limit.First(map[string]time.Duration{}, oldest); got != "" {
		t.Errorf("%q gives way in an empty map", got)
	}
}

// TestPace checks that the messages of one second pass at once, and that further messages pass at the limited
// rate.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, p := time.Now(), limit.PerSecond(10)
		for range 30 {
			p.Took(1)
			p.Wait(nil)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("30 took %s", took)
		}
		var none limit.Pace
		none.Took(1000)
		none.Wait(nil)
		over := make(chan struct{})
		close(over)
		p.Took(1000)
		p.Wait(over)
	})
}
