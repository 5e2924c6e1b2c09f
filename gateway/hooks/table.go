package hooks

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"perch/limit"
)

// What is known of sessions is bounded in number and in time.
const (
	mostSessions = 20
	mostAgents   = 50 // subagents that are counted
	staleWork    = 5 * time.Minute
	staleSession = 10 * time.Minute
)

// session is one coding session. It is a value.
type session struct {
	key   string // its agent and the agent's own id of it
	slot  int    // which names it on the bus
	agent string
	base  coding // idle, thinking, working, juggling or sleeping
	subs  int    // subagents at work
	calls []call // of tools, at work, in the order they began
	done  string // the call that was done last
	count int    // calls that had no name of their own
	asks  int    // permissions that wait

	passing coding    // what is in front of base
	until   time.Time // it is
	seen    time.Time // its latest report
	began   time.Time // its first
}

// state is what it does.
func (s session) state() coding {
	switch {
	case s.asks > 0:
		return notification
	case s.passing != "":
		return s.passing
	case s.base == "":
		return idle
	}
	return s.base
}

// table is all sessions, by key. It is a value: what changes it returns
// another.
type table map[string]session

// fold is the table after a session's report.
func (t table) fold(now time.Time, r report) table {
	if r.headless {
		return t // no person sits before it
	}
	after, s := t.with(r.key(), r.agent, now)
	if r.event == sessionEnd {
		delete(after, s.key)
		return after
	}
	s.seen = now
	if r.state == notification && s.asks > 0 {
		after[s.key] = s // it is the permission that waits already
		return after
	}
	before, until := s.passing, s.until
	s.passing, s.until = "", time.Time{}
	s = s.called(r)
	switch {
	case r.event == subagentStart:
		s.subs = min(s.subs+1, mostAgents)
		s.base = juggling
	case r.event == subagentStop:
		s.subs = max(s.subs-1, 0)
		if s.base == juggling && s.subs == 0 {
			s.base = working
		}
	case r.state == juggling:
		s.subs, s.base = max(s.subs, 1), juggling
	case r.state == working && s.base == juggling:
		// It stays so until the last of them has stopped.
	case r.state.traits().lasts > 0:
		if s.passing, s.until = r.state, now.Add(r.state.traits().lasts); before == s.passing {
			s.until = until // it was reported already
		}
		if r.state == attention || r.state == notification {
			s.base = idle // it waits for a person
		}
	default:
		s.base = r.state
	}
	if r.event == stopFailure {
		s.base = idle // its turn is over
	}
	if s.base != juggling {
		s.subs = 0
	}
	if s.base == idle && r.state != notification || s.base == thinking || s.base == sleeping {
		s.calls = nil // none is left of a turn that is over; a session that waits may still have one
	}
	after[s.key] = s
	return after
}

// called is the session after a report's calls.
func (s session) called(r report) session {
	bare := r.event == "" && r.state == working
	for _, c := range s.calls {
		if c.bare && !(bare && c.name == r.call.name) {
			s = s.withoutCall(c, r.state != failed)
		}
	}
	switch {
	case r.event == preToolUse && r.state == working:
		s = s.withCall(r.call)
	case r.event == postToolUse, r.event == postToolUseFailure:
		s = s.withoutCall(r.call, r.event == postToolUse)
	case bare && !slices.ContainsFunc(s.calls, func(c call) bool { return c.bare }):
		c := r.call
		c.id, c.bare = "", true
		s = s.withCall(c)
	}
	return s
}

// asked is the table with one permission of a session's more that waits, or
// fewer.
func (t table) asked(now time.Time, key, agent string, more int) table {
	if _, known := t[key]; !known && more < 0 {
		return t
	}
	after, s := t.with(key, agent, now)
	s.asks = max(s.asks+more, 0)
	s.seen = now
	after[key] = s
	return after
}

// with is a copy of the table and the session of that key. A new one takes a
// free slot, or that of the session that was silent longest and asks nothing; there
// is one, for fewer are held than there are slots.
func (t table) with(key, agent string, now time.Time) (table, session) {
	after := maps.Clone(t)
	if s, known := after[key]; known {
		return after, s
	}
	if len(after) >= mostSessions {
		delete(after, limit.First(after, func(a, b session) int {
			return cmp.Or(min(a.asks, 1)-min(b.asks, 1), a.seen.Compare(b.seen), cmp.Compare(a.key, b.key))
		}))
	}
	s := session{key: key, agent: agent, base: idle, seen: now, began: now}
	for after.inSlot(s.slot).key != "" {
		s.slot++
	}
	return after, s
}

// inSlot is the session in that slot, and an idle one without a key where there is
// none.
func (t table) inSlot(slot int) session {
	for _, s := range t {
		if s.slot == slot {
			return s
		}
	}
	return session{}
}

// sweep is the table once what had its time is over: what passes, work of which
// there was no report any more, and sessions that were not ended.
func (t table) sweep(now time.Time) table {
	after := table{}
	for key, s := range t {
		if s.passing != "" && !now.Before(s.until) {
			s.passing, s.until = "", time.Time{}
		}
		if busy(s.base) && !now.Before(s.seen.Add(staleWork)) {
			s.base, s.subs = idle, 0 // its calls may be long ones
		}
		if s.asks > 0 || now.Before(s.seen.Add(staleSession)) {
			after[key] = s
		}
	}
	return after
}

func busy(c coding) bool { return c == thinking || c == working || c == juggling }

// nextSweep is when sweep will change something, and the zero time for never.
func (t table) nextSweep() (due time.Time) {
	earliest := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	for _, s := range t {
		if s.passing != "" {
			earliest(s.until)
		}
		if busy(s.base) {
			earliest(s.seen.Add(staleWork))
		}
		if s.asks == 0 {
			earliest(s.seen.Add(staleSession))
		}
	}
	return due
}

// merged is what all sessions together do: the most important of it.
func (t table) merged() coding {
	most := coding("")
	for _, s := range t {
		if state := s.state(); state.traits().priority > most.traits().priority {
			most = state
		}
	}
	return cmp.Or(most, idle)
}

// key keeps sessions of different agents apart that chose the same id.
func key(agent, id string) string { return strings.Join([]string{agent, id}, " ") }
