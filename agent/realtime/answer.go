package realtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/remote"
)

// answer reads one response of the server.
type answer struct {
	*talk
	out  func(thinker.Piece) error
	done bool // whether the response has ended

	heard bool            // whether the server has noticed the speech
	began bool            // whether anything of the response has come
	last  time.Time       // when the latest piece was passed to out; the beginning of the wait before the first
	held  []thinker.Piece // pieces that wait for the transcript of the speech
	until time.Time       // until then, pieces are held
	calls map[string]bool // IDs of the calls so far
}

// read passes the response to out, and returns why it has ended.
func (a *answer) read(ctx context.Context) (thinker.Stop, error) {
	a.last, a.calls = time.Now(), map[string]bool{}
	for {
		within := a.engine.o.FirstWithin
		if a.began {
			within = remote.Patience
		}
		until := a.last.Add(within)
		if len(a.held) > 0 && a.until.Before(until) {
			until = a.until
		}
		e, err := a.next(ctx, until)
		switch {
		case errors.Is(err, errLate) && len(a.held) > 0:
			if err := a.release(); err != nil {
				return "", err
			}
			continue
		case errors.Is(err, errLate) && a.began:
			return "", a.engine.server.Faultf("%s has stopped in the middle of its answer for %s", a.engine.server.Name(), within)
		case errors.Is(err, errLate) && a.engine.o.ServerTurns && a.untranscribed && !a.heard:
			return thinker.StopEnd, a.handleTranscript("") // nobody has spoken, as after a cough
		case errors.Is(err, errLate):
			return "", a.engine.server.Faultf("%s has not begun to answer within %s", a.engine.server.Name(), within)
		case err != nil:
			return "", err
		}
		stop, err := a.handle(ctx, e)
		if err != nil || stop != "" {
			return stop, err
		}
	}
}

// handle handles an event. It returns why the response has ended, or "".
func (a *answer) handle(ctx context.Context, e serverEvent) (thinker.Stop, error) {
	if e.ResponseID != "" && (a.past[e.ResponseID] || a.current != "" && e.ResponseID != a.current) {
		return "", nil // of a response that was cancelled
	}
	switch e.Type {
	case "conversation.item.input_audio_transcription.completed":
		return "", a.handleTranscript(e.Transcript)
	case "conversation.item.input_audio_transcription.failed":
		return "", a.handleTranscript(agent.Unwritten)
	case "input_audio_buffer.speech_started", "input_audio_buffer.committed":
		a.heard = true
	case "response.created":
		a.heard = true
		a.current = cmp.Or(e.Response.ID, "unnamed")
	case "response.output_audio_transcript.delta", "response.audio_transcript.delta":
		return "", a.sendPiece(thinker.Piece{Text: e.Delta, Spoken: true})
	case "response.output_text.delta", "response.text.delta":
		return "", a.sendPiece(thinker.Piece{Text: e.Delta})
	case "response.output_audio.delta", "response.audio.delta":
		pcm, err := decodeSound(e.Delta)
		if err != nil {
			return "", a.explain(err)
		}
		if e.Rate > 0 {
			a.setOutputRate(e.Rate)
		}
		if pcm = a.toRobot.Resample(pcm); len(pcm) == 0 {
			return "", nil
		}
		return "", a.sendPiece(thinker.Piece{Sound: append([]int16(nil), pcm...)})
	case "response.function_call_arguments.done":
		return "", a.call(e.CallID, e.Name, e.Arguments)
	case "response.output_item.done":
		if e.Item.Type == "function_call" { // the beta's function_call_arguments.done has no name
			return "", a.call(e.Item.CallID, e.Item.Name, e.Item.Arguments)
		}
	case "response.done":
		if !a.done { // a later one is repeated, or belongs to another response
			return a.handleDone(ctx, e.Response)
		}
	}
	return "", nil
}

// handleTranscript passes on what the person has said.
func (a *answer) handleTranscript(transcript string) error {
	if !a.untranscribed {
		return nil
	}
	if err := a.out(thinker.Piece{Heard: &agent.Heard{Text: strings.TrimSpace(transcript)}}); err != nil {
		return err
	}
	a.untranscribed = false
	return a.release()
}

// sendPiece passes a piece to out, or holds it until the transcript of the speech has come.
func (a *answer) sendPiece(p thinker.Piece) error {
	a.began, a.answering = true, true
	if !a.untranscribed || a.impatient {
		err := a.out(p)
		a.last = time.Now() // out may take long
		return err
	}
	if len(a.held) == 0 {
		a.until = time.Now().Add(transcriptWithin)
	}
	if a.held = append(a.held, p); len(a.held) > maxHeld {
		return a.release()
	}
	return nil
}

// release passes the pieces that are held to out, and lets later ones pass.
func (a *answer) release() error {
	held := a.held
	a.held, a.impatient = nil, true
	for _, p := range held {
		if err := a.out(p); err != nil {
			return err
		}
	}
	if len(held) > 0 {
		a.last = time.Now()
	}
	return nil
}

// awaitTranscript waits for the transcript of the speech until a time, after the end of the response.
func (a *answer) awaitTranscript(ctx context.Context, until time.Time) error {
	for a.untranscribed {
		e, err := a.next(ctx, until)
		if err != nil {
			return ctx.Err() // the answer is complete without it
		}
		if _, err := a.handle(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// call passes on a call, once.
func (a *answer) call(id, name, arguments string) error {
	if id == "" || name == "" || a.calls[id] {
		return nil
	}
	a.calls[id] = true
	return a.sendPiece(thinker.Piece{Call: &thinker.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(cmp.Or(strings.TrimSpace(arguments), "{}"))}})
}

// handleDone handles the end of a response.
func (a *answer) handleDone(ctx context.Context, r response) (thinker.Stop, error) {
	a.past[a.current], a.current = true, ""
	a.engine.spend(a.turn.Now, r.Usage.Total)
	reason := r.StatusDetails.Reason
	if r.Status == "cancelled" && reason == "turn_detected" && a.engine.o.ServerTurns {
		return "", nil // the person has gone on, and another response follows
	}
	a.done = true
	switch {
	case r.Status == "failed":
		return "", a.refused(r.StatusDetails.Error)
	case r.Status == "cancelled":
		return "", a.engine.server.Faultf("%s has cancelled its answer (%s)", a.engine.server.Name(), a.engine.server.Quote(cmp.Or(reason, "no reason given")))
	}
	if len(a.held) > 0 {
		if err := a.awaitTranscript(ctx, a.until); err != nil {
			return "", err
		}
	}
	if err := a.release(); err != nil {
		return "", err
	}
	if r.Usage.Total > 0 {
		if err := a.out(thinker.Piece{Tokens: r.Usage.Total}); err != nil {
			return "", err
		}
	}
	if len(a.calls) == 0 {
		if err := a.awaitTranscript(ctx, time.Now().Add(lateTranscript)); err != nil {
			return "", err
		}
		if err := a.handleTranscript(agent.Unwritten); err != nil {
			return "", err
		}
	}
	switch {
	case r.Status == "incomplete" && reason == "content_filter":
		return thinker.StopRefused, nil
	case r.Status == "incomplete":
		return thinker.StopLength, nil
	case len(a.calls) > 0:
		return thinker.StopTools, nil
	}
	return thinker.StopEnd, nil
}
