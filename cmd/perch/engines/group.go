package engines

import (
	"context"
	"sync"
)

// The groups of engines. A change of the configuration makes new engines only in the groups that it
// concerns: a change of a brain restarts no recognizer.
const (
	understanding = iota // no engines: the sentences that reflexes and grammars know
	hearing
	speaking
	thinking
	groups // their number
)

// group is a number of engines that are made and closed together.
type group struct {
	madeOf  any // compared with reflect.DeepEqual
	engines []*Engine
	closers []func()
	users   sync.WaitGroup     // turns, and other users that need the engines open
	stop    context.CancelFunc // ends the checks of the engines; nil before they begin
}

// close waits for the users of the engines and closes them.
func (g *group) close() {
	g.users.Wait()
	for _, end := range g.closers {
		end()
	}
}

// check checks the engines until ctx ends.
func (g *group) check(ctx context.Context) {
	var wg sync.WaitGroup
	for _, n := range g.engines {
		if n.check != nil {
			wg.Go(func() { n.condition.Watch(ctx, n.check) })
		}
	}
	wg.Wait()
}
