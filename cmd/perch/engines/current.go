package engines

import (
	"context"
	"sync"
)

// Current are the engines of the turns to come.
type Current struct {
	mu      sync.Mutex
	engines *Set
	ctx     context.Context // of Run; nil before it
	tending sync.WaitGroup
	closing sync.WaitGroup // of engines that were replaced
}

// Engines returns the engines, for those who ask how they do.
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

// Replace gives the turns to come other engines.
func (c *Current) Replace(next *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tend(next.without(c.engines))
	c.engines = next
}

// Retire closes those of the engines before that are not in use any more, once the last
// turn with them has ended. It is called when nobody can begin one with them.
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

// tend looks after groups while Run runs. c.mu is held.
func (c *Current) tend(all groupList) {
	if c.ctx == nil {
		return
	}
	for _, g := range all {
		var ctx context.Context
		ctx, g.stop = context.WithCancel(c.ctx)
		c.tending.Go(func() { g.tend(ctx) })
	}
}

// Run looks after the engines until ctx ends.
func (c *Current) Run(ctx context.Context) {
	c.mu.Lock()
	c.ctx = ctx
	c.tend(c.engines.without(nil))
	c.mu.Unlock()
	<-ctx.Done()
	c.tending.Wait()
}

// Close releases all engines, once nobody uses them.
func (c *Current) Close() {
	if e := c.Engines(); e != nil {
		e.Close()
	}
	c.closing.Wait()
}
