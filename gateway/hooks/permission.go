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

// maxWaiting bounds the waiting permissions, and maxParallel the calls parallel to one.
const (
	maxWaiting  = 8
	maxParallel = 2 * maxCalls
)

// request is the body of POST /permission.
type request struct {
	HookEvent string          `json:"hook_event_name"`
	SessionID string          `json:"session_id"`
	AgentID   string          `json:"agent_id"` // a subagent if there is a hook_event_name
	CWD       string          `json:"cwd"`
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"tool_input"`
}

// decided is the response that Claude Code expects. Without one it asks in its terminal.
type decided struct {
	Output struct {
		Event    string   `json:"hookEventName"`
		Decision decision `json:"decision"`
	} `json:"hookSpecificOutput"`
}

type decision struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitempty"`
}

// permission is a permission that waits for its answer.
type permission struct {
	question agent.Question // in the household's language
	request  request
	key      string   // key of the session, see key
	sub      string   // ID of the subagent that asks, or ""
	call     call     // the call that needs the permission
	parallel []call   // calls that were running when the agent asked, or began at the same time
	withdraw func()   // ends the question
	verdict  *verdict // nil while it waits; guarded by API.mu
}

// verdict is the answer to a permission.
type verdict struct {
	allow bool
	how   agent.Outcome
}

// permit waits for the answer to a permission. It returns nil if the agent has to ask in its
// terminal: there was no answer, or it is not a yes-or-no question. by is the agent, if the
// address names it.
func (a *API) permit(ctx context.Context, by string, body []byte) (*decided, error) {
	var w request
	if err := httpserver.Decode(body, &w); err != nil {
		return nil, err
	}
	w.Tool = line(w.Tool, limit.Word)
	if !w.yesOrNo() {
		return nil, nil
	}
	by, ours := w.by(by)
	if !ours {
		return nil, nil
	}
	ctx, withdraw := context.WithCancel(ctx)
	defer withdraw()
	h := a.addPermission(by, w, withdraw)
	if h == nil {
		a.o.Log.Warn("a permission is left to the terminal: too many wait already", "waiting", maxWaiting)
		return nil, nil
	}
	v, answered := a.release(by, h, a.await(ctx, h))
	session := h.question.Session
	a.o.Log.Info("a permission was asked for", "session", session, "tool", w.Tool, "answered", answered, "allowed", v.allow, "how", v.how)
	if !answered {
		return nil, nil
	}
	answer := &decided{}
	words := a.words("")
	answer.Output.Event, answer.Output.Decision = "PermissionRequest", decision{"deny", words.Message("hooks.denied")}
	switch {
	case v.allow:
		answer.Output.Decision = decision{Behavior: "allow"}
	case v.how == agent.AnswerDenied:
		answer.Output.Decision.Message = words.Message("hooks.denied_elsewhere")
	}
	return answer, nil
}

// by returns the agent that asks. ours reports whether it waits for the answer, as Claude Code and
// Codex do. given is the agent in the address.
func (w request) by(given string) (by string, ours bool) {
	if given == "" && w.HookEvent == "" {
		given = w.AgentID
	}
	by = cmp.Or(line(given, limit.Word), claude)
	return by, by == claude || by == codex
}

// yesOrNo reports whether yes or no can answer the request. This excludes choices and plans, other
// hooks, and commands where redacting keys would also hide other parts.
func (w request) yesOrNo() bool {
	if w.HookEvent != "" && w.HookEvent != "PermissionRequest" {
		return false
	}
	if kind, title := describe(w.Tool, w.Input); kind == "execute" && remote.Conceals(plain.Clip(title, maxRead)) {
		return false
	}
	return w.Tool != "" && !slices.Contains([]string{"AskUserQuestion", "ExitPlanMode", "EnterPlanMode"}, w.Tool)
}

// addPermission adds a waiting permission. It returns nil if too many wait.
func (a *API) addPermission(by string, w request, withdraw func()) *permission {
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
	a.change(a.table.asked(now, h.key, by, 1))
	s := a.table[h.key]
	for _, c := range slices.Backward(s.calls) { // the latest equal call waits
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

// settledBy reports whether a report shows that the permission was answered in the terminal.
// Reports of a parallel call or of a subagent do not show that.
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

// parallelFor is the maximum time between the beginnings of calls that an agent makes at once. After
// a denial in the terminal, an agent takes longer to call another tool.
const parallelFor = 2 * time.Second

// addParallel records a call that began at the same time as the waiting one.
func (h *permission) addParallel(r report, now time.Time) {
	if r.event == preToolUse && h.key == r.key() && r.call.id != "" && !h.call.same(r.call) &&
		now.Sub(h.question.Asked) < parallelFor && len(h.parallel) < maxParallel {
		h.parallel = append(h.parallel, r.call)
	}
}

// await waits for the first answer, at a robot or elsewhere. It returns the outcome that applies if there
// was none: the time has expired, or the question was withdrawn.
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

// release removes a waiting permission and publishes its answer, or the outcome without if none exists.
func (a *API) release(by string, h *permission, without agent.Outcome) (v verdict, answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, h.question.ID)
	if answered = h.verdict != nil; answered {
		v = *h.verdict
	} else {
		v.how = without
	}
	after := a.table.asked(time.Now(), h.key, by, -1)
	if s, known := after[h.key]; known && answered && !v.allow && h.call.id != "" {
		after[h.key] = s.withoutCall(h.call, false) // a denied call is not reported again
	}
	a.change(after) // before the answer, which shows it
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

// Reply answers a permission by the ID of its question, for a person who is not with a robot.
// It returns agent.ErrNoQuestion if the question does not wait.
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
