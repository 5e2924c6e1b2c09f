package machine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// TestTheClockIsSet: check returns each jump of the clock once. Small corrections of the clock are no jumps.
func TestTheClockIsSet(t *testing.T) {
	at := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	s, running := clockWatch{wall: at}, time.Duration(0)
	for _, c := range []struct{ off, want time.Duration }{
		{0, 0}, {time.Second, 0}, {-time.Second, 0}, {0, 0},
		{5 * 365 * 24 * time.Hour, 5 * 365 * 24 * time.Hour}, {0, 0}, {-24 * time.Hour, -24 * time.Hour}, {0, 0},
	} {
		running += watchEvery
		at = at.Add(watchEvery + c.off)
		if by := s.check(at, running); by != c.want {
			t.Errorf("off by %s it is told to have jumped by %s", c.off, by)
		}
	}
}

// TestAClockThatCannotBeRight: the error for a clock that shows a time before the build contains a remedy.
func TestAClockThatCannotBeRight(t *testing.T) {
	for _, c := range []struct {
		built, now string
		right      bool
	}{
		{"", "2026-07-27T12:00:00Z", true},
		{"", "1970-01-01T00:01:00Z", false},
		{"", "2025-12-30T23:59:59Z", false},
		{"2027-03-01T10:00:00Z", "2027-02-28T11:00:00Z", true}, // the build machine's clock may be a day ahead
		{"2027-03-01T10:00:00Z", "2027-02-20T11:00:00Z", false},
		{"2027-03-01T10:00:00Z", "2032-02-20T11:00:00Z", true},
		{"no time", "2026-07-27T12:00:00Z", true},
	} {
		err := CheckClock(must.Value(time.Parse(time.RFC3339, c.now))(t), BuiltAt(c.built))
		if (err == nil) != c.right {
			t.Errorf("built %q, at %s: %v", c.built, c.now, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "time server") || !strings.Contains(err.Error(), "this program was built on")) {
			t.Errorf("it names no cause or no cure: %v", err)
		}
	}
}

// TestConditions checks the conditions of a disk to which nothing can be written and of a wrong clock.
func TestConditions(t *testing.T) {
	if p := diskCondition(t.TempDir(), errors.New("no space left on device")); p.OK || p.Vital ||
		!strings.Contains(p.Note, "nothing can be stored: no space left") {
		t.Errorf("a disk that refuses: %+v", p)
	}
	if p := clockCondition(time.Unix(0, 0), time.Now()); p.OK || p.Vital || !strings.Contains(p.Note, "time server") {
		t.Errorf("a clock that is wrong: %+v", p)
	}
}
