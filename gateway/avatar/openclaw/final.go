package openclaw

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"perch/gateway/avatar/feed"
)

// The gateway's words for a call of the method agent: it is answered at once, and again
// when its run has ended.
const (
	accepted = "accepted"
	summary  = "completed"
)

// agent has a text answered as chat does. What is said is told by the agent's events alone,
// and the call is answered a second time after the last of them.
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

// finals are the last answers to calls of agent, each of which waits until its run's end was
// told: the run is the feed's, and may be behind the answer.
type finals struct {
	told []string            // runs whose end was told before that of their text, the latest last
	wait map[string]response // by run
	late *time.Timer         // by which none waits any more
}

func newFinals() *finals {
	f := &finals{wait: map[string]response{}, late: time.NewTimer(0)}
	f.late.Stop()
	return f
}

// finish tells that a text's answer has ended: at once by an event where it came by chat.send.
func (c *connection) finish(e ending) error {
	if e.call == "" {
		return c.event("chat", e.last)
	}
	final := response{Type: "res", ID: e.call}
	if e.err != nil {
		final.Error = failed(e.err)
		return c.send(final)
	}
	final.OK, final.Payload = true, map[string]any{"runId": e.run, "status": done, "summary": summary,
		"result": map[string]any{"payloads": e.last.Message.Content}}
	_, talk := talkOf(e.last.Session)
	if c.view == nil || strings.HasPrefix(talk, feed.OfRobot) || slices.Contains(c.finals.told, e.run) {
		return c.send(final)
	}
	if len(c.finals.wait) == 0 { // else what never shows would put it off
		c.finals.late.Reset(c.server.paces.late)
	}
	c.finals.wait[e.run] = final
	return nil
}

// after are the final answers that have waited for an event.
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
	f.told = append(f.told, e.RunID)
	f.told = f.told[max(0, len(f.told)-mostSessions):]
	return nil
}

// all are those that wait.
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
