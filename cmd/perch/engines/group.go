package engines

import (
	"context"
	"sync"
)

// The groups of engines. A change of the configuration replaces only the engines of the affected
// groups: a change of a brain does not restart a recognizer.
const (
	sentencesGroup = iota // not engines, but the sentences that the reflex brain and the embedded recognizer understand
	recognizersGroup
	synthesizersGroup
	brainsGroup
	numGroups
)

// group holds engines that are made and closed together.
type group struct {
	madeFrom   any // the configuration of the engines, compared with reflect.DeepEqual
	engines    []*Engine
	closers    []func()
	users      sync.WaitGroup     // turns and other tasks that need the engines open
	stopChecks context.CancelFunc // ends runChecks; nil before it is started
}

// close waits until no engine of the group is in use, and closes the engines.
func (g *group) close() {
	g.users.Wait()
	for _, closeEngine := range g.closers {
		closeEngine()
	}
}

// runChecks checks the engines now and after each failed use, until ctx is done.
func (g *group) runChecks(ctx context.Context) {
	var wg sync.WaitGroup
	for _, n := range g.engines {
		if n.quickCheck != nil {
			wg.Go(func() { n.condition.Watch(ctx, n.quickCheck) })
		}
	}
	wg.Wait()
}
