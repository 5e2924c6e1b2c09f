package engines

import (
	"context"
	"reflect"
	"slices"
	"sync"
)

// The groups of engines. A change of the configuration makes new engines only in the groups that it
// is about: a brain's change restarts no recognizer.
const (
	understanding = iota // no engines: the sentences that reflexes and grammars know
	hearing
	speaking
	thinking
	groups // so many
)

// group are engines that are made and closed together.
type group struct {
	madeOf  any // compared with reflect.DeepEqual
	engines []*Engine
	closers []func()
	users   sync.WaitGroup     // turns, and others that need the engines open
	stop    context.CancelFunc // ends the checks of the engines; nil if nothing checks them
}

// close releases the engines once nobody uses them any more.
func (g *group) close() {
	g.users.Wait()
	for _, end := range g.closers {
		end()
	}
}

// tend looks after the engines until ctx ends.
func (g *group) tend(ctx context.Context) {
	var wg sync.WaitGroup
	for _, n := range g.engines {
		if n.look != nil {
			wg.Go(func() { n.condition.Watch(ctx, n.look) })
		}
	}
	wg.Wait()
}

// form takes over a group of the engines before that was made of the same, or makes it.
func (e *engines) form(i int, madeOf any, make func() error, before *engines) error {
	if before != nil && reflect.DeepEqual(before.groups[i].madeOf, madeOf) {
		e.groups[i] = before.groups[i]
		e.All = append(e.All, e.groups[i].engines...)
		switch i {
		case understanding:
			e.Book, e.books, e.words = before.Book, before.books, before.words
		case hearing:
			e.recognizers, e.loads = before.recognizers, before.loads
		case speaking:
			e.synthesizers = before.synthesizers
		case thinking:
			e.brains, e.deep, e.sources = before.brains, before.deep, before.sources
		}
		return nil
	}
	first := len(e.All)
	e.closers = nil
	err := make()
	e.groups[i] = &group{madeOf: madeOf, engines: slices.Clone(e.All[first:]), closers: e.closers}
	return err
}

// without returns the groups that others, which may be nil, do not have.
func (e *engines) without(others *engines) (all groupList) {
	for i, g := range e.groups {
		if g != nil && (others == nil || others.groups[i] != g) {
			all = append(all, g)
		}
	}
	return all
}

// groupList are some groups.
type groupList []*group

func (l groupList) close() {
	for _, g := range l {
		g.close()
	}
}

// Hold keeps the engines open until done is called.
func (e *engines) Hold() (done func()) {
	for _, g := range e.groups {
		g.users.Add(1)
	}
	return func() {
		for _, g := range e.groups {
			g.users.Done()
		}
	}
}

// Close releases all engines.
func (e *engines) Close() { e.without(nil).close() }

// currentEngines are the engines that the next turn is given.
type currentEngines struct {
	mu      sync.Mutex
	engines *engines
	ctx     context.Context // of Run; nil before it
	tending sync.WaitGroup
	closing sync.WaitGroup // of engines that were replaced
}

// Get returns the engines, for those who ask how they do.
func (c *currentEngines) Get() *engines {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engines
}

// Hold returns the engines, which stay open until done is called.
func (c *currentEngines) Hold() (e *engines, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engines, c.engines.Hold()
}

// Replace gives the turns to come other engines.
func (c *currentEngines) Replace(next *engines) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tend(next.without(c.engines))
	c.engines = next
}

// Retire closes those of the engines before that are not in use any more, once the last
// turn with them has ended. It is called when nobody can begin one with them.
func (c *currentEngines) Retire(before *engines) {
	for _, g := range before.without(c.Get()) {
		c.closing.Go(func() {
			if g.stop != nil {
				g.stop()
			}
			g.close()
		})
	}
}

// tend looks after groups while Run runs. c.mu is held.
func (c *currentEngines) tend(all groupList) {
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
func (c *currentEngines) Run(ctx context.Context) {
	c.mu.Lock()
	c.ctx = ctx
	c.tend(c.engines.without(nil))
	c.mu.Unlock()
	<-ctx.Done()
	c.tending.Wait()
}

// Close releases all engines, once nobody uses them.
func (c *currentEngines) Close() {
	if e := c.Get(); e != nil {
		e.Close()
	}
	c.closing.Wait()
}
