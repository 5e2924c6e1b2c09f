package assist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/event"
	"perch/limit"
	"perch/plain"
	"perch/remote"
	"perch/remote/hass"
)

const (
	mostKinds  = 32               // of events in a turn
	toolWithin = 30 * time.Second // for silence while a tool of Home Assistant is running
)

// Think implements agent.Brain. When ctx ends, the run is cancelled at Home Assistant
// and Think returns at once. An error message of Home Assistant itself is an answer
// like any other.
func (b *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.Stranger() {
		return agent.ErrStranger
	}
	r := &turnRun{brain: b, turn: t, out: out, speech: thinker.NewSpeech(t.Language)}
	ask := r.runPipeline
	if b.o.REST {
		ask = r.runREST
	}
	reply, err := ask(ctx, b.talks.id(t.Conversation))
	switch {
	case err == nil:
		b.talks.store(t.Conversation, reply.Conversation)
		err = r.finish(reply)
	case errors.Is(err, errEndless) && ctx.Err() == nil:
		b.talks.forget(t.Conversation)
		return r.cutOff()
	}
	switch interrupted := ctx.Err() != nil || r.outError != nil; {
	case err == nil:
		return nil
	case interrupted && r.conversation != "":
		b.talks.store(t.Conversation, r.conversation) // Home Assistant has stored the exchange
	case !interrupted:
		b.talks.forget(t.Conversation) // the history may be why it failed
	}
	switch {
	case r.outError != nil:
		return r.outError
	case len(r.tools) > 0 && ctx.Err() == nil:
		// Not wrapped, so that ErrAway ends here: another brain must not repeat actions.
		return fmt.Errorf("after its tools had run: %v", err)
	}
	return asAway(ctx, err)
}

// errEndless is the reason for stopping an answer that does not end. The robot says
// a phrase for it; it is not a failure.
var errEndless = errors.New("the answer comes to no end")

// turnRun is one turn.
type turnRun struct {
	brain  *Brain
	turn   agent.Turn
	out    func(agent.Reply) error
	speech *thinker.Speech

	outError error // of out: Home Assistant is not at fault

	conversation string // its id, once it is known
	sent         bool   // out has been called

	role   string // of the message being received
	spoken strings.Builder
	tools  []*event.ToolStatus
}

func (r *turnRun) send(replies ...agent.Reply) error {
	for _, reply := range replies {
		if r.outError = r.out(reply); r.outError != nil {
			return r.outError
		}
		r.sent = true
	}
	return nil
}

// runREST runs the turn over the REST API.
func (r *turnRun) runREST(ctx context.Context, conversation string) (hass.Reply, error) {
	o := r.brain.o
	return r.brain.client.Converse(ctx, o.FirstWithin, hass.Question{
		Text: plain.Clip(r.turn.Text, limit.Question), Language: r.turn.Language, Agent: o.Agent, Conversation: conversation,
	})
}

// runPipeline runs the turn with a pipeline.
func (r *turnRun) runPipeline(ctx context.Context, conversation string) (hass.Reply, error) {
	b := r.brain
	conn, err := b.connection(ctx)
	if err != nil {
		return hass.Reply{}, err
	}
	run, err := conn.Run(ctx, hass.Start{
		From: hass.StageIntent, To: hass.StageIntent, Text: plain.Clip(r.turn.Text, limit.Question), Pipeline: b.pipeline(),
		Conversation: conversation,
	})
	if err != nil {
		return hass.Reply{}, err
	}
	defer run.Close()
	if err := run.AwaitStart(ctx, b.o.ConnectWithin); err != nil {
		return hass.Reply{}, err
	}
	within, left := b.o.FirstWithin, b.o.TurnWithin
	slow := false             // the latest piece did not make up for the wait before it
	seen := map[string]bool{} // kinds of events
	for {
		waiting := time.Now()
		e, err := run.Next(ctx, min(within, left))
		waited := time.Since(waiting)
		// An empty event does not extend the time.
		within, left = max(0, within-waited), max(0, left-waited)
		if err != nil && left == 0 && ctx.Err() == nil && r.sent {
			return hass.Reply{}, errEndless
		}
		if errors.Is(err, io.EOF) {
			return hass.Reply{}, b.client.Fault("ended its pipeline without an answer; see its log")
		}
		if err != nil && slow && within == 0 && ctx.Err() == nil {
			return hass.Reply{}, b.client.Fault("writes its answer far slower than it is spoken; its conversation agent is overloaded, or too slow")
		}
		if err != nil {
			return hass.Reply{}, err
		}
		news := len(seen) < mostKinds && !seen[e.Type]
		if news {
			seen[e.Type], within = true, b.o.FirstWithin
		}
		switch e.Type {
		case hass.EventIntentStart:
			r.conversation = plain.Clip(e.Conversation(), limit.Name)
		case hass.EventIntentProgress:
			lives, worth, err := r.progress(e)
			if err != nil {
				return hass.Reply{}, err
			}
			idle := b.o.IdleWithin
			if r.working() {
				idle = max(idle, toolWithin)
			}
			switch {
			case lives || news:
				within, slow = idle, false
			case worth > 0:
				within = min(within+worth, idle)
				slow = within < idle
			}
			if r.speech.Full() {
				return hass.Reply{}, errEndless
			}
		case hass.EventIntentEnd:
			reply, err := e.Reply()
			if err != nil {
				return hass.Reply{}, b.client.Fault("answers in a way that is not of its API; it may be too old, or too new")
			}
			return reply, nil
		}
	}
}

// progress handles a piece of the conversation's log. It reports whether something has
// started or ended, and how much waiting time its text is worth.
func (r *turnRun) progress(e hass.Event) (lives bool, worth time.Duration, err error) {
	d, there, err := e.Delta()
	if err != nil || !there {
		return false, 0, nil // the whole answer also comes at the end
	}
	lives = len(d.Calls) > 0 || d.CallID != "" || d.Role != "" && d.Role != r.role
	return lives, remote.Worth(d.Content) + remote.Worth(d.Thought), r.handleDelta(d)
}

// working reports whether a tool is running.
func (r *turnRun) working() bool {
	return slices.ContainsFunc(r.tools, func(t *event.ToolStatus) bool { return t.Status == event.ToolRunning })
}

func (r *turnRun) handleDelta(d hass.Delta) error {
	if d.Role != "" {
		r.role = d.Role
		if err := r.send(r.speech.Flush()...); err != nil {
			return err
		}
	}
	if r.role == "assistant" && d.Content != "" {
		if err := r.sendText(d.Content); err != nil {
			return err
		}
	}
	for _, call := range d.Calls {
		if err := r.toolStarted(call); err != nil {
			return err
		}
	}
	if d.CallID != "" {
		status := event.ToolDone
		if d.Failed {
			status = event.ToolFailed
		}
		return r.toolEnded(d.CallID, status)
	}
	return nil
}

func (r *turnRun) sendText(text string) error {
	if r.spoken.Len()+len(text) > limit.Body {
		return errEndless
	}
	r.spoken.WriteString(text)
	return r.send(r.speech.Write(text)...)
}

// toolStarted reports a running tool. Text before it is spoken first. A tool without
// an id is ignored, because its end could not be reported.
func (r *turnRun) toolStarted(call hass.ToolCall) error {
	if call.ID == "" || call.Name == "" || len(r.tools) == limit.Tools {
		return nil
	}
	t := &event.ToolStatus{ID: plain.Clip(call.ID, limit.Name), Name: plain.Clip(call.Name, limit.Name), Status: event.ToolRunning}
	if slices.ContainsFunc(r.tools, func(known *event.ToolStatus) bool { return known.ID == t.ID }) {
		return nil
	}
	r.tools = append(r.tools, t)
	return r.send(append(r.speech.Flush(), agent.ToolStatus{ToolStatus: *t})...)
}

func (r *turnRun) toolEnded(id, status string) error {
	for _, t := range r.tools {
		if t.ID == plain.Clip(id, limit.Name) && t.Status == event.ToolRunning {
			t.Status = status
			return r.send(agent.ToolStatus{ToolStatus: *t})
		}
	}
	return nil
}

// toolsEnded reports the tools that are still running as done.
func (r *turnRun) toolsEnded() error {
	for _, t := range r.tools {
		if err := r.toolEnded(t.ID, event.ToolDone); err != nil {
			return err
		}
	}
	return nil
}

// finish speaks the rest of the answer, and ends the turn. A streamed answer is
// complete; an error message may follow it. An answer without words is valid: the lamp
// is on.
func (r *turnRun) finish(reply hass.Reply) error {
	if err := r.send(r.speech.Flush()...); err != nil {
		return err
	}
	if err := r.toolsEnded(); err != nil {
		return err
	}
	said := r.spoken.String()
	rest := plain.Clip(reply.Speech, limit.Body)
	if strings.TrimSpace(said) == "" || reply.Kind == "error" && !strings.Contains(said, strings.TrimSpace(rest)) {
		if err := r.send(append(r.speech.Write(rest), r.speech.Flush()...)...); err != nil {
			return err
		}
	}
	if r.speech.Full() {
		return r.cutOff()
	}
	return r.send(agent.Done{End: agent.Continue})
}

// cutOff ends a turn whose answer does not end.
func (r *turnRun) cutOff() error {
	if err := r.toolsEnded(); err != nil {
		return err
	}
	face, words := agent.SplitEmotion(r.brain.o.Phrases.Of(r.turn.Language, "cut_off"))
	felt := agent.Felt{Emotion: face, Intensity: 1, Assumed: face == agent.Neutral}
	return r.send(append(r.speech.Flush(), felt, agent.Say{Text: words}, agent.Done{End: agent.Continue})...)
}
