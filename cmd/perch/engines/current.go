package engines

import (
	"context"
	"sync"
)

// Current holds the engines that the next turns use.
type Current struct {
	mu      sync.Mutex
	engines *Set
	ctx     context.Context // the context of Run; nil before Run is called
	checks  sync.WaitGroup  // goroutines that check engines
	closing sync.WaitGroup  // goroutines that close replaced engines
}

// Engines returns the engines. They may be closed while the caller uses them; see Acquire.
func (c *Current) Engines() *Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engines
}

// Acquire returns the engines, which stay open until done is called.
func (c *Current) Acquire() (e *Set, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engines, c.engines.Acquire()
}

// Replace makes the next turns use next. The previous engines stay open until Retire.
func (c *Current) Replace(next *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startChecks(next.groupsNotIn(c.engines))
	c.engines = next
}

// Retire closes the engines in before that are not in the current Set, when the last of their users has called
// the function that Acquire returned. Retire itself returns at once.
func (c *Current) Retire(before *Set) {
	for _, g := range before.groupsNotIn(c.Engines()) {
		c.closing.Go(func() {
			if g.stopChecks != nil {
				g.stopChecks()
			}
			g.close()
		})
	}
}

// startChecks starts to check groups of engines, if Run is running. c.mu must be held.
func (c *Current) startChecks(groups []*group) {
	if c.ctx == nil {
		return
	}
	for _, g := range groups {
		var ctx context.Context
		ctx, g.stopChecks = context.WithCancel(c.ctx)
		c.checks.Go(func() { g.runChecks(ctx) })
	}
}

// Run checks the engines now and after each failed use, until ctx is done.
func (c *Current) Run(ctx context.Context) {
	c.mu.Lock()
	c.ctx = ctx
	c.startChecks(c.engines.groupsNotIn(nil))
	c.mu.Unlock()
	<-ctx.Done()
	c.checks.Wait()
}

// Close waits until no engine is in use, and closes all of them.
func (c *Current) Close() {
	if e := c.Engines(); e != nil {
		e.Close()
	}
	c.closing.Wait()
}
