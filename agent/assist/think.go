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
	maxEventTypes = 32               // types of events whose first event in a turn restarts the wait
	toolIdle      = 30 * time.Second // maximum pause while a tool of Home Assistant runs, unless Options.IdleWithin is longer
)

// Think implements agent.Brain. It returns agent.ErrStranger for an untrusted turn. If ctx
// ends, Think cancels the run in Home Assistant and returns without waiting. An error message
// of the conversation agent is spoken like any other answer.
func (b *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.Untrusted { // Home Assistant would carry out every command in the text
		return agent.ErrStranger
	}
	if b.o.Perform != nil {
		if found, err := b.o.Perform(ctx, t, out); found || err != nil {
			return err
		}
	}
	r := &turnRun{brain: b, turn: t, out: out, speech: thinker.NewSpeech(t.Language)}
	run := r.runPipeline
	if b.o.REST {
		run = r.runREST
	}
	reply, err := run(ctx, b.conversations.hassID(t.Conversation))
	switch {
	case err == nil:
		b.conversations.store(t.Conversation, reply.Conversation)
		err = r.finish(reply)
	case errors.Is(err, errEndless) && ctx.Err() == nil:
		b.conversations.forget(t.Conversation)
		return r.cutOff()
	}
	switch interrupted := ctx.Err() != nil || r.outErr != nil; {
	case err == nil:
		return nil
	case interrupted && r.hassID != "":
		b.conversations.store(t.Conversation, r.hassID) // Home Assistant has stored the exchange
	case !interrupted:
		b.conversations.forget(t.Conversation) // the history may be the cause of the failure
	}
	switch {
	case r.outErr != nil:
		return r.outErr
	case len(r.tools) > 0 && ctx.Err() == nil:
		// The error does not wrap agent.ErrAway, because another brain must not repeat actions.
		return fmt.Errorf("after its tools had run: %v", err)
	}
	return awayError(ctx, err)
}

// errEndless is the reason for stopping an answer that is too long or takes too long. The turn
// does not fail then; the robot says a phrase.
var errEndless = errors.New("the answer does not come to an end")

// turnRun is a running turn.
type turnRun struct {
	brain  *Brain
	turn   agent.Turn
	out    func(agent.Reply) error // sends a reply
	speech *thinker.Speech         // splits the text of the answer into replies

	outErr error  // error of the latest call of out
	hassID string // Home Assistant's ID of the conversation; "" until it is known
	sent   bool   // whether a reply was sent

	role  string              // role of the message that is being received
	text  strings.Builder     // text of the answer so far
	tools []*event.ToolStatus // tools that Home Assistant has called
}

func (r *turnRun) send(replies ...agent.Reply) error {
	for _, reply := range replies {
		if r.outErr = r.out(reply); r.outErr != nil {
			return r.outErr
		}
		r.sent = true
	}
	return nil
}

// runREST runs the turn over the REST API. hassID is Home Assistant's ID of the
// conversation.
func (r *turnRun) runREST(ctx context.Context, hassID string) (hass.Reply, error) {
	o := r.brain.o
	return r.brain.client.Converse(ctx, o.FirstWithin, hass.Question{
		Text: plain.Clip(r.turn.Text, limit.Question), Language: r.turn.Language, Agent: o.Agent, Conversation: hassID,
	})
}

// runPipeline runs the turn with a pipeline. hassID is Home Assistant's ID of the
// conversation.
func (r *turnRun) runPipeline(ctx context.Context, hassID string) (hass.Reply, error) {
	b := r.brain
	conn, err := b.getConn(ctx)
	if err != nil {
		return hass.Reply{}, err
	}
	run, err := conn.Run(ctx, hass.Start{
		From: hass.StageIntent, To: hass.StageIntent, Text: plain.Clip(r.turn.Text, limit.Question), Pipeline: b.pipeline(),
		Conversation: hassID,
	})
	if err != nil {
		return hass.Reply{}, err
	}
	defer run.Close()
	if err := run.AwaitStart(ctx, b.o.ConnectWithin); err != nil {
		return hass.Reply{}, err
	}
	// The waiting time left for the next event, and for all events of the turn. Only the start
	// of a message, the start or end of a tool, text, and the first event of a type extend eventLeft.
	eventLeft, turnLeft := b.o.FirstWithin, b.o.TurnWithin
	slow := false             // whether the texts since then took longer than the waiting time that they add (see remote.TextWait)
	seen := map[string]bool{} // key: type of event
	for {
		start := time.Now()
		e, err := run.Next(ctx, min(eventLeft, turnLeft))
		waited := time.Since(start)
		eventLeft, turnLeft = max(0, eventLeft-waited), max(0, turnLeft-waited)
		if err != nil && turnLeft == 0 && ctx.Err() == nil && r.sent {
			return hass.Reply{}, errEndless
		}
		if errors.Is(err, io.EOF) {
			return hass.Reply{}, b.client.Fault("ended its pipeline without an answer; see its log")
		}
		if err != nil && slow && eventLeft == 0 && ctx.Err() == nil {
			return hass.Reply{}, b.client.Fault("writes its answer far slower than it is spoken; its conversation agent is overloaded, or too slow")
		}
		if err != nil {
			return hass.Reply{}, err
		}
		isNewType := len(seen) < maxEventTypes && !seen[e.Type]
		if isNewType {
			seen[e.Type], eventLeft = true, b.o.FirstWithin
		}
		switch e.Type {
		case hass.EventIntentStart:
			r.hassID = plain.Clip(e.Conversation(), limit.Name)
		case hass.EventIntentProgress:
			progressed, textTime, err := r.handleProgress(e)
			if err != nil {
				return hass.Reply{}, err
			}
			maxPause := b.o.IdleWithin
			if r.isToolRunning() {
				maxPause = max(maxPause, toolIdle)
			}
			switch {
			case progressed || isNewType:
				eventLeft, slow = maxPause, false
			case textTime > 0:
				eventLeft = min(eventLeft+textTime, maxPause)
				slow = eventLeft < maxPause
			}
			if r.speech.Full() {
				return hass.Reply{}, errEndless
			}
		case hass.EventIntentEnd:
			reply, err := e.Reply()
			if err != nil {
				return hass.Reply{}, b.client.Fault("sent a response that does not conform to its API; its version may be too old or too new")
			}
			return reply, nil
		}
	}
}

// handleProgress handles a progress event. It reports whether a message of another role, or a tool, has
// started or ended, and by how much the text of the event extends the waiting time.
func (r *turnRun) handleProgress(e hass.Event) (progressed bool, textTime time.Duration, err error) {
	d, ok, err := e.Delta()
	if err != nil || !ok {
		return false, 0, nil // ignore a part that cannot be read; finish sends the whole answer if no other part was read
	}
	progressed = len(d.Calls) > 0 || d.CallID != "" || d.Role != "" && d.Role != r.role
	return progressed, remote.TextWait(d.Content) + remote.TextWait(d.Thought), r.handleDelta(d)
}

// isToolRunning reports whether a tool of Home Assistant runs.
func (r *turnRun) isToolRunning() bool {
	return slices.ContainsFunc(r.tools, func(t *event.ToolStatus) bool { return t.Status == event.ToolRunning })
}

// handleDelta sends the replies for a part of the answer.
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
		if err := r.startTool(call); err != nil {
			return err
		}
	}
	if d.CallID != "" {
		status := event.ToolDone
		if d.Failed {
			status = event.ToolFailed
		}
		return r.endTool(d.CallID, status)
	}
	return nil
}

// sendText adds text to the answer, and sends its complete sentences. It returns errEndless
// if the answer is too long.
func (r *turnRun) sendText(text string) error {
	if r.text.Len()+len(text) > limit.Body {
		return errEndless
	}
	r.text.WriteString(text)
	return r.send(r.speech.Write(text)...)
}

// startTool sends the text that came before a tool, and reports that the tool runs. It
// ignores a tool that was reported before, a tool without a name, tools beyond limit.Tools,
// and a tool without an ID, whose end could not be reported.
func (r *turnRun) startTool(call hass.ToolCall) error {
	if call.ID == "" || call.Name == "" || len(r.tools) == limit.Tools {
		return nil
	}
	t := &event.ToolStatus{ID: plain.Clip(call.ID, limit.Name), Name: plain.Clip(call.Name, limit.Name), Status: event.ToolRunning}
	if slices.ContainsFunc(r.tools, func(other *event.ToolStatus) bool { return other.ID == t.ID }) {
		return nil
	}
	r.tools = append(r.tools, t)
	return r.send(append(r.speech.Flush(), agent.ToolStatus{ToolStatus: *t})...)
}

// endTool reports the end of a tool.
func (r *turnRun) endTool(id, status string) error {
	for _, t := range r.tools {
		if t.ID == plain.Clip(id, limit.Name) && t.Status == event.ToolRunning {
			t.Status = status
			return r.send(agent.ToolStatus{ToolStatus: *t})
		}
	}
	return nil
}

// endTools reports the end of all tools that are still running.
func (r *turnRun) endTools() error {
	for _, t := range r.tools {
		if err := r.endTool(t.ID, event.ToolDone); err != nil {
			return err
		}
	}
	return nil
}

// finish sends the last replies of the turn. The final text in reply is sent only if no
// text was streamed, or if it is an error message that was not streamed. An answer without
// any text is valid, for instance after a lamp was switched on.
func (r *turnRun) finish(reply hass.Reply) error {
	if err := r.send(r.speech.Flush()...); err != nil {
		return err
	}
	if err := r.endTools(); err != nil {
		return err
	}
	streamed := r.text.String()
	final := plain.Clip(reply.Speech, limit.Body)
	if strings.TrimSpace(streamed) == "" || reply.Kind == "error" && !strings.Contains(streamed, strings.TrimSpace(final)) {
		if err := r.send(append(r.speech.Write(final), r.speech.Flush()...)...); err != nil {
			return err
		}
	}
	if r.speech.Full() {
		return r.cutOff()
	}
	return r.send(agent.Done{End: agent.Continue})
}

// cutOff sends the last replies of a turn whose answer was stopped.
func (r *turnRun) cutOff() error {
	if err := r.endTools(); err != nil {
		return err
	}
	face, text := agent.SplitEmotion(r.brain.o.Phrases.Of(r.turn.Language, "cut_off"))
	felt := agent.Felt{Emotion: face, Intensity: 1, Assumed: face == agent.Neutral}
	return r.send(append(r.speech.Flush(), felt, agent.Say{Text: text}, agent.Done{End: agent.Continue})...)
}
