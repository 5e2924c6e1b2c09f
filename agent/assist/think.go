package assist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"perch/agent"
	"perch/event"
	"perch/gateway/socket/hass"
)

// Limits of a turn.
const (
	mostAsked  = 16 << 10 // bytes of what was said
	mostSpoken = 64 << 10 // bytes of an answer
	mostTools  = 256      // followed in one turn
	mostName   = 200      // bytes of a tool's name and id
)

// Think implements agent.Brain. When ctx ends, Home Assistant is told to stop
// and Think returns at once. What Home Assistant itself says it could not do
// is an answer like any other.
func (b *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &round{brain: b, turn: t, out: out, speech: agent.NewSpeech(t.Language)}
	ask := r.run
	if b.o.REST {
		ask = r.post
	}
	reply, err := ask(ctx, b.talks.id(t.Conversation))
	if err == nil {
		b.talks.keep(t.Conversation, reply.Conversation)
		err = r.finish(reply)
	}
	var own heedless
	switch interrupted := ctx.Err() != nil || errors.As(err, &own); {
	case err == nil:
		return nil
	case interrupted && r.conversation != "":
		b.talks.keep(t.Conversation, r.conversation) // what was said is known there
	case !interrupted:
		b.talks.forget(t.Conversation) // what was said before may be why it failed
	}
	switch {
	case own.error != nil:
		return own.error
	case len(r.tools) > 0 && ctx.Err() == nil:
		// Not wrapped, so that ErrAway ends here: another brain must not do a
		// second time what was done already.
		return fmt.Errorf("after its tools had run: %v", err)
	}
	return away(ctx, err)
}

// heedless is an error of whoever listens. It is no fault of Home
// Assistant's, and is given back as it is.
type heedless struct{ error }

// round is one turn.
type round struct {
	brain  *Brain
	turn   agent.Turn
	out    func(agent.Reply) error
	speech *agent.Speech

	conversation string // its id, once it is told

	role   string // of the message that is being told
	spoken strings.Builder
	tools  []*event.ToolStatus
}

func (r *round) tell(replies ...agent.Reply) error {
	for _, reply := range replies {
		if err := r.out(reply); err != nil {
			return heedless{err}
		}
	}
	return nil
}

// words are what was said, bounded.
func (r *round) words() string { return clip(r.turn.Text, mostAsked) }

// post is the turn by the REST API.
func (r *round) post(ctx context.Context, conversation string) (hass.Reply, error) {
	o := r.brain.o
	language := o.Language
	if language == "" {
		language = r.turn.Language
	}
	return r.brain.client.Converse(ctx, o.FirstWithin, hass.Question{
		Text: r.words(), Language: language, Agent: o.Agent, Conversation: conversation,
	})
}

// run is the turn by a pipeline.
func (r *round) run(ctx context.Context, conversation string) (hass.Reply, error) {
	b := r.brain
	conn, err := b.connection(ctx)
	if err != nil {
		return hass.Reply{}, err
	}
	run, err := conn.Run(ctx, hass.Start{
		From: hass.StageIntent, To: hass.StageIntent, Text: r.words(), Pipeline: b.pipeline(), Conversation: conversation,
	})
	if err != nil {
		return hass.Reply{}, err
	}
	defer run.Close()
	if err := run.Begin(ctx, b.o.ConnectWithin); err != nil {
		return hass.Reply{}, err
	}
	within := b.o.FirstWithin
	for {
		e, err := run.Next(ctx, within)
		if errors.Is(err, io.EOF) {
			return hass.Reply{}, b.client.Fault("ended its pipeline without an answer; see its log")
		}
		if err != nil {
			return hass.Reply{}, err
		}
		switch e.Type {
		case hass.EventIntentStart:
			r.conversation = clip(e.Conversation(), longestID)
		case hass.EventIntentProgress:
			within = b.o.IdleWithin
			if err := r.progress(e); err != nil {
				return hass.Reply{}, err
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

// progress takes a piece of the conversation's log.
func (r *round) progress(e hass.Event) error {
	d, there, err := e.Delta()
	if err != nil || !there {
		return nil // the answer comes whole at the end as well
	}
	if d.Role != "" {
		r.role = d.Role
		if err := r.tell(r.speech.End()...); err != nil {
			return err
		}
	}
	if r.role == "assistant" && d.Content != "" {
		if err := r.say(d.Content); err != nil {
			return err
		}
	}
	for _, call := range d.Calls {
		if err := r.begun(call); err != nil {
			return err
		}
	}
	if d.CallID != "" {
		status := event.ToolDone
		if d.Failed {
			status = event.ToolFailed
		}
		return r.ended(d.CallID, status)
	}
	return nil
}

func (r *round) say(text string) error {
	if r.spoken.Len()+len(text) > mostSpoken {
		return r.brain.client.Fault("does not stop speaking; see its conversation agent")
	}
	r.spoken.WriteString(text)
	return r.tell(r.speech.Write(text)...)
}

// begun tells of a tool at work. What stands before it is said first. One
// without an id could not be told to have ended.
func (r *round) begun(call hass.ToolCall) error {
	if call.ID == "" || call.Name == "" || len(r.tools) == mostTools {
		return nil
	}
	t := &event.ToolStatus{ID: clip(call.ID, mostName), Name: clip(call.Name, mostName), Status: event.ToolRunning}
	for _, known := range r.tools {
		if known.ID == t.ID {
			return nil
		}
	}
	r.tools = append(r.tools, t)
	return r.tell(append(r.speech.End(), agent.ToolStatus{ToolStatus: *t})...)
}

func (r *round) ended(id, status string) error {
	for _, t := range r.tools {
		if t.ID == clip(id, mostName) && t.Status == event.ToolRunning {
			t.Status = status
			return r.tell(agent.ToolStatus{ToolStatus: *t})
		}
	}
	return nil
}

// finish says what has not been said, and ends the turn. An answer that was
// told piece by piece is whole; the words of an error may come on top. An
// answer without a word is one too: the lamp is on.
func (r *round) finish(reply hass.Reply) error {
	if err := r.tell(r.speech.End()...); err != nil {
		return err
	}
	for _, t := range r.tools {
		if err := r.ended(t.ID, event.ToolDone); err != nil {
			return err
		}
	}
	said := r.spoken.String()
	rest := clip(reply.Speech, mostSpoken)
	if strings.TrimSpace(said) == "" || reply.Kind == "error" && !strings.Contains(said, strings.TrimSpace(rest)) {
		if err := r.tell(append(r.speech.Write(rest), r.speech.End()...)...); err != nil {
			return err
		}
	}
	return r.tell(agent.Done{End: agent.Continue})
}

// clip cuts a text to so many bytes, and keeps nothing of the rest.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:most], ""))
}
