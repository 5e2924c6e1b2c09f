package hooks

import (
	"cmp"
	"fmt"

	"perch/agent"
	"perch/event"
)

// name returns the name of a session in published events. It depends only on the slot, which
// bounds the number of names.
func name(slot int) string { return fmt.Sprintf("coding-%d", slot+1) }

// view is the visible part of a session, without its waiting permissions.
type view struct {
	state agent.Shown
	subs  int    // number of subagents
	agent string // name of the program
	waits bool   // whether the session has reported that it waits for a person
	calls []call // running calls
	done  string // ID of the call that succeeded last
}

// view returns the visible part of the session.
func (s session) view() view {
	v := view{state: s.base.shown(), subs: s.subs, agent: s.agent, calls: s.calls, done: s.done}
	switch s.passing {
	case "":
	case notification:
		v.waits = true
	default:
		v.state = s.passing.shown()
	}
	return v
}

// isWorking reports whether calls may run in the view's state.
func (v view) isWorking() bool { return v.state == agent.Working || v.state == agent.Juggling }

// changes returns the events that lead from one view to another. The order of the events avoids states that no
// view has: calls begin before the session works, and end after it has stopped working. A session begins to wait
// before its other changes, and stops waiting after them.
func changes(name string, before, after view) (events []event.Event) {
	before.state, after.state = cmp.Or(before.state, agent.Idle), cmp.Or(after.state, agent.Idle) // an unused slot has the zero view
	if after.waits && !before.waits {
		events = append(events, event.Asked{ID: name + "-waits", Text: "A coding session waits for you."})
	}
	calls := callEvents(before, after)
	if after.isWorking() {
		events = append(events, calls...)
	}
	if before.state != after.state || before.subs != after.subs {
		events = append(events, event.StateTold{State: string(after.state), SubAgents: after.subs, Agent: after.agent})
	}
	if !after.isWorking() {
		events = append(events, calls...)
	}
	if before.waits && !after.waits {
		events = append(events, event.Answered{ID: name + "-waits", Answer: string(agent.AnswerClosed)})
	}
	return events
}
