package hooks

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/event"
)

var noon = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

// TestSession checks the state of a session after a sequence of reports, one per second.
func TestSession(t *testing.T) {
	type reports struct {
		event string
		state codingState
	}
	for name, c := range map[string]struct {
		reports []reports
		want    codingState
		subs    int
	}{
		"nothing":                         {[]reports{{"SessionStart", idle}}, idle, 0},
		"a prompt":                        {[]reports{{"UserPromptSubmit", thinking}}, thinking, 0},
		"a tool":                          {[]reports{{"UserPromptSubmit", thinking}, {"PreToolUse", working}}, working, 0},
		"a tool that failed":              {[]reports{{"PreToolUse", working}, {"PostToolUseFailure", failed}}, failed, 0},
		"the next tool ends a failure":    {[]reports{{"PostToolUseFailure", failed}, {"PreToolUse", working}}, working, 0},
		"the end":                         {[]reports{{"PreToolUse", working}, {"Stop", attention}}, attention, 0},
		"a subagent":                      {[]reports{{subagentStart, juggling}}, juggling, 1},
		"two":                             {[]reports{{subagentStart, juggling}, {subagentStart, juggling}}, juggling, 2},
		"a tool does not end a subagent":  {[]reports{{subagentStart, juggling}, {"PreToolUse", working}}, juggling, 1},
		"one of two has stopped":          {[]reports{{subagentStart, juggling}, {subagentStart, juggling}, {subagentStop, working}}, juggling, 1},
		"both have":                       {[]reports{{subagentStart, juggling}, {subagentStart, juggling}, {subagentStop, working}, {subagentStop, working}}, working, 0},
		"one stops that never started":    {[]reports{{"PreToolUse", working}, {subagentStop, working}}, working, 0},
		"a new prompt ends subagents":     {[]reports{{subagentStart, juggling}, {"UserPromptSubmit", thinking}}, thinking, 0},
		"juggling without a count is one": {[]reports{{"", juggling}}, juggling, 1},
		"sweeping":                        {[]reports{{"PreToolUse", working}, {"PreCompact", sweeping}}, sweeping, 0},
		"a work tree":                     {[]reports{{"WorktreeCreate", carrying}}, carrying, 0},
		"it waits for somebody":           {[]reports{{"PreToolUse", working}, {"Notification", notification}}, notification, 0},
		"asleep":                          {[]reports{{"", sleeping}}, sleeping, 0},
	} {
		table, now := table{}, noon
		for _, x := range c.reports {
			now = now.Add(time.Second)
			table = table.fold(now, report{agent: claude, session: "s", event: x.event, state: x.state})
		}
		s := table[key(claude, "s")]
		if s.state() != c.want || s.subs != c.subs || table.merged() != c.want {
			t.Errorf("%s: %s with %d subagents, want %s with %d", name, s.state(), s.subs, c.want, c.subs)
		}
	}
}

// TestTime checks when states end and when sessions are removed.
func TestTime(t *testing.T) {
	r := func(state codingState, event string) report {
		return report{agent: claude, session: "s", event: event, state: state}
	}
	for _, c := range []struct {
		reports report
		at      time.Duration
		want    codingState
		gone    bool
	}{
		{r(attention, "Stop"), 4*time.Second - 1, attention, false},
		{r(attention, "Stop"), 4 * time.Second, idle, false},
		{r(failed, "StopFailure"), 5*time.Second - 1, failed, false},
		{r(failed, "StopFailure"), 5 * time.Second, idle, false},
		{r(failed, postToolUseFailure), 5*time.Second - 1, failed, false},
		{r(failed, postToolUseFailure), 5 * time.Second, working, false},
		{r(carrying, "WorktreeCreate"), 3 * time.Second, working, false},
		{r(notification, "Notification"), 2500 * time.Millisecond, idle, false},
		{r(sweeping, "PreCompact"), 5*time.Minute - 1, sweeping, false},
		{r(working, "PreToolUse"), staleWork - 1, working, false},
		{r(working, "PreToolUse"), staleWork, idle, false},
		{r(juggling, subagentStart), staleWork, idle, false},
		{r(idle, ""), staleSession - 1, idle, false},
		{r(idle, ""), staleSession, "", true},
		{r(working, ""), staleSession, "", true},
		{r(sleeping, sessionEnd), 0, "", true},
	} {
		table := table{}.fold(noon, r(working, "PreToolUse")).fold(noon, c.reports)
		for due := table.nextSweep(); !due.IsZero() && !due.After(noon.Add(c.at)); due = table.nextSweep() {
			table = table.sweep(due)
		}
		s, there := table[key(claude, "s")]
		if there == c.gone || there && s.state() != c.want {
			t.Errorf("%s %s after %s: %s, there %t", c.reports.event, c.reports.state, c.at, s.state(), there)
		}
	}
}

// TestMerged checks that the state with the higher priority is shown.
func TestMerged(t *testing.T) {
	order := []codingState{sleeping, idle, thinking, working, juggling, attention, sweeping, notification, failed}
	for i, low := range order {
		for _, high := range order[i:] {
			table := table{}.fold(noon, report{agent: claude, session: "a", state: low}).fold(noon, report{agent: "codex", session: "a", state: high})
			if got := table.merged(); len(table) != 2 || got != high {
				t.Errorf("%s and %s are %s", low, high, got)
			}
		}
	}
	if got := (table{}).merged(); got != idle {
		t.Errorf("nobody is %s", got)
	}
}

// TestRoom checks that a full table loses the session whose latest report is the oldest, but no session that
// waits for a permission.
func TestRoom(t *testing.T) {
	asking := key(claude, "asks")
	table := table{}.addAsks(noon, asking, claude, 1)
	for i := range 100 {
		table = table.fold(noon.Add(time.Duration(i+1)*time.Second), report{agent: claude, session: fmt.Sprint(i), state: working})
		if len(table) > maxSessions {
			t.Fatalf("%d sessions", len(table))
		}
	}
	if _, there := table[asking]; !there {
		t.Error("one that asks has given way")
	}
	for i := range 100 {
		if _, there := table[key(claude, fmt.Sprint(i))]; there != (i > 100-maxSessions) {
			t.Errorf("session %d is there: %t", i, there)
		}
	}
	slots := map[int]bool{}
	for _, s := range table {
		if slots[s.slot] || s.slot >= maxSessions {
			t.Errorf("slot %d", s.slot)
		}
		slots[s.slot] = true
	}
	if got := table.fold(noon, report{agent: claude, session: "h", state: working, headless: true}); len(got) != len(table) ||
		got[key(claude, "h")].key != "" {
		t.Error("a session that nobody sits before has a part in it")
	}
}

// TestBoardAgrees checks with random reports at random times that the board shows each session as the table
// has it, and that no published call begins twice, or ends before it has begun.
func TestBoardAgrees(t *testing.T) {
	states := []codingState{idle, thinking, working, juggling, sweeping, carrying, attention, notification, failed, sleeping}
	events := []string{"", "", preToolUse, preToolUse, postToolUse, postToolUseFailure, subagentStart, subagentStop, sessionEnd, stopFailure}
	rapid.Check(t, func(t *rapid.T) {
		board, now, seq := agent.NewBoard(), noon, uint64(0)
		var reports [maxSessions]view
		tab, running := table{}, map[string]bool{}
		publish := func() {
			for slot := range maxSessions {
				after := tab.inSlot(slot).view()
				for _, e := range changes(name(slot), reports[slot], after) {
					seq++
					board.HandleEvent(event.Envelope{Seq: seq, At: now, Session: name(slot), Event: e})
					if c, is := e.(event.ToolStatus); is {
						id := name(slot) + " " + c.ID
						if starts := c.Status == event.ToolRunning; starts == running[id] {
							t.Fatalf("%s is %s, and ran before: %t", id, c.Status, running[id])
						}
						running[id] = c.Status == event.ToolRunning
					}
				}
				reports[slot] = after
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "reports") {
			until := now.Add(time.Duration(rapid.IntRange(0, 700).Draw(t, "seconds")) * time.Second)
			for due := tab.nextSweep(); !due.IsZero() && !due.After(until); due = tab.nextSweep() {
				now, tab = due, tab.sweep(due)
				publish()
			}
			now = until
			tab = tab.fold(now, report{agent: claude, session: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "session"),
				event: rapid.SampledFrom(events).Draw(t, "event"), state: rapid.SampledFrom(states).Draw(t, "state"),
				call: call{rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "id"), rapid.SampledFrom([]string{"", "Bash", "Edit"}).Draw(t, "tool"),
					"", false}})
			publish()
			shown := map[string]agent.State{}
			all, _ := board.Snapshot()
			for _, s := range all {
				shown[s.Session] = s
			}
			for slot := range 2 {
				s := tab.inSlot(slot)
				state, known := shown[name(slot)]
				want, got := s.state().shown(), state.At(now)
				if !known {
					got = agent.Idle
				}
				if got != want {
					t.Fatalf("%s shows %s, and does %s", name(slot), got, s.state())
				}
				if state.Tools != len(s.calls) || state.SubAgents != s.subs {
					t.Fatalf("%s shows %d tools and %d subagents, want %d and %d in %s", name(slot), state.Tools, state.SubAgents, len(s.calls),
						s.subs, want)
				}
			}
		}
	})
}

// TestStops checks the states after the event Stop: a session whose turn seems over may still work, or may have
// failed. The reports are as Claude Code or clawd-on-desk sends them.
func TestStops(t *testing.T) {
	const work = `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_use_id":"1"}`
	const over = `{"hook_event_name":"Stop","session_id":"s","stop_hook_active":false,"background_tasks":[]}`
	for name, c := range map[string]struct {
		reports []string
		wait    time.Duration // before the last report
		want    codingState
	}{
		"over":                          {[]string{work, over}, time.Second, attention},
		"with running background tasks": {[]string{work, `{"hook_event_name":"Stop","session_id":"s","background_tasks":[{"id":"b1","type":"shell","status":"running"}]}`}, time.Second, working},
		"with finished ones":            {[]string{work, `{"hook_event_name":"Stop","session_id":"s","background_tasks":[{"id":"b1","status":"completed"}]}`}, time.Second, attention},
		"after a hook has had it go on": {[]string{work, over, `{"hook_event_name":"Stop","session_id":"s","stop_hook_active":true}`}, 6 * time.Second, idle},
		"after a hook and more work":    {[]string{work, over, work, `{"hook_event_name":"Stop","session_id":"s","stop_hook_active":true}`}, time.Second, idle},
		"of a subagent":                 {[]string{work, `{"hook_event_name":"Stop","session_id":"s","agent_id":"sub1"}`}, time.Second, working},
		"after an error of the API":     {[]string{work, `{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"API Error: 529 overloaded"}`}, time.Second, failed},
		"again":                         {[]string{work, over, over}, 6 * time.Second, idle},
		"again after more work":         {[]string{work, over, work, over}, 6 * time.Second, attention},
		"of clawd-on-desk, again":       {[]string{`{"state":"attention","event":"Stop","session_id":"s"}`, `{"state":"attention","event":"Stop","session_id":"s"}`}, 6 * time.Second, idle},
	} {
		table, now := table{}, noon
		for i, body := range c.reports {
			if now = now.Add(time.Second); i == len(c.reports)-1 {
				now = now.Add(c.wait)
			}
			r, err := parseReport("", []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if table = table.sweep(now); r.state != "" {
				table = table.fold(now, r)
			}
		}
		if got := table.merged(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
