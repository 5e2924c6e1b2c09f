package hooks

import (
	"cmp"
	"fmt"

	"perch/agent"
	"perch/event"
)

// name returns a session's name on the bus. It depends on the slot, so that the number of
// names is bounded.
func name(slot int) string { return fmt.Sprintf("coding-%d", slot+1) }

// view is the visible part of a session, without its waiting permissions.
type view struct {
	state agent.Shown
	subs  int // subagents
	agent string
	waits bool   // it has reported that it waits for a person
	calls []call // that run
	done  string // the ID of the call that was done last
}

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

func (v view) isWorking() bool { return v.state == agent.Working || v.state == agent.Juggling }

// changes returns the events that lead from before to after, ordered so that no other state
// shows in between: calls begin before the state of work that they belong to, and end after
// the next state; changes during a question come before its answer.
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
