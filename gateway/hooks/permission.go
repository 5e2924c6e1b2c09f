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

// mostHeld bounds the permissions that wait, and mostBeside the calls beside one.
const (
	mostHeld   = 8
	mostBeside = 2 * mostCalls
)

// wish is the body of POST /permission: something that an agent may only do once
// it is allowed.
type wish struct {
	HookEvent string          `json:"hook_event_name"`
	SessionID string          `json:"session_id"`
	AgentID   string          `json:"agent_id"` // of a subagent where hook_event_name is there
	CWD       string          `json:"cwd"`
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"tool_input"`
}

// decided is what Claude Code reads of the answer. No answer at all has it ask
// in its terminal.
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

// held is a permission that waits.
type held struct {
	question agent.Question // in the household's language
	wish     wish
	key      string        // of its session
	sub      string        // the subagent that asks
	call     call          // what it is about
	beside   []call        // what ran already when it was asked, or began at once with it
	withdraw func()        // ends the question
	verdict  *verdict      // the first; nil while it waits. The door's lock guards it
	answered chan struct{} // closed once it is there
}

// verdict is how a permission was answered, and by whom.
type verdict struct {
	allow bool
	how   agent.Outcome
}

// permit holds a permission until it is answered. The answer is nil where the
// agent is to ask at the terminal: there was no answer, or it is not a question of
// yes or no. by is the agent that asks, where the address names it.
func (d *API) permit(ctx context.Context, by string, body []byte) (*decided, error) {
	var w wish
	if err := httpserver.Decode(body, &w); err != nil {
		return nil, err
	}
	w.Tool = plain.Line(plain.Clip(w.Tool, limit.Word))
	if !w.yesOrNo() {
		return nil, nil
	}
	by, ours := w.by(by)
	if !ours {
		return nil, nil
	}
	ctx, withdraw := context.WithCancel(ctx)
	defer withdraw()
	h := d.addPermission(by, w, withdraw)
	if h == nil {
		d.o.Log.Warn("a permission is left to the terminal: too many wait already", "waiting", mostHeld)
		return nil, nil
	}
	v, answered := d.release(by, h, d.await(ctx, h))
	session := h.question.Session
	d.o.Log.Info("a permission was asked for", "session", session, "tool", w.Tool, "answered", answered, "allowed", v.allow, "how", v.how)
	if !answered {
		return nil, nil
	}
	a := &decided{}
	words := d.words("")
	a.Output.Event, a.Output.Decision = "PermissionRequest", decision{"deny", words.Message("hooks.denied")}
	switch {
	case v.allow:
		a.Output.Decision = decision{Behavior: "allow"}
	case v.how == agent.AnswerDenied:
		a.Output.Decision.Message = words.Message("hooks.denied_elsewhere")
	}
	return a, nil
}

// by is the agent that asks, and whether it waits for an answer here: Claude Code
// and Codex do. given is what the address holds of it.
func (w wish) by(given string) (by string, ours bool) {
	if given == "" && w.HookEvent == "" {
		given = w.AgentID
	}
	by = cmp.Or(plain.Line(plain.Clip(given, limit.Word)), claude)
	return by, by == claude || by == codex
}

// yesOrNo reports whether it can be asked for here: what wants a
// choice or a plan read is for the terminal, and so are the dialects of other
// agents, and commands with a part that would be blanked though it is not a key.
func (w wish) yesOrNo() bool {
	if w.HookEvent != "" && w.HookEvent != "PermissionRequest" {
		return false
	}
	if kind, title := does(w.Tool, w.Input); kind == "execute" && remote.Conceals(plain.Clip(title, mostRead)) {
		return false
	}
	return w.Tool != "" && !slices.Contains([]string{"AskUserQuestion", "ExitPlanMode", "EnterPlanMode"}, w.Tool)
}

// addPermission adds a permission to those that wait. It returns nil where too many do.
func (d *API) addPermission(by string, w wish, withdraw func()) *held {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.held) >= mostHeld {
		return nil
	}
	now := time.Now()
	h := &held{wish: w, answered: make(chan struct{}), withdraw: withdraw, key: key(by, cmp.Or(plain.Line(plain.Clip(w.SessionID, limit.ID)), "default")),
		call: call{name: w.Tool, detail: detail(w.Tool, w.Input)}}
	if w.HookEvent != "" {
		h.sub = plain.Line(plain.Clip(w.AgentID, limit.ID))
	}
	d.change(d.table.asked(now, h.key, by, 1))
	s := d.table[h.key]
	for _, c := range slices.Backward(s.calls) { // the last that is the same is the one that waits
		if h.call.id == "" && h.call.same(c) {
			h.call = c
		} else {
			h.beside = append(h.beside, c)
		}
	}
	session := name(s.slot)
	h.question = agent.Question{ID: "hook-" + rand.Text(), Text: question(d.words(""), w), Session: session, Asked: now, Until: now.Add(d.o.Hold)}
	d.held[h.question.ID] = h
	d.o.Bus.Publish("", session, event.Asked{ID: h.question.ID, Text: h.question.Text})
	return h
}

// settledBy reports whether a session with this report goes on without an answer
// from here: it was answered in its terminal. Reports of a call beside the one
// that waits, or of a subagent, do not show that.
func (h *held) settledBy(r report) bool {
	if h.key != r.key() {
		return false
	}
	switch r.event {
	case stop, stopFailure, interrupt, userPromptSubmit, sessionEnd:
		return true
	case postToolUse, postToolUseFailure:
		return h.sub == r.sub && !has(h.beside, r.call)
	}
	return false
}

// besideFor is how long after a permission was asked for a call that begins is one
// of those that the agent makes at once. After a no in the terminal it takes
// longer until the agent calls another tool.
const besideFor = 2 * time.Second

// beganBeside notes a call that began at once with the one that waits.
func (h *held) beganBeside(r report, now time.Time) {
	if r.event == preToolUse && h.key == r.key() && r.call.id != "" && !h.call.same(r.call) &&
		now.Sub(h.question.Asked) < besideFor && len(h.beside) < mostBeside {
		h.beside = append(h.beside, r.call)
	}
}

// await waits for the first answer, at a robot or elsewhere, and returns why there
// is none: its time is over, or the client has left.
func (d *API) await(ctx context.Context, h *held) agent.Outcome {
	ctx, stop := context.WithDeadlineCause(ctx, h.question.Until, errLate)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		d.askAloud(ctx, h)
	}()
	defer func() { <-asked }()
	defer stop()
	select {
	case <-h.answered:
		return ""
	case <-ctx.Done():
	}
	if context.Cause(ctx) == errLate {
		return agent.AnswerExpired
	}
	return agent.AnswerClosed
}

// release takes a permission from those that wait, and publishes how it ended: by
// its answer, where one came in until now, or as it did without.
func (d *API) release(by string, h *held, without agent.Outcome) (v verdict, answered bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.held, h.question.ID)
	if answered = h.verdict != nil; answered {
		v = *h.verdict
	} else {
		v.how = without
	}
	after := d.table.asked(time.Now(), h.key, by, -1)
	if s, known := after[h.key]; known && answered && !v.allow && h.call.id != "" {
		after[h.key] = s.withoutCall(h.call, false) // of a denied call there is no further report
	}
	// What it has done meanwhile shows at once when this is answered.
	d.change(after)
	d.o.Bus.Publish("", h.question.Session, event.Answered{ID: h.question.ID, Answer: string(v.how)})
	return v, answered
}

// Questions are the permissions that wait for an answer, the oldest first.
func (d *API) Questions() []agent.Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := []agent.Question{}
	for _, h := range d.held {
		open = append(open, h.question)
	}
	slices.SortFunc(open, func(a, b agent.Question) int { return a.Asked.Compare(b.Asked) })
	return open
}

// Reply answers a permission by the id of its question, for a person who is not
// with a robot. It returns agent.ErrNoQuestion where that does not wait.
func (d *API) Reply(id string, allow bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, waits := d.held[id]
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

// answer gives a permission its answer, and reports whether it was the first. The
// lock must be held.
func (h *held) answer(v verdict) bool {
	if h.verdict != nil {
		return false
	}
	h.verdict = &v
	close(h.answered)
	return true
}
