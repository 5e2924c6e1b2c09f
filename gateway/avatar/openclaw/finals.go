package openclaw

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"perch/gateway/avatar/feed"
)

// The gateway's words for the two answers to a call of the method agent.
const (
	accepted = "accepted"
	summary  = "completed"
)

// agent answers a text like chat, but sends only agent events while the agent answers. It
// answers the call at once, and again after the last event of the run.
func (c *connection) agent(ctx context.Context, r request) (any, *failure) {
	var p struct {
		Key   string `json:"sessionKey"`
		Agent string `json:"agentId"`
		Text  string `json:"message"`
		Once  string `json:"idempotencyKey"`
	}
	if bad := r.into(&p); bad != nil {
		return nil, bad
	}
	key := cmp.Or(p.Key, household)
	switch named, is := strings.CutPrefix(key, ofAgent); {
	case !is:
		key = ofAgent + cmp.Or(p.Agent, household) + ":" + key
	case p.Agent != "" && p.Agent != strings.SplitN(named, ":", 2)[0]:
		return nil, invalid("invalid agent params: sessionKey is of another agent than agentId")
	}
	status, bad := c.ask(ctx, r.Method, text{key, p.Text, p.Once, r.ID})
	switch {
	case bad != nil:
		return nil, bad
	case status == started:
		return map[string]any{"runId": p.Once, "status": accepted, "sessionKey": key, "acceptedAt": time.Now().UnixMilli()}, nil
	}
	return map[string]any{"runId": p.Once, "status": status}, nil
}

// finals holds the final answers to calls of agent until the end of their runs was sent,
// because the feed, which renders the runs, may be behind the answers.
type finals struct {
	ended []string            // runs whose end was sent before their answer was complete, the latest last
	wait  map[string]response // by run
	late  *time.Timer         // fires when no answer should wait any longer
}

func newFinals() *finals {
	f := &finals{wait: map[string]response{}, late: time.NewTimer(0)}
	f.late.Stop()
	return f
}

// finish reports the end of a text's answer: an event for chat.send, the final answer for
// agent.
func (c *connection) finish(e ending) error {
	if e.call == "" {
		return c.event("chat", e.last)
	}
	if e.err != nil {
		return c.send(newResponse(e.call, nil, failed(e.err)))
	}
	final := newResponse(e.call, map[string]any{"runId": e.run, "status": done, "summary": summary,
		"result": map[string]any{"payloads": e.last.Message.Content}}, nil)
	_, talk := talkOf(e.last.Session)
	if c.view == nil || strings.HasPrefix(talk, feed.OfRobot) || slices.Contains(c.finals.ended, e.run) {
		return c.send(final)
	}
	if len(c.finals.wait) == 0 { // later answers do not postpone the timer
		c.finals.late.Reset(c.server.paces.late)
	}
	c.finals.wait[e.run] = final
	return nil
}

// after returns the final answers that an event releases.
func (f *finals) after(e agentEvent) (ready []response) {
	if end, is := e.Data.(lifecycle); !is || end.Phase == "start" {
		return nil
	}
	if final, waits := f.wait[e.RunID]; waits {
		if delete(f.wait, e.RunID); len(f.wait) == 0 {
			f.late.Stop()
		}
		return []response{final}
	}
	f.ended = append(f.ended, e.RunID)
	f.ended = f.ended[max(0, len(f.ended)-mostSessions):]
	return nil
}

// all returns the answers that wait, and drops them.
func (f *finals) all() (ready []response) {
	for run, final := range f.wait {
		delete(f.wait, run)
		ready = append(ready, final)
	}
	return ready
}

func (c *connection) sendAll(all []response) error {
	for _, r := range all {
		if err := c.send(r); err != nil {
			return err
		}
	}
	return nil
}
