package packaging_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
)

// TestTheSoakJudges holds what counts as a talk that broke, and what is somebody
// else's doing: a machine that is busy must not hide what is never right.
func TestTheSoakJudges(t *testing.T) {
	from := time.Now()
	at := func(seconds int) time.Time { return from.Add(time.Duration(seconds) * time.Second) }
	dry := func(v *verdict) { v.turns[0].Underruns = 1 }
	unanswered := func(v *verdict) { v.turns[0].Answered = false }
	ignored := func(n int) func(*verdict) { return func(v *verdict) { v.stats.Ignored = n } }
	troubled := func(r reach, from, to int) func(*soak) {
		return func(s *soak) { s.troubles = append(s.troubles, &trouble{r, at(from), at(to)}) }
	}
	late := func(d time.Duration, others bool) func(*soak) {
		return func(s *soak) { s.stalls.seen = append(s.stalls.seen, stall{at(5), d, others}) }
	}
	for name, c := range map[string]struct {
		talk  func(*verdict)
		state func(*soak)
		fails bool
	}{
		"all is well":                  {},
		"a pause":                      {talk: dry, fails: true},
		"a pause, an engine being ill": {talk: dry, state: troubled(speakers, 4, 6)},
		"a pause, an engine having been ill before": {talk: dry, state: troubled(speakers, -9, -4), fails: true},
		"a pause, the machine late by a little":     {talk: dry, state: late(60*time.Millisecond, false), fails: true},
		"a pause, the machine late":                 {talk: dry, state: late(120*time.Millisecond, false)},
		"a pause, the machine others' for a moment": {talk: dry, state: late(500*time.Millisecond, true), fails: true},
		"a pause, the machine others'":              {talk: dry, state: late(3*time.Second, true)},
		"a pause, the disk full":                    {talk: dry, state: troubled(disk, 4, 6), fails: true},
		"no answer":                                 {talk: unanswered, fails: true},
		"no answer, an engine being ill":            {talk: unanswered, state: troubled(speakers, 4, 6), fails: true},
		"no answer, the machine others'":            {talk: unanswered, state: late(500*time.Millisecond, true), fails: true},
		"no answer, in a power cut":                 {talk: unanswered, state: troubled(everybody, 4, 6)},
		"no answer, a power cut that goes on": {talk: unanswered,
			state: func(s *soak) { s.troubles = []*trouble{{reach: everybody, from: at(4)}} }},
		"switched off": {talk: func(v *verdict) { v.vanished, v.err = true, context.Canceled }},
		"hung up on":   {talk: func(v *verdict) { v.hungUp = "EOF" }, fails: true},
		"an error":     {talk: func(v *verdict) { v.err = errors.New("check in: 503") }, fails: true},
		"an error, the machine others'": {talk: func(v *verdict) { v.err = errors.New("check in: 503") },
			state: late(500*time.Millisecond, true), fails: true},
		"the first packet too early":       {talk: ignored(1)},
		"many too early":                   {talk: ignored(3), fails: true},
		"many too early, the machine late": {talk: ignored(3), state: late(60*time.Millisecond, false)},
		"packets dropped, the machine others'": {talk: func(v *verdict) { v.stats.Dropped = 1 }, state: late(500*time.Millisecond, true),
			fails: true},
	} {
		s := &soak{ctx: t.Context(), began: from, quietly: true}
		v := verdict{robot: "a robot", from: at(1), to: at(9), turns: []seenTurn{{at(3), at(8), simrobot.Turn{Answered: true}}}}
		if c.talk != nil {
			c.talk(&v)
		}
		if c.state != nil {
			c.state(s)
		}
		s.judge(v)
		if got := s.failed(); (len(got) > 0) != c.fails {
			t.Errorf("%s: failures %q", name, got)
		}
	}
}

// TestTheSoaksWatchdog: one that is fed is content, one that is not tells for how
// long.
func TestTheSoaksWatchdog(t *testing.T) {
	for name, c := range map[string]struct {
		feeds []time.Duration // since the start
		ended time.Duration
		fails bool
	}{
		"fed":              {[]time.Duration{0, 10 * time.Second, 20 * time.Second}, 29 * time.Second, false},
		"never":            {nil, time.Second, true},
		"late":             {[]time.Duration{0, 40 * time.Second}, 41 * time.Second, true},
		"not to the end":   {[]time.Duration{0, 10 * time.Second}, 50 * time.Second, true},
		"killed at a feed": {[]time.Duration{0, 10 * time.Second}, 10 * time.Second, false},
	} {
		failed := false
		m := &soakManager{fail: func(string, ...any) { failed = true }}
		start := time.Now()
		for _, at := range c.feeds {
			m.feed(start.Add(at))
		}
		if m.ended(start.Add(c.ended)); failed != c.fails {
			t.Errorf("%s: failed is %v", name, failed)
		}
	}
}

// TestRacesInTheLogAreFound: what the race detector writes among the lines of the log.
func TestRacesInTheLogAreFound(t *testing.T) {
	const report = "WARNING: DATA RACE\nWrite at 0x00c0 by goroutine 7:\n  main.f()\n"
	log := "level=INFO msg=one\n==================\n" + report + "==================\nlevel=INFO msg=two\n==================\n" + report +
		"==================\nFound 2 data race(s)\n"
	if found := races(log); len(found) != 2 || found[0] != report || found[1] != report {
		t.Errorf("found %q", found)
	}
	if found := races("level=INFO msg=one\n"); len(found) != 0 {
		t.Errorf("found %q", found)
	}
}
