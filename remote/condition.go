package remote

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Condition records whether an engine works, by its last use or check. An engine that has
// failed is not used for a while, which is called its rest: turns use the next engine of the list
// instead. Each further failure makes the rest longer. A repeated failure is reported at most
// every ten minutes. A Condition is safe for concurrent use.
type Condition struct {
	Part string // role and kind of the engine, such as "recognizer wyoming"
	Last bool   // whether the engine is the last of its list; such an engine never rests
	// Warns reports whether the error of a check is only a limitation of an engine that
	// works; nil means that every error is a failure.
	Warns func(error) bool

	log    *slog.Logger
	report func(cause string)
	now    func() time.Time

	mu    sync.Mutex
	state struct {
		cause error     // why the engine fails; nil while the engine works
		since time.Time // when the engine began to work or to fail; zero before the first result
		again time.Time // end of the latest rest
	}
	warning  error  // limitation of an engine that works; nil without limitations
	failures int    // number of failures since the last successful use
	all      uint64 // number of failures since the start
	use      struct {
		failed bool      // whether the last use failed
		at     time.Time // time of the last failed use
		well   bool      // whether the last use succeeded
	}
	check struct {
		watched bool        // whether Watch is running
		result  checkResult // result of the checks since the last failed use
	}
	reported struct { // the latest report
		cause string
		at    time.Time
	}
	failure chan struct{} // holds one element after a failed use that Watch has not seen yet
}

// checkResult is the result of the checks since an engine failed in use.
type checkResult int

const (
	checkFit  checkResult = iota // no check has failed since the failed use
	checkAway                    // the latest check has failed
	checkBack                    // a check has succeeded after a failed one
)

// Durations of rests and reports.
const (
	firstRest   = 2 * time.Second // rest after the first failure; each further failure doubles the rest
	LongestRest = time.Minute     // maximum rest after failures of quick uses
	// After the failure of a slow use, a rest takes restFactor to maxRestFactor times as
	// long as the use. A person who has waited for a hanging engine should not wait for
	// the engine again in the next turn.
	restFactor    = 2
	maxRestFactor = 20
	reportEvery   = 10 * time.Minute // minimum time between two reports of the same failure
	// DespiteChecks is the time after a failed use until an engine is used again although
	// its checks fail. It is also the longest rest after any failure.
	DespiteChecks = 5 * time.Minute
)

// NewCondition returns the condition of an engine that was never used. The condition calls report
// with the error sentence of each failure that differs from the failure reported last, or follows it
// after ten minutes. now is the clock.
func NewCondition(part string, log *slog.Logger, report func(cause string), now func() time.Time) *Condition {
	return &Condition{Part: part, log: log, report: report, now: now, failure: make(chan struct{}, 1)}
}

// Now returns the time by the clock of the condition.
func (c *Condition) Now() time.Time { return c.now() }

// Resting returns the failure that makes the engine rest, or nil if the engine can be used.
// Only a failed use causes a rest: a check may fail although uses succeed, for example if the
// key allows speech only.
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

// Limits returns the limitation that was recorded last, by a check or a use, or nil.
func (c *Condition) Limits() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warning
}

// Status returns when the engine began to work or to fail, the end of its latest rest, and why the
// engine fails. cause is nil while the engine works; since is zero before the first result.
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

// RecordUse records the result of a use of the engine. began is when the use began.
func (c *Condition) RecordUse(began time.Time, err error) {
	if err != nil {
		c.recordFailure(err, true, c.now().Sub(began))
		return
	}
	c.mu.Lock()
	c.failures, c.use.failed, c.use.well = 0, false, true
	c.mu.Unlock()
	c.recordSuccess()
}

// recordSuccess records a successful use or check. A successful check does not clear a failed use,
// because an engine may pass its checks and fail in use: the list of models may need no key,
// or the server may hang under load. After a failed use, a check ends the rest only if an
// earlier check has failed.
func (c *Condition) recordSuccess() {
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

// recordFailure records a failed use or check, and reports the failure if it is new (see
// NewCondition). took is how long the use took, and 0 for a check. A failed check is ignored if the last
// use has succeeded.
func (c *Condition) recordFailure(err error, inUse bool, took time.Duration) {
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
		default: // Watch has not seen the previous failure yet
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
	c.log.Warn("an engine does not work; the next engine of its list is used, if there is one", "engine", c.Part, "err", err)
	c.report(err.Error())
}

// restAfter returns how long an engine rests after a failure. took is the duration of the failed
// use, and failures is the number of earlier failures.
func restAfter(took time.Duration, failures int) time.Duration {
	longest := min(max(LongestRest, maxRestFactor*took), DespiteChecks)
	return min(max(firstRest, restFactor*took)<<min(failures, 10), longest)
}

// RecordLimits records a limitation of the engine, which Limits returns; nil removes it.
func (c *Condition) RecordLimits(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warning = err
}

// Watch checks the engine now, and at the end of the rest after each failed use, until ctx ends. After
// a failed check it checks again at the end of the next rest, until a check or a use has succeeded.
func (c *Condition) Watch(ctx context.Context, check func(context.Context) error) {
	c.setWatched(true)
	defer c.setWatched(false)
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
			c.RecordLimits(err)
			c.recordSuccess()
		case err != nil:
			c.recordFailure(err, false, 0)
		default:
			c.RecordLimits(nil)
			c.recordSuccess()
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

// warns reports whether the error of a check is only a limitation.
func (c *Condition) warns(err error) bool { return err != nil && c.Warns != nil && c.Warns(err) }

// setWatched records whether Watch is running.
func (c *Condition) setWatched(watched bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.check.watched = watched
}

// checkWithin is the maximum duration of a check.
const checkWithin = 20 * time.Second
