package remote

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Condition is whether an engine works, by its last use or check. An engine that fails is
// not tried for a while, longer each time, so that not every turn waits for it; the next in
// the list is used instead. Each failure is reported once.
type Condition struct {
	Part string // such as "recognizer wyoming"
	Last bool   // in its list: nothing follows, so it is always tried
	// Warns reports whether a check's error is only a limitation of an engine that
	// works; nil means no error is.
	Warns func(error) bool

	log    *slog.Logger
	report func(cause string)
	now    func() time.Time

	mu    sync.Mutex
	state struct { // since when and why it fails, or works; when it is tried again
		cause        error
		since, again time.Time
	}
	warning  error  // a limitation, despite which it works
	failures int    // since the last successful use
	all      uint64 // failures since the start
	use      struct {
		failed bool      // the last use failed, not only a check
		at     time.Time // time of the last use
		well   bool      // the last use succeeded
	}
	check struct {
		watched bool        // it is checked from time to time
		result  checkResult // since the last failed use
	}
	reported struct {
		cause string
		at    time.Time
	}
	failure chan struct{} // has one element after the first failure
}

// checkResult is the result of checks since an engine failed in use.
type checkResult int

const (
	checkFit  checkResult = iota // fit, as before: it failed nevertheless
	checkAway                    // unreachable
	checkBack                    // reachable again
)

// How long an engine that failed is not tried, and how long its failure is not reported
// again.
const (
	firstRest   = 2 * time.Second
	LongestRest = time.Minute
	// restFactor is the length of a rest as a multiple of the failure's duration, and
	// maxRest the longest rest: a person who has waited for an engine that hangs should
	// not wait for it again in the next turn.
	restFactor  = 2
	maxRest     = 20
	reportEvery = 10 * time.Minute
	// DespiteChecks is how long after a failed use an engine is tried although its checks
	// fail.
	DespiteChecks = 5 * time.Minute
)

// NewCondition returns the condition of an engine that was never used. report is called once
// for each cause of failure.
func NewCondition(part string, log *slog.Logger, report func(cause string), now func() time.Time) *Condition {
	return &Condition{Part: part, log: log, report: report, now: now, failure: make(chan struct{}, 1)}
}

// Now returns the time of the condition's clock.
func (c *Condition) Now() time.Time { return c.now() }

// Resting returns why an engine is not tried now, or nil. Only a failed use causes a rest: a
// check may fail although a use works, as with a key that allows speech only.
func (c *Condition) Resting() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	rested := !now.Before(c.state.again)
	if c.check.watched && c.check.result != checkFit {
		rested = c.check.result == checkBack || now.Sub(c.use.at) >= DespiteChecks
	}
	if c.Last || !c.use.failed || rested {
		return nil
	}
	return c.state.cause
}

// Limits returns the limitation of an engine that works, or nil.
func (c *Condition) Limits() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warning
}

// Status returns since when it works, or fails and why, and when it is tried again.
func (c *Condition) Status() (since, again time.Time, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.since, c.state.again, c.state.cause
}

// Failures returns the number of failures since the start.
func (c *Condition) Failures() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Used records the result of a use that began at began.
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

// works records a successful check. That does not clear a failed use: an engine may pass
// checks and fail in use, as with a wrong key if the list of models needs none, or a server
// that hangs under work. Only an engine that was unreachable and is back is tried at once.
func (c *Condition) works() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.use.failed {
		if c.check.result == checkAway {
			c.check.result = checkBack
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

// failed records a failed use or check, and reports it if it is new. The result of a use
// overrides a check's.
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
	c.check.result = checkAway
	if inUse {
		c.use.at, c.check.result = now, checkFit
		select {
		case c.failure <- struct{}{}:
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

// restAfter returns how long an engine is not tried after that many failures.
func restAfter(took time.Duration, failures int) time.Duration {
	longest := min(max(LongestRest, maxRest*took), DespiteChecks)
	return min(max(firstRest, restFactor*took)<<min(failures, 10), longest)
}

// Warned records a limitation.
func (c *Condition) Warned(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warning = err
}

// Watch checks an engine that failed or was never used, until ctx ends.
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
			case <-c.failure:
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
	c.check.watched = on
}

// checkWithin bounds a check.
const checkWithin = 20 * time.Second
