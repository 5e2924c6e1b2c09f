package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/event"
	"perch/language"
	"perch/limit"
	"perch/remote"
)

// Limits of titles and questions.
const (
	maxTitle       = 4 * limit.Name   // bytes of a title before keys are removed from it
	maxSpokenTitle = 120              // bytes of a title that are spoken
	askTimeout     = 60 * time.Second // timeout of a person's answer to a question
)

// turnRun is a running turn.
type turnRun struct {
	brain   *Brain
	session *session
	inbox   *inbox
	turn    agent.Turn
	out     func(agent.Reply) error // sends a reply
	words   *language.Words         // phrases in the turn's language

	speech *thinker.Speech    // splits the agent's text into replies
	tools  *thinker.TurnTools // tools of the endpoint in this turn; nil if none exist
	seen   []*tool            // tools that the agent has reported
	face   agent.Felt         // latest emotion sent
	began  bool               // whether a reply was sent, other than a thought
	spoke  bool               // whether text was sent to be spoken

	// Time spent waiting for the agent.
	waited     time.Duration // total of the turn
	textWaited time.Duration // total since the current text began
	inText     bool          // whether the latest item was text

	pending       *permission // permission without a decision; nil if none
	refusalSpoken bool        // whether the robot has said that it may not decide on permissions
	how           string      // how the latest permission was decided, for the log
}

// tool is a tool that the agent has reported.
type tool struct {
	toolChange                  // its current state
	reported   event.ToolStatus // latest status sent as a reply
}

// Reasons for ending a turn early.
var (
	errSilent = fmt.Errorf("%w: the agent gave no sign of life", agent.ErrAway)
	// errTooMuch and errEndless are not failures: the robot says a phrase for them.
	errTooMuch = errors.New("the agent says more than can be spoken")
	errEndless = errors.New("the agent does not come to an end")
)

// run handles the events of the turn until the agent ends it, and returns this end, which
// may hold an error of the agent. run itself fails if the turn exceeds a limit, if ctx ends,
// or if a reply cannot be sent.
func (r *turnRun) run(ctx context.Context) (ended, error) {
	for {
		it, err := r.next(ctx)
		if err != nil {
			return ended{}, err
		}
		switch it := it.(type) {
		case text:
			r.inText = true
			if err = r.sendReplies(r.speech.Write(string(it))); err == nil && r.speech.Full() {
				err = errTooMuch
			}
		case thought:
			err = r.sendReplies(r.speech.Think(string(it)))
		case toolChange:
			r.inText, r.textWaited = false, 0
			err = r.handleTool(it)
		case permission:
			err = r.handlePermission(ctx, it)
		case ended:
			if it.err != nil {
				return it, nil // drops the sentence that the agent did not complete
			}
			return it, r.sendReplies(r.speech.Flush())
		}
		if err != nil {
			return ended{}, err
		}
	}
}

// next waits for the next item within the turn's time limits. It returns errSilent after
// Options.Silence, errEndless after Options.Turn or Options.Words, errTooMuch if the inbox was
// full, and the error of ctx if ctx ends.
func (r *turnRun) next(ctx context.Context) (item, error) {
	left := r.brain.o.Turn - r.waited
	if r.inText {
		left = min(left, r.brain.o.Words-r.textWaited)
	}
	silence, end := time.NewTimer(r.brain.o.Silence), time.After(left)
	defer silence.Stop()
	defer func(start time.Time) {
		d := time.Since(start)
		r.waited += d
		if r.inText {
			r.textWaited += d
		}
	}(time.Now())
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		it, overflow := r.inbox.pop()
		switch {
		case overflow:
			return nil, errTooMuch
		case it != nil:
			return it, nil
		}
		select {
		case <-r.inbox.filled:
			silence.Reset(r.brain.o.Silence)
		case <-ctx.Done():
		case <-silence.C:
			return nil, errSilent
		case <-end:
			return nil, errEndless
		}
	}
}

func (r *turnRun) send(reply agent.Reply) error {
	if _, isThought := reply.(agent.Thought); !isThought {
		r.began = true
	}
	return r.out(reply)
}

// sendReplies sends replies, except emotions equal to the previous one.
func (r *turnRun) sendReplies(replies []agent.Reply) error {
	for _, reply := range replies {
		switch reply := reply.(type) {
		case agent.Say:
			r.spoke = true
		case agent.Felt:
			if reply == r.face {
				continue
			}
			r.face = reply
		}
		if err := r.send(reply); err != nil {
			return err
		}
	}
	return nil
}

// sendPhrase sends a phrase, which may begin with an emoji, as one sentence, after the text
// that r.speech still holds.
func (r *turnRun) sendPhrase(phrase string) error {
	face, text := agent.SplitEmotion(phrase)
	return r.sendReplies(append(r.speech.Flush(), agent.Felt{Emotion: face, Intensity: 1, Assumed: face == agent.Neutral}, agent.Say{Text: text}))
}

// handleTool updates a tool and reports its status. It does not report tools of kind think,
// except other agents, nor tools beyond the limit of toolFor.
func (r *turnRun) handleTool(change toolChange) error {
	t := r.toolFor(change.id)
	if t == nil {
		return nil
	}
	t.merge(change)
	if t.kind == "think" && !t.agent {
		return nil
	}
	ended := map[string]string{toolCompleted: event.ToolDone, toolFailed: event.ToolFailed}
	return r.reportTool(t, cmp.Or(ended[t.status], event.ToolRunning))
}

// reportTool sends the status of a tool if it differs from the status sent before.
func (r *turnRun) reportTool(t *tool, status string) error {
	name, ok := r.endpointTool(t.name)
	if !ok {
		name = cmp.Or(t.kind, "other")
	}
	current := event.ToolStatus{ID: t.id, Name: name, Status: status, Detail: r.title(t.title), SubAgent: t.agent}
	if current == t.reported {
		return nil
	}
	if t.reported.Status == "" {
		if err := r.sendReplies(r.speech.Flush()); err != nil { // speak the text that came before the tool
			return err
		}
	}
	t.reported = current
	return r.send(agent.ToolStatus{ToolStatus: current})
}

// toolFor returns the tool with this ID, which it adds if necessary. It returns nil if
// there are too many tools.
func (r *turnRun) toolFor(id string) *tool {
	if i := slices.IndexFunc(r.seen, func(t *tool) bool { return t.id == id }); i >= 0 {
		return r.seen[i]
	}
	if len(r.seen) >= limit.Tools {
		return nil
	}
	t := &tool{toolChange: toolChange{id: id}}
	r.seen = append(r.seen, t)
	return t
}

// merge updates t with the fields of change that are set.
func (t *tool) merge(change toolChange) {
	t.title = cmp.Or(change.title, t.title)
	t.kind = cmp.Or(change.kind, t.kind)
	t.name = cmp.Or(change.name, t.name)
	t.status = cmp.Or(change.status, t.status)
	t.agent = t.agent || change.agent
}

// title returns the title of a tool for display: one line, without keys.
func (r *turnRun) title(s string) string {
	return strings.Join(strings.Fields(r.brain.redact(s, limit.Name)), " ")
}

// handlePermission decides on a request for permission and sends the response.
func (r *turnRun) handlePermission(ctx context.Context, p permission) error {
	r.pending = &p
	d, err := r.decide(ctx, p)
	if err != nil {
		return err // Brain.think cancels the turn, and with it the permission
	}
	r.pending = nil
	r.brain.o.Log.Info("a permission was answered", "agent", r.brain.name(), "robot", r.turn.Robot, "allowed", d == allowed,
		"how", r.how, "kind", p.call.kind, "title", r.title(p.call.title))
	r.session.conn.sendDecision(p, d)
	for _, t := range r.seen {
		if d == refused && t.id == p.call.id && t.reported.Status == event.ToolRunning {
			return r.reportTool(t, event.ToolFailed) // few agents report themselves that a refused tool has failed
		}
	}
	return nil
}

// decide decides on a permission: by the kind and the name of the tool, or else by asking
// the person. It refuses without asking, and has the robot say why, if the tool could only be
// allowed permanently, if the title cannot be read aloud, or if the person may not decide
// (which the robot says only once in a turn).
func (r *turnRun) decide(ctx context.Context, p permission) (decision, error) {
	call := p.call
	for _, t := range r.seen {
		if t.id == call.id {
			merged := *t
			merged.merge(call)
			call = merged.toolChange
		}
	}
	mayAnswer := r.brain.o.MayAnswer
	_, isOwn := r.endpointTool(call.name)
	r.how = "listed as allowed"
	switch {
	case p.allow == "" && !p.old:
		r.how = "it could only be allowed permanently"
		return refused, r.sendPhrase(r.words.Message("acp.for_good"))
	case call.kind != "" && slices.Contains(r.brain.o.AllowKinds, call.kind):
		return allowed, nil
	case isOwn:
		r.how = "a tool of the appliance"
		return allowed, nil
	case remote.Conceals(call.title):
		r.how = "a part of it cannot be read aloud"
		return refused, r.sendPhrase(r.words.Message("acp.hidden"))
	case mayAnswer == nil || !mayAnswer(r.turn.Robot):
		r.how = "the robot was not adopted by the owner"
		if r.refusalSpoken {
			return refused, nil
		}
		r.refusalSpoken = true
		return refused, r.sendPhrase(r.words.Message("acp.not_you"))
	}
	if err := r.sendReplies(r.speech.Flush()); err != nil {
		return refused, err
	}
	r.how = "no answer"
	title := r.brain.redact(call.title, limit.Name)
	return r.ask(ctx, agent.Permission(r.words, call.kind, title, maxSpokenTitle, len(call.title) >= maxTitle || len(title) >= limit.Name))
}

// ask asks the person, and repeats the question once if the answer is not understood. The
// receiver of agent.Ask calls Answer before it returns; ask refuses if it has not.
func (r *turnRun) ask(ctx context.Context, question string) (decision, error) {
	for _, text := range []string{question, r.words.Message("ask.again", "question", question)} {
		answered := make(chan agent.Answer, 1)
		err := r.send(agent.Ask{ID: "acp-" + rand.Text(), Text: text, Within: askTimeout, Answer: func(a agent.Answer) {
			select {
			case answered <- a:
			default:
			}
		}})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return refused, err
		}
		select {
		case a := <-answered:
			r.how = string(a.Outcome)
			if d, understood := r.interpret(a); understood {
				return d, nil
			}
		default:
			return refused, nil // no answer
		}
	}
	return refused, nil
}

// interpret returns the decision in an answer. understood is false for a spoken answer that
// is neither yes nor no.
func (r *turnRun) interpret(a agent.Answer) (d decision, understood bool) {
	switch a.Outcome {
	case agent.AnswerTouch, agent.AnswerAllowed:
		return allowed, true
	case agent.AnswerGiven:
		yes, understood := agent.YesOrNo(&r.brain.languages, a.Text)
		if yes {
			return allowed, understood
		}
		return refused, understood
	}
	return refused, true
}

// finish sends the last replies of the turn: the end of its tools, the agent's text if it
// was not streamed, a phrase for an unusual end, and agent.Done.
func (r *turnRun) finish(end ended) error {
	for _, t := range r.seen {
		if t.reported.Status == event.ToolRunning {
			if err := r.reportTool(t, event.ToolDone); err != nil {
				return err
			}
		}
	}
	if !r.spoke && end.content != "" {
		if err := r.sendReplies(append(r.speech.Write(end.content), r.speech.Flush()...)); err != nil {
			return err
		}
		if r.speech.Full() {
			end.reason = "max_tokens"
		}
	}
	phrase := ""
	switch {
	case end.reason == "refusal":
		phrase = r.brain.o.Phrases.Of(r.turn.Language, "refused")
	case end.reason == "max_tokens":
		phrase = r.words.Message("acp.cut_off")
	case end.reason == "max_turn_requests":
		phrase = r.words.Message("acp.too_long")
	case end.reason == "cancelled":
		phrase = r.words.Message("acp.stopped")
	case !r.spoke:
		phrase = r.brain.o.Phrases.Of(r.turn.Language, "done")
	}
	if phrase != "" {
		if err := r.sendPhrase(phrase); err != nil {
			return err
		}
	}
	outcome := agent.Continue
	if r.tools != nil {
		outcome = cmp.Or(r.tools.Outcome(), outcome)
	}
	return r.send(agent.Done{End: outcome})
}
