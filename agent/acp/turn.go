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

// Bounds of titles and questions.
const (
	mostRead  = 4 * limit.Name // bytes of a title; it may contain keys, which are blanked
	mostAloud = 120            // bytes of a title that are spoken
	askWithin = 60 * time.Second
)

// turnRun is one turn, from the sent prompt to its end.
type turnRun struct {
	brain   *Brain
	session *session
	inbox   *inbox
	turn    agent.Turn
	out     func(agent.Reply) error
	said    *language.Words

	speech *thinker.Speech
	tools  *thinker.TurnTools // available in this turn; nil if none are
	seen   []*tool
	face   agent.Felt
	began  bool // part of the turn has been seen
	spoke  bool

	// How long the agent has let us wait.
	waited time.Duration
	worded time.Duration // waited since the latest words began
	words  bool          // words are being streamed

	asking        *permission // not yet answered
	refusalSpoken bool        // it was said that this robot may not answer
	how           string      // how the latest permission was answered
}

// tool is the known state of a running tool.
type tool struct {
	toolChange
	shown event.ToolStatus
}

// Reasons for ending a turn from this side.
var (
	errSilent = fmt.Errorf("%w: the agent gave no sign of life", agent.ErrAway)
	// The robot says a phrase for these two; they are not failures.
	errTooMuch = errors.New("the agent says more than can be spoken")
	errEndless = errors.New("the agent comes to no end")
)

// run handles the turn's events until the agent has ended the turn.
func (r *turnRun) run(ctx context.Context) (ended, error) {
	for {
		it, err := r.next(ctx)
		if err != nil {
			return ended{}, err
		}
		switch it := it.(type) {
		case text:
			r.words = true
			if err = r.sendReplies(r.speech.Write(string(it))); err == nil && r.speech.Full() {
				err = errTooMuch
			}
		case toolChange:
			r.words, r.worded = false, 0
			err = r.tool(it)
		case permission:
			err = r.handlePermission(ctx, it)
		case ended:
			if it.err != nil {
				return it, nil // an incomplete sentence is better left out
			}
			return it, r.sendReplies(r.speech.Flush())
		}
		if err != nil {
			return ended{}, err
		}
	}
}

// next waits for the next item within the turn's time limits.
func (r *turnRun) next(ctx context.Context) (item, error) {
	left := r.brain.o.Turn - r.waited
	if r.words {
		left = min(left, r.brain.o.Words-r.worded)
	}
	silence, end := time.NewTimer(r.brain.o.Silence), time.After(left)
	defer silence.Stop()
	defer func(began time.Time) {
		d := time.Since(began)
		r.waited += d
		if r.words {
			r.worded += d
		}
	}(time.Now())
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		it, over := r.inbox.pop()
		switch {
		case over:
			return nil, errTooMuch
		case it != nil:
			return it, nil
		}
		select {
		case <-r.inbox.some:
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
	r.began = true
	return r.out(reply)
}

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

// phrase says one of the appliance's phrases as one sentence.
func (r *turnRun) phrase(sentence string) error {
	face, words := agent.SplitEmotion(sentence)
	return r.sendReplies(append(r.speech.Flush(), agent.Felt{Emotion: face, Intensity: 1, Assumed: face == agent.Neutral}, agent.Say{Text: words}))
}

// tool reports a running tool. A tool of kind think is not reported, unless it is
// another agent.
func (r *turnRun) tool(change toolChange) error {
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

func (r *turnRun) reportTool(t *tool, status string) error {
	name, is := r.ownTool(t.name)
	if !is {
		name = cmp.Or(t.kind, "other")
	}
	now := event.ToolStatus{ID: t.id, Name: name, Status: status, Detail: r.title(t.title), SubAgent: t.agent}
	if now == t.shown {
		return nil
	}
	if t.shown.Status == "" {
		if err := r.sendReplies(r.speech.Flush()); err != nil { // what was said before it began
			return err
		}
	}
	t.shown = now
	return r.send(agent.ToolStatus{ToolStatus: now})
}

// toolFor returns the tool of an id, and adds a new one while there is room.
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

func (t *tool) merge(change toolChange) {
	t.title = cmp.Or(change.title, t.title)
	t.kind = cmp.Or(change.kind, t.kind)
	t.name = cmp.Or(change.name, t.name)
	t.status = cmp.Or(change.status, t.status)
	t.agent = t.agent || change.agent
}

// title returns a tool's title for display: one line, without keys.
func (r *turnRun) title(s string) string {
	return strings.Join(strings.Fields(r.brain.redacted(s, limit.Name)), " ")
}

// handlePermission answers a permission: by the options, by the person in the room,
// or, failing both, with no.
func (r *turnRun) handlePermission(ctx context.Context, p permission) error {
	r.asking = &p
	v, err := r.decide(ctx, p)
	if err != nil {
		return err // cancelled with the rest
	}
	r.asking = nil
	r.brain.o.Log.Info("a permission was answered", "agent", r.brain.name(), "robot", r.turn.Robot, "allowed", v == allowed,
		"how", r.how, "kind", p.call.kind, "title", r.title(p.call.title))
	r.session.conn.answer(p, v)
	for _, t := range r.seen {
		if v == refused && t.id == p.call.id && t.shown.Status == event.ToolRunning {
			return r.reportTool(t, event.ToolFailed) // few agents report that themselves
		}
	}
	return nil
}

func (r *turnRun) decide(ctx context.Context, p permission) (verdict, error) {
	call := p.call
	for _, t := range r.seen {
		if t.id == call.id {
			known := *t
			known.merge(call)
			call = known.toolChange
		}
	}
	may := r.brain.o.MayAnswer
	_, ours := r.ownTool(call.name)
	r.how = "listed as allowed"
	switch {
	case p.allow == "" && !p.old:
		r.how = "only to be had for good"
		return refused, r.phrase(r.said.Message("acp.for_good"))
	case call.kind != "" && slices.Contains(r.brain.o.AllowKinds, call.kind):
		return allowed, nil
	case ours:
		r.how = "a tool of the appliance"
		return allowed, nil
	case remote.Conceals(call.title):
		r.how = "a part of it cannot be read aloud"
		return refused, r.phrase(r.said.Message("acp.hidden"))
	case may == nil || !may(r.turn.Robot):
		r.how = "the robot is not its owner's own"
		if r.refusalSpoken {
			return refused, nil
		}
		r.refusalSpoken = true
		return refused, r.phrase(r.said.Message("acp.not_you"))
	}
	if err := r.sendReplies(r.speech.Flush()); err != nil {
		return refused, err
	}
	r.how = "no answer"
	title := r.brain.redacted(call.title, limit.Name)
	return r.ask(ctx, agent.Permission(r.said, call.kind, title, mostAloud, len(call.title) >= mostRead || len(title) >= limit.Name))
}

// ask asks the person in the room, and repeats the question once if the answer is not
// understood.
func (r *turnRun) ask(ctx context.Context, question string) (verdict, error) {
	for _, words := range []string{question, r.said.Message("ask.again", "question", question)} {
		answered := make(chan agent.Answer, 1)
		err := r.send(agent.Ask{ID: "acp-" + rand.Text(), Text: words, Within: askWithin, Answer: func(a agent.Answer) {
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
			if v, understood := r.interpret(a); understood {
				return v, nil
			}
		default:
			return refused, nil // no answer
		}
	}
	return refused, nil
}

// interpret maps an answer to a verdict.
func (r *turnRun) interpret(a agent.Answer) (v verdict, understood bool) {
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

// finish speaks the rest of the text, and ends the turn.
func (r *turnRun) finish(end ended) error {
	for _, t := range r.seen {
		if t.shown.Status == event.ToolRunning {
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
	sentence := ""
	switch {
	case end.reason == "refusal":
		sentence = r.brain.o.Phrases.Of(r.turn.Language, "refused")
	case end.reason == "max_tokens":
		sentence = r.said.Message("acp.cut_off")
	case end.reason == "max_turn_requests":
		sentence = r.said.Message("acp.too_long")
	case end.reason == "cancelled":
		sentence = r.said.Message("acp.stopped")
	case !r.spoke:
		sentence = r.brain.o.Phrases.Of(r.turn.Language, "done")
	}
	if sentence != "" {
		if err := r.phrase(sentence); err != nil {
			return err
		}
	}
	after := agent.Continue
	if r.tools != nil {
		after = cmp.Or(r.tools.Outcome(), after)
	}
	return r.send(agent.Done{End: after})
}
