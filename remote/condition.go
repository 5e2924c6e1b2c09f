package remote

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Condition is whether an engine works, by its last use or its last check. An
// engine that fails is not tried for a while, longer each time, so that not every
// turn waits for it; the next in its list is used meanwhile. The failure is
// reported once.
type Condition struct {
	Part string // "recognizer wyoming"
	Last bool   // of its list: nothing follows, so it is always tried
	// Warns reports whether a check's error is something that an engine cannot do,
	// and not that it does not work; nil: none is.
	Warns func(error) bool

	log    *slog.Logger
	report func(cause string)
	now    func() time.Time

	mu    sync.Mutex
	state struct { // since when it fails, and why, or works; when it is tried again
		cause        error
		since, again time.Time
	}
	warning  error  // what does not keep it from working
	failures int    // in a row, not counting what only a look has mended
	all      uint64 // failures since the start
	use      struct {
		failed bool      // the last did, and not only a look
		at     time.Time // when that was
		well   bool      // the last went well
	}
	look struct {
		on    bool   // it is checked from time to time
		found looked // since it failed when it was used
	}
	reported struct {
		cause string
		at    time.Time
	}
	fell chan struct{} // has one element when it has begun to fail
}

// looked is the result of checks since an engine failed when it was used.
type looked int

const (
	looksFit  looked = iota // fit, as before: it failed all the same
	looksAway               // it is not there
	looksBack               // it was away, and is there again
)

// How long an engine that failed is left alone, and how long what was reported
// of it is not reported again.
const (
	firstRest   = 2 * time.Second
	LongestRest = time.Minute
	// restFactor is how many times longer than a failure took a rest is, and
	// mostRest how many times the longest is: a person who has waited for an engine
	// that hangs should not wait for it again in the next turn.
	restFactor  = 2
	mostRest    = 20
	reportEvery = 10 * time.Minute
	// DespiteLooks is how long after a failed use one is tried although it does
	// not look well.
	DespiteLooks = 5 * time.Minute
)

// NewCondition returns the condition of an engine that was never used. Report is
// called once with what keeps it from working.
func NewCondition(part string, log *slog.Logger, report func(cause string), now func() time.Time) *Condition {
	return &Condition{Part: part, log: log, report: report, now: now, fell: make(chan struct{}, 1)}
}

// Now is the condition's clock.
func (c *Condition) Now() time.Time { return c.now() }

// Resting says why an engine is not tried now, or nothing. Only one that failed
// when it was used is left alone: a look may be refused where a use is not, as
// by a key that is for speech alone.
func (c *Condition) Resting() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	rested := !now.Before(c.state.again)
	if c.look.on && c.look.found != looksFit {
		rested = c.look.found == looksBack || now.Sub(c.use.at) >= DespiteLooks
	}
	if c.Last || !c.use.failed || rested {
		return nil
	}
	return c.state.cause
}

// Limits is what it cannot do, where it works.
func (c *Condition) Limits() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warning
}

// Status is since when it works, or fails and why, and when it is tried again.
func (c *Condition) Status() (since, again time.Time, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.since, c.state.again, c.state.cause
}

// Failures counts the failures since the start.
func (c *Condition) Failures() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Used takes note of what came of a use that began then.
func (c *Condition) Used(began time.Time, err error) {
	if err != nil {
		c.failed(err, true, c.now().Sub(began))
		return
	}
	c.mu.Lock()
	c.failures, c.use.failed, c.use.well = 0, false, true
	c.mu.Unlock()
	c.works()
}

// works takes note that it does, as far as can be seen. That clears no failure
// of work: it may look well and fail all the same, as with a wrong key where
// the list of models needs none, or a server that hangs when it has something to
// do. Only what was away, and is there again, may be tried at once.
func (c *Condition) works() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.use.failed {
		if c.look.found == looksAway {
			c.look.found = looksBack
		}
		return
	}
	if c.state.cause != nil {
		c.log.Info("an engine works again", "engine", c.Part)
	}
	if c.state.cause != nil || c.state.since.IsZero() {
		c.state.since = c.now()
	}
	c.state.cause = nil
}

// failed takes note of a failure, when it was used or looked at, and reports
// what was not reported yet. The result of a use counts for more than that of
// a check.
func (c *Condition) failed(err error, inUse bool, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !inUse && c.use.well {
		return
	}
	c.use.well = false
	now := c.now()
	c.state.again = now.Add(restAfter(took, c.failures))
	c.failures++
	c.all++
	c.look.found = looksAway
	if inUse {
		c.use.at, c.look.found = now, looksFit
		select {
		case c.fell <- struct{}{}:
		default: // it has not been checked yet
		}
	} else if c.use.failed {
		return
	}
	if c.state.cause == nil {
		c.state.since = now
	}
	c.state.cause, c.use.failed = err, inUse
	if err.Error() == c.reported.cause && now.Sub(c.reported.at) < reportEvery {
		return
	}
	c.reported.cause, c.reported.at = err.Error(), now
	c.log.Warn("an engine does not work; where another follows it in its list, that one is used", "engine", c.Part, "err", err)
	c.report(err.Error())
}

// restAfter is how long an engine is left alone that has failed so often before.
func restAfter(took time.Duration, failures int) time.Duration {
	longest := min(max(LongestRest, mostRest*took), DespiteLooks)
	return min(max(firstRest, restFactor*took)<<min(failures, 10), longest)
}

// Warned takes note of something that an engine cannot do.
func (c *Condition) Warned(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warning = err
}

// Watch checks an engine that failed, and one that was never used, until ctx ends.
func (c *Condition) Watch(ctx context.Context, check func(context.Context) error) {
	c.watching(true)
	defer c.watching(false)
	for {
		within, cancel := context.WithTimeout(ctx, checkWithin)
		err := check(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case c.warns(err):
			if c.Limits() == nil {
				c.log.Warn("an engine cannot do all that is asked of it", "engine", c.Part, "err", err)
			}
			c.Warned(err)
			c.works()
		case err != nil:
			c.failed(err, false, 0)
		default:
			c.works()
		}
		if _, _, cause := c.Status(); err == nil || c.warns(err) || cause == nil {
			select {
			case <-c.fell:
			case <-ctx.Done():
				return
			}
		}
		_, again, _ := c.Status()
		if Sleep(ctx, again.Sub(c.now())) != nil {
			return
		}
	}
}

func (c *Condition) warns(err error) bool { return err != nil && c.Warns != nil && c.Warns(err) }

func (c *Condition) watching(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look.on = on
}

// checkWithin is how long a look at an engine may take.
const checkWithin = 20 * time.Second
