package hooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// Bounds of permissions.
const (
	maxWaiting  = 8            // number of permissions that wait at the same time
	maxParallel = 2 * maxCalls // maximum length of permission.parallel
)

// permissionRequest is the body of POST /permission.
type permissionRequest struct {
	HookEvent string          `json:"hook_event_name"`
	SessionID string          `json:"session_id"`
	AgentID   string          `json:"agent_id"` // ID of a subagent if HookEvent is set, and otherwise the name of the agent
	CWD       string          `json:"cwd"`
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"tool_input"`
}

// permissionResponse is the response that Claude Code expects. If the response is empty, Claude Code asks in its terminal.
type permissionResponse struct {
	Output struct {
		Event    string   `json:"hookEventName"`
		Decision decision `json:"decision"`
	} `json:"hookSpecificOutput"`
}

// decision is the part of a response that allows or denies.
type decision struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitempty"`
}

// permission is a permission that waits for its answer.
type permission struct {
	question agent.Question // the question, in the configured default language
	request  permissionRequest
	key      string   // key of the session, see key
	sub      string   // ID of the subagent that asks, or ""
	call     call     // the call that needs the permission
	parallel []call   // other calls that were running when the agent asked, or began within parallelFor after that
	withdraw func()   // ends the wait
	verdict  *verdict // nil while it waits; guarded by API.mu
}

// verdict is the answer to a permission.
type verdict struct {
	allow bool
	how   agent.Outcome // how the answer was given
}

// permit waits for the answer to a permission. The response is nil if the agent must ask in its
// terminal: because there was no answer, because the request cannot be answered with yes or no (see
// isYesOrNo), or because maxWaiting permissions wait already. It is also nil for an agent that does
// not wait for the answer. It returns only errors of httpserver.Decode. by is the name of the agent
// in the URL's query, or "".
func (a *API) permit(ctx context.Context, by string, body []byte) (*permissionResponse, error) {
	var w permissionRequest
	if err := httpserver.Decode(body, &w); err != nil {
		return nil, err
	}
	w.Tool = line(w.Tool, limit.Word)
	if !w.isYesOrNo() {
		return nil, nil
	}
	by, waits := w.by(by)
	if !waits {
		return nil, nil
	}
	ctx, withdraw := context.WithCancel(ctx)
	defer withdraw()
	h := a.addPermission(by, w, withdraw)
	if h == nil {
		a.o.Log.Warn("the agent has to ask for a permission in its terminal: too many permissions are waiting", "waiting", maxWaiting)
		return nil, nil
	}
	v, answered := a.release(by, h, a.await(ctx, h))
	session := h.question.Session
	a.o.Log.Info("a permission was asked for", "session", session, "tool", w.Tool, "answered", answered, "allowed", v.allow, "how", v.how)
	if !answered {
		return nil, nil
	}
	response := &permissionResponse{}
	words := a.words("")
	response.Output.Event, response.Output.Decision = "PermissionRequest", decision{"deny", words.Message("hooks.denied")}
	switch {
	case v.allow:
		response.Output.Decision = decision{Behavior: "allow"}
	case v.how == agent.AnswerDenied:
		response.Output.Decision.Message = words.Message("hooks.denied_elsewhere")
	}
	return response, nil
}

// by returns the name of the agent that asks. waits reports whether the agent waits for the answer,
// as Claude Code and Codex do. given is the name of the agent in the URL's query, or "".
func (w permissionRequest) by(given string) (by string, waits bool) {
	if given == "" && w.HookEvent == "" {
		given = w.AgentID
	}
	by = cmp.Or(line(given, limit.Word), claude)
	return by, by == claude || by == codex
}

// isYesOrNo reports whether the request can be answered with yes or no. It returns false for
// choices, plans, other hook events and a request without a tool, and for a command
// if remote.Redact would hide more of it than keys (see remote.Conceals).
func (w permissionRequest) isYesOrNo() bool {
	if w.HookEvent != "" && w.HookEvent != "PermissionRequest" {
		return false
	}
	if kind, title := describe(w.Tool, w.Input); kind == "execute" && remote.Conceals(plain.Clip(title, maxRead)) {
		return false
	}
	return w.Tool != "" && !slices.Contains([]string{"AskUserQuestion", "ExitPlanMode", "EnterPlanMode"}, w.Tool)
}

// addPermission adds a waiting permission, and publishes its question. It returns nil if maxWaiting permissions
// wait already.
func (a *API) addPermission(by string, w permissionRequest, withdraw func()) *permission {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= maxWaiting {
		return nil
	}
	now := time.Now()
	h := &permission{request: w, withdraw: withdraw, key: key(by, cmp.Or(line(w.SessionID, limit.ID), "default")),
		call: call{name: w.Tool, detail: detail(w.Tool, w.Input)}}
	if w.HookEvent != "" {
		h.sub = line(w.AgentID, limit.ID)
	}
	a.change(a.table.addAsks(now, h.key, by, 1))
	s := a.table[h.key]
	for _, c := range slices.Backward(s.calls) { // the latest of equal calls waits
		if h.call.id == "" && h.call.same(c) {
			h.call = c
		} else {
			h.parallel = append(h.parallel, c)
		}
	}
	session := name(s.slot)
	h.question = agent.Question{ID: "hook-" + rand.Text(), Text: question(a.words(""), w), Session: session, Asked: now, Until: now.Add(a.o.Hold)}
	a.waiting[h.question.ID] = h
	a.o.Bus.Publish("", session, event.Asked{ID: h.question.ID, Text: h.question.Text})
	return h
}

// settledBy reports whether a report shows that the permission was answered in the terminal. The end
// of a parallel call does not show that, nor does the end of a call of another subagent.
func (h *permission) settledBy(r report) bool {
	if h.key != r.key() {
		return false
	}
	switch r.event {
	case stop, stopFailure, interrupt, userPromptSubmit, sessionEnd:
		return true
	case postToolUse, postToolUseFailure:
		return h.sub == r.sub && !containsCall(h.parallel, r.call)
	}
	return false
}

// parallelFor is the time after the question within which a new call counts as parallel to the call
// that needs the permission. The end of a later call shows that a person has answered in the terminal.
const parallelFor = 2 * time.Second

// addParallel records the call of a report if the call began within parallelFor after the question.
func (h *permission) addParallel(r report, now time.Time) {
	if r.event == preToolUse && h.key == r.key() && r.call.id != "" && !h.call.same(r.call) &&
		now.Sub(h.question.Asked) < parallelFor && len(h.parallel) < maxParallel {
		h.parallel = append(h.parallel, r.call)
	}
}

// await waits until somebody answers, at a robot or elsewhere, until the time has expired, or until the question
// is withdrawn. It returns the outcome that applies if nobody has answered.
func (a *API) await(ctx context.Context, h *permission) agent.Outcome {
	ctx, stop := context.WithDeadlineCause(ctx, h.question.Until, errLate)
	defer stop()
	a.askAloud(ctx, h)
	<-ctx.Done()
	if context.Cause(ctx) == errLate {
		return agent.AnswerExpired
	}
	return agent.AnswerClosed
}

// release removes a waiting permission and publishes its verdict. If there is no verdict, it publishes
// unanswered.
func (a *API) release(by string, h *permission, unanswered agent.Outcome) (v verdict, answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, h.question.ID)
	if answered = h.verdict != nil; answered {
		v = *h.verdict
	} else {
		v.how = unanswered
	}
	after := a.table.addAsks(time.Now(), h.key, by, -1)
	if s, exists := after[h.key]; exists && answered && !v.allow && h.call.id != "" {
		after[h.key] = s.withoutCall(h.call, false) // a denied call is not reported again
	}
	a.change(after) // first, so that the session has its new state when the answer is published
	a.o.Bus.Publish("", h.question.Session, event.Answered{ID: h.question.ID, Answer: string(v.how)})
	return v, answered
}

// Questions returns the questions of the waiting permissions, the oldest first.
func (a *API) Questions() []agent.Question {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := []agent.Question{}
	for _, h := range a.waiting {
		open = append(open, h.question)
	}
	slices.SortFunc(open, func(x, y agent.Question) int { return x.Asked.Compare(y.Asked) })
	return open
}

// Reply answers the permission whose question has this ID. It is for answers that are not given at
// a robot. It returns agent.ErrNoQuestion if no such question waits.
func (a *API) Reply(id string, allow bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, waits := a.waiting[id]
	if !waits {
		return agent.ErrNoQuestion
	}
	how := agent.AnswerDenied
	if allow {
		how = agent.AnswerAllowed
	}
	if !h.answer(verdict{allow, how}) {
		return agent.ErrNoQuestion
	}
	return nil
}

// answer sets the verdict and ends the question. It returns false if there was a verdict
// already. The caller holds API.mu.
func (h *permission) answer(v verdict) bool {
	if h.verdict != nil {
		return false
	}
	h.verdict = &v
	h.withdraw()
	return true
}
