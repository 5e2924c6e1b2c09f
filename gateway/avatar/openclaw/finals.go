package openclaw

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"perch/gateway/avatar/feed"
)

// Values in the two responses to a request of the method agent, as in the gateway's responses.
const (
	accepted = "accepted"  // status of the first response
	summary  = "completed" // summary of the final response
)

// agent implements the method agent: it sends a text to an agent, like chat. The client gets
// agent events but no chat events, a response at once, and a final response after the last event
// of the run.
func (c *connection) agent(ctx context.Context, r request) (any, *failure) {
	var p struct {
		Key            string `json:"sessionKey"`
		Agent          string `json:"agentId"`
		Text           string `json:"message"`
		IdempotencyKey string `json:"idempotencyKey"`
	}
	if bad := r.decodeParams(&p); bad != nil {
		return nil, bad
	}
	key := cmp.Or(p.Key, mainName)
	switch name, ok := strings.CutPrefix(key, agentPrefix); {
	case !ok:
		key = agentPrefix + cmp.Or(p.Agent, mainName) + ":" + key
	case p.Agent != "" && p.Agent != strings.SplitN(name, ":", 2)[0]:
		return nil, invalid("invalid agent params: the agent in sessionKey differs from agentId")
	}
	status, bad := c.startText(ctx, r.Method, text{key, p.Text, p.IdempotencyKey, r.ID})
	switch {
	case bad != nil:
		return nil, bad
	case status == statusStarted:
		return map[string]any{"runId": p.IdempotencyKey, "status": accepted, "sessionKey": key, "acceptedAt": time.Now().UnixMilli()}, nil
	}
	return map[string]any{"runId": p.IdempotencyKey, "status": status}, nil
}

// finals holds the final response to each agent request until the end of the run was sent to the
// client. The events of a run may arrive after the reply is complete, because they come from the feed.
type finals struct {
	ended   []string            // IDs of the runs whose end was sent before the reply was complete, latest last
	waiting map[string]response // key: run ID
	timer   *time.Timer         // fires when all waiting responses must be sent
}

func newFinals() *finals {
	f := &finals{waiting: map[string]response{}, timer: time.NewTimer(0)}
	f.timer.Stop()
	return f
}

// finish tells the client that the reply to a text has ended. For the method chat.send it sends a chat
// event. For the method agent it sends the final response, or stores it in c.finals until the end of
// the run was sent.
func (c *connection) finish(e endedText) error {
	if e.request == "" {
		return c.sendEvent("chat", e.last)
	}
	if e.err != nil {
		return c.send(newResponse(e.request, nil, newFailure(e.err)))
	}
	final := newResponse(e.request, map[string]any{"runId": e.run, "status": statusOK, "summary": summary,
		"result": map[string]any{"payloads": e.last.Message.Content}}, nil)
	_, conversation := parseKey(e.last.Session)
	if c.view == nil || strings.HasPrefix(conversation, feed.RobotPrefix) || slices.Contains(c.finals.ended, e.run) {
		return c.send(final)
	}
	if len(c.finals.waiting) == 0 { // later responses do not postpone the timer
		c.finals.timer.Reset(c.server.timings.finalDelay)
	}
	c.finals.waiting[e.run] = final
	return nil
}

// takeAfter removes and returns the response that must follow the event e, if any. If e ends a run
// whose final response is not waiting yet, takeAfter records that the end was sent.
func (f *finals) takeAfter(e agentEvent) (ready []response) {
	if end, ok := e.Data.(lifecycle); !ok || end.Phase == "start" {
		return nil
	}
	if final, ok := f.waiting[e.RunID]; ok {
		if delete(f.waiting, e.RunID); len(f.waiting) == 0 {
			f.timer.Stop()
		}
		return []response{final}
	}
	f.ended = append(f.ended, e.RunID)
	f.ended = f.ended[max(0, len(f.ended)-maxSessions):]
	return nil
}

// takeAll removes and returns all waiting responses.
func (f *finals) takeAll() (ready []response) {
	for run, final := range f.waiting {
		delete(f.waiting, run)
		ready = append(ready, final)
	}
	return ready
}

func (c *connection) sendAll(responses []response) error {
	for _, r := range responses {
		if err := c.send(r); err != nil {
			return err
		}
	}
	return nil
}
