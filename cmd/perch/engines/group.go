package engines

import (
	"context"
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

// groupList are some groups.
type groupList []*group

func (l groupList) close() {
	for _, g := range l {
		g.close()
	}
}
