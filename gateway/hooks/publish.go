package hooks

import (
	"cmp"
	"fmt"

	"perch/agent"
	"perch/event"
)

// name is how a session is called in the house. There are as many names as
// places, so that a year of sessions leaves no more behind than a day.
func name(slot int) string { return fmt.Sprintf("coding-%d", slot+1) }

// view is what others can see of a session, but for a permission that waits.
type view struct {
	state agent.Shown
	subs  int
	agent string
	waits bool   // it has told that it waits for somebody
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

// tell are the events that lead from before to after. They are in an order in
// which nothing shows that is neither: calls begin before the work shows that
// they are part of, and end after another state does; what changes while a
// question waits does so before it is answered.
func tell(name string, before, after view) (told []event.Event) {
	before.state, after.state = cmp.Or(before.state, agent.Idle), cmp.Or(after.state, agent.Idle) // the zero view is a place nobody has had
	if after.waits && !before.waits {
		told = append(told, event.Asked{ID: name + "-waits", Text: "A coding session waits for you."})
	}
	calls := difference(before, after)
	if after.works() {
		told = append(told, calls...)
	}
	if before.state != after.state || before.subs != after.subs {
		told = append(told, event.StateTold{State: string(after.state), SubAgents: after.subs, Agent: after.agent})
	}
	if !after.works() {
		told = append(told, calls...)
	}
	if before.waits && !after.waits {
		told = append(told, event.Answered{ID: name + "-waits", Answer: string(agent.AnswerClosed)})
	}
	return told
}
