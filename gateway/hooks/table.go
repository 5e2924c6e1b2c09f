package hooks

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"perch/limit"
)

// Bounds of the table. After staleWork without a report, a session counts as idle. After staleSession
// it is removed, unless it has a waiting permission.
const (
	maxSessions  = 20
	maxAgents    = 50 // subagents per session
	staleWork    = 5 * time.Minute
	staleSession = 10 * time.Minute
)

// session is the state of one coding session.
type session struct {
	key   string      // see key
	slot  int         // number of the session in published events, see name
	agent string      // name of the program
	base  codingState // state while passing is "": idle, thinking, working, juggling or sleeping
	subs  int         // number of running subagents
	calls []call      // running calls, oldest first
	done  string      // ID of the call that succeeded last
	count int         // number of call IDs that withCall has made
	asks  int         // number of waiting permissions

	stopped bool        // whether the latest turn is over and no other turn has begun
	passing codingState // state that is shown instead of base until the time in until; "" shows base
	until   time.Time   // when passing ends
	seen    time.Time   // time of the latest report, or of the latest change of asks
	began   time.Time   // time of the first report, or of the first permission if that came earlier
}

// state returns the visible state of the session.
func (s session) state() codingState {
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

// table holds all sessions. key: session.key. Its methods do not change a table, but return a changed copy.
type table map[string]session

// fold returns the table after a report. It ignores a report that says that nobody watches the session.
func (t table) fold(now time.Time, r report) table {
	if r.headless {
		return t
	}
	after, s := t.with(r.key(), r.agent, now)
	if r.event == sessionEnd {
		delete(after, s.key)
		return after
	}
	s.seen = now
	if r.state == notification && s.asks > 0 {
		after[s.key] = s // the report is about a permission that is waiting already
		return after
	}
	before, until := s.passing, s.until
	if r.event == stop && r.state == attention && s.stopped && before == "" {
		r.state = idle // an earlier Stop has already set the state attention
	}
	s.stopped = r.event == stop || s.stopped && (r.state == idle || r.state == notification)
	s.passing, s.until = "", time.Time{}
	s = s.updateCalls(r)
	switch {
	case r.event == subagentStart:
		s.subs = min(s.subs+1, maxAgents)
		s.base = juggling
	case r.event == subagentStop:
		s.subs = max(s.subs-1, 0)
		if s.base == juggling && s.subs == 0 {
			s.base = working
		}
	case r.state == juggling:
		s.subs, s.base = max(s.subs, 1), juggling
	case r.state == working && s.base == juggling:
		// the session stays juggling until the last subagent has stopped
	case r.state.traits().lasts > 0:
		if s.passing, s.until = r.state, now.Add(r.state.traits().lasts); before == s.passing {
			s.until = until // a repeated report does not prolong a passing state
		}
		if r.state == attention || r.state == notification {
			s.base = idle // the session waits for a person
		}
	default:
		s.base = r.state
	}
	if r.event == stopFailure {
		s.base = idle // the turn is over
	}
	if s.base != juggling {
		s.subs = 0
	}
	if s.base == idle && r.state != notification || s.base == thinking || s.base == sleeping {
		s.calls = nil // the turn is over; a session that waits may still have running calls
	}
	after[s.key] = s
	return after
}

// updateCalls returns the session with its running calls after a report. A bare report is one with the state
// working but no event. The call of such a report ends at the next report, unless the next report is bare too
// and names the same tool.
func (s session) updateCalls(r report) session {
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

// addAsks returns the table with n added to the number of waiting permissions of a session. n may be negative.
func (t table) addAsks(now time.Time, key, agent string, n int) table {
	if _, exists := t[key]; !exists && n < 0 {
		return t
	}
	after, s := t.with(key, agent, now)
	s.asks = max(s.asks+n, 0)
	s.seen = now
	after[key] = s
	return after
}

// with returns a copy of the table, and the session with a key. A new session is not in the copy yet. If the table
// is full, the copy lacks the session whose latest report is the oldest. Sessions with a waiting permission are not
// removed; there is always another session, because maxWaiting is less than maxSessions.
func (t table) with(key, agent string, now time.Time) (table, session) {
	after := maps.Clone(t)
	if s, exists := after[key]; exists {
		return after, s
	}
	if len(after) >= maxSessions {
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

// inSlot returns the session in a slot, or the zero session.
func (t table) inSlot(slot int) session {
	for _, s := range t {
		if s.slot == slot {
			return s
		}
	}
	return session{}
}

// sweep returns the table at a later time, without passing states that have ended. Sessions without
// recent reports are idle or removed.
func (t table) sweep(now time.Time) table {
	after := table{}
	for key, s := range t {
		if s.passing != "" && !now.Before(s.until) {
			s.passing, s.until = "", time.Time{}
		}
		if isBusy(s.base) && !now.Before(s.seen.Add(staleWork)) {
			s.base, s.subs = idle, 0 // but keep its calls, which may run longer
		}
		if s.asks > 0 || now.Before(s.seen.Add(staleSession)) {
			after[key] = s
		}
	}
	return after
}

// isBusy reports whether a session in a state is working.
func isBusy(c codingState) bool { return c == thinking || c == working || c == juggling }

// nextSweep returns when sweep will next change something without a further report, or the zero time if never.
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
		if isBusy(s.base) {
			earliest(s.seen.Add(staleWork))
		}
		if s.asks == 0 {
			earliest(s.seen.Add(staleSession))
		}
	}
	return due
}

// merged returns the state with the highest priority of all sessions, or idle without sessions.
func (t table) merged() codingState {
	highest := codingState("")
	for _, s := range t {
		if state := s.state(); state.traits().priority > highest.traits().priority {
			highest = state
		}
	}
	return cmp.Or(highest, idle)
}

// key returns the key of a session in a table. Sessions of different agents may have the same ID.
func key(agent, id string) string { return agent + " " + id }
