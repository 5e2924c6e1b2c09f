package hooks

import (
	"cmp"
	"fmt"

	"perch/event"
)

// name is how a session is called in the house. There are as many names as
// places, so that a year of sessions leaves no more behind than a day.
func name(slot int) string { return fmt.Sprintf("coding-%d", slot+1) }

// view is what others can see of a session.
type view struct {
	state coding
	agent string
	tool  string
	subs  int
	// byTime is a state that came of another's end, as the board knows by itself.
	byTime bool
}

func (s session) view() view {
	return view{state: s.state(), agent: s.agent, tool: s.tool, subs: s.subs, byTime: s.passed}
}

// tell is what happened where a session looked so before, and so after: the
// events that bring the board there.
func tell(name string, before, after view) (told []event.Event) {
	before.state, after.state = cmp.Or(before.state, idle), cmp.Or(after.state, idle) // the zero view is a place nobody has had
	was, is := before.tools(name), after.tools(name)
	if before.state == notification && after.state != notification {
		told = append(told, event.Answered{ID: name + "-waits", Answer: "closed"})
	}
	outcome := event.ToolDone
	if after.state == failed {
		outcome = event.ToolFailed
	}
	stops, starts := difference(was, is, outcome), difference(is, was, event.ToolRunning)
	if juggles(before) != juggles(after) {
		told = append(append(told, starts...), stops...) // or it would seem to think between the two
	} else {
		told = append(append(told, stops...), starts...)
	}
	if before.state == after.state {
		return told
	}
	switch after.state {
	case thinking:
		told = append(told, event.ThinkingStarted{Brain: after.agent})
	case attention:
		told = append(told, event.TurnEnded{End: event.EndDone})
	case failed:
		told = append(told, event.TurnEnded{End: event.EndFailed, Reason: "the coding session tells of a failure"})
	case sleeping:
		told = append(told, event.TurnEnded{End: event.EndSleep})
	case notification:
		told = append(told, event.TurnEnded{End: event.EndCancelled}, event.Asked{ID: name + "-waits", Text: "A coding session waits for you."})
	case idle:
		if !after.byTime || before.state != attention && before.state != failed {
			told = append(told, event.TurnEnded{End: event.EndCancelled})
		}
	}
	return told
}

// juggles tells subagents from a tool of the session's own.
func juggles(v view) bool { return v.state == juggling }

// tools are those that run while a session looks so.
func (v view) tools(name string) (running []event.ToolStatus) {
	switch v.state {
	case working, sweeping, carrying:
		tool := v.tool
		if tool == "" || v.state != working {
			tool = string(v.state)
		}
		return []event.ToolStatus{{ID: name + "-tool", Name: tool}}
	case juggling:
		for n := range v.subs {
			running = append(running, event.ToolStatus{ID: fmt.Sprintf("%s-agent-%d", name, n+1), Name: "subagent", SubAgent: true})
		}
	}
	return running
}

// difference are those of one list that are not in the other.
func difference(of, other []event.ToolStatus, status string) (told []event.Event) {
	known := map[event.ToolStatus]bool{}
	for _, t := range other {
		known[t] = true
	}
	for _, t := range of {
		if !known[t] {
			t.Status = status
			told = append(told, t)
		}
	}
	return told
}
