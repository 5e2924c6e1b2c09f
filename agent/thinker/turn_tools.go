package thinker

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"perch/agent"
	"perch/device"
)

// TurnTools are the tools of a turn for a model that runs elsewhere, such as a
// coding agent's. They are the same tools, run in the same way, as Brain offers
// its own model. They may be used from any goroutine.
type TurnTools struct {
	k     *Brain
	set   toolset
	slot  chan struct{} // of the one call that may not run beside others
	acted atomic.Bool

	after agent.End    // set by the call in the slot
	end   atomic.Value // the agent.End of the calls that are over
}

// TurnTools collects the tools of a turn.
func (k *Brain) TurnTools(ctx context.Context, t agent.Turn) *TurnTools {
	u := &TurnTools{k: k, slot: make(chan struct{}, 1)}
	u.set = k.toolsOf(ctx, t, &u.after)
	return u
}

// Offered lists the tools, under names that all models accept.
func (u *TurnTools) Offered() []Tool { return u.set.offered }

// Acted reports whether a tool has run.
func (u *TurnTools) Acted() bool { return u.acted.Load() }

// End is what follows the turn, if a tool has set it.
func (u *TurnTools) End() agent.End {
	end, _ := u.end.Load().(agent.End)
	return end
}

// errNoTool is the result of a call to a tool that was not offered.
var errNoTool = errors.New("there is no such tool; use one of those offered")

// Call runs a tool. The model reads its error.
func (u *TurnTools) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	tool, found := u.set.find(name)
	if !found {
		return "", errNoTool
	}
	if !tool.together {
		select {
		case u.slot <- struct{}{}:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		defer func() {
			u.end.Store(u.after)
			<-u.slot
		}()
	}
	u.acted.Store(true)
	text, err := u.k.attempt(ctx, tool, args)
	if err != nil {
		return "", errors.New(device.Clip(err.Error(), mostAnswer))
	}
	return text, nil
}
