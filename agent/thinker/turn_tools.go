package thinker

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"perch/agent"
)

// TurnTools are what a turn may use, for a brain whose model is elsewhere, as a
// coding agent's is: those that a thinker would offer its own, run as it runs
// them. They may be used from any goroutine.
type TurnTools struct {
	k     *Brain
	set   toolset
	turn  chan struct{} // a place for the one call that may not run beside others
	acted atomic.Bool

	after agent.End // of the call that has that place
	mu    sync.Mutex
	end   agent.End
}

// TurnTools collects what a turn may use.
func (k *Brain) TurnTools(ctx context.Context, t agent.Turn) *TurnTools {
	u := &TurnTools{k: k, turn: make(chan struct{}, 1)}
	u.set = k.toolsOf(ctx, t, &u.after)
	return u
}

// Offered are the tools, under names that every model takes.
func (u *TurnTools) Offered() []Tool { return u.set.offered }

// Acted reports whether one has run.
func (u *TurnTools) Acted() bool { return u.acted.Load() }

// End is what follows the turn, where one has said so.
func (u *TurnTools) End() agent.End {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.end
}

// errNoTool is the answer to a model that calls what it was not offered.
var errNoTool = errors.New("there is no such tool; use one of those offered")

// Call runs a tool. Its error is for the model to read.
func (u *TurnTools) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	tool, found := u.set.find(name)
	if !found {
		return "", errNoTool
	}
	if !tool.together {
		select {
		case u.turn <- struct{}{}:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		defer func() {
			u.mu.Lock()
			u.end = u.after
			u.mu.Unlock()
			<-u.turn
		}()
	}
	u.acted.Store(true)
	text, err := u.k.attempt(ctx, tool, args)
	if err != nil {
		return "", errors.New(clip(err.Error(), mostAnswer))
	}
	return text, nil
}
