package hooks

import (
	"cmp"
	"fmt"

	"perch/agent"
	"perch/event"
)

// name is a session's name on the bus. There are as many names as slots, so that a
// year of sessions leaves no more behind than a day.
func name(slot int) string { return fmt.Sprintf("coding-%d", slot+1) }

// view is what others can see of a session, but for a permission that waits.
type view struct {
	state agent.Shown
	subs  int
	agent string
	waits bool   // it has reported that it waits for a person
	calls []call // at work
	done  string // the call that was done last
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

// works reports whether a session that looks so is at work on something.
func (v view) works() bool { return v.state == agent.Working || v.state == agent.Juggling }

// between are the events that lead from before to after. They are in an order in
// which nothing shows that is neither: calls begin before the work shows that
// they are part of, and end after another state does; what changes while a
// question waits does so before it is answered.
func between(name string, before, after view) (events []event.Event) {
	before.state, after.state = cmp.Or(before.state, agent.Idle), cmp.Or(after.state, agent.Idle) // the zero view is an unused slot's
	if after.waits && !before.waits {
		events = append(events, event.Asked{ID: name + "-waits", Text: "A coding session waits for you."})
	}
	calls := difference(before, after)
	if after.works() {
		events = append(events, calls...)
	}
	if before.state != after.state || before.subs != after.subs {
		events = append(events, event.StateTold{State: string(after.state), SubAgents: after.subs, Agent: after.agent})
	}
	if !after.works() {
		events = append(events, calls...)
	}
	if before.waits && !after.waits {
		events = append(events, event.Answered{ID: name + "-waits", Answer: string(agent.AnswerClosed)})
	}
	return events
}
