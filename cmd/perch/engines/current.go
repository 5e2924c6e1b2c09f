package engines

import (
	"context"
	"sync"
)

// Current holds the engines for the next turns.
type Current struct {
	mu      sync.Mutex
	engines *Set
	ctx     context.Context // of Run; nil before it
	checks  sync.WaitGroup
	closing sync.WaitGroup // of engines that were replaced
}

// Engines returns the engines, which may be closed while the caller uses them.
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

// Replace replaces the engines for the next turns.
func (c *Current) Replace(next *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.check(next.without(c.engines))
	c.engines = next
}

// Retire closes the engines of before that were replaced, once the last turn with them has ended. No
// turn can begin with them any more.
func (c *Current) Retire(before *Set) {
	for _, g := range before.without(c.Engines()) {
		c.closing.Go(func() {
			if g.stop != nil {
				g.stop()
			}
			g.close()
		})
	}
}

// check checks engines while Run runs. c.mu is held.
func (c *Current) check(all []*group) {
	if c.ctx == nil {
		return
	}
	for _, g := range all {
		var ctx context.Context
		ctx, g.stop = context.WithCancel(c.ctx)
		c.checks.Go(func() { g.check(ctx) })
	}
}

// Run checks the engines until ctx ends.
func (c *Current) Run(ctx context.Context) {
	c.mu.Lock()
	c.ctx = ctx
	c.check(c.engines.without(nil))
	c.mu.Unlock()
	<-ctx.Done()
	c.checks.Wait()
}

// Close closes all engines, once nobody uses them.
func (c *Current) Close() {
	if e := c.Engines(); e != nil {
		e.Close()
	}
	c.closing.Wait()
}
