package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// trailerTimeout is how long to continue reading after the end of a message: if the body ends
// within this time, the connection can be reused.
const trailerTimeout = 100 * time.Millisecond

// errNotMessages is returned for a response that is not a message of the Messages API.
var errNotMessages = errors.New("sends a response that is not of the Messages API")

// response is a message while it is received.
type response struct {
	out       func(thinker.Piece) error
	outError  error       // error that out returned; nil if none
	message   sdk.Message // the part received so far
	textBytes int         // bytes of text passed to out
	ended     bool        // whether the message is complete
}

// sendRequest makes one request without the rejected options, and passes the message to r while
// it is received. It stops with thinker.StopLength after limit.List bytes of text.
func (e *Engine) sendRequest(ctx context.Context, p thinker.Prompt, without rejections, r *response) (thinker.Stop, error) {
	params := e.encode(p, without)
	w := remote.NewWatch(ctx, e.o.FirstWithin, e.o.IdleWithin)
	defer w.Stop()
	w.Start()
	stream := e.messages.NewStreaming(context.WithValue(w.Context(), watchKey{}, w), params, e.extra...)
	defer stream.Close()
	for stream.Next() {
		if r.ended {
			continue
		}
		if err := r.handleEvent(stream.Current()); err != nil {
			return "", err
		}
		if r.textBytes > limit.List {
			return thinker.StopLength, nil
		}
		switch {
		case r.ended:
			w.Reset(trailerTimeout)
		case stream.Current().Type == "content_block_delta":
			d := stream.Current().Delta
			w.Add(remote.TextWait(d.Text) + remote.TextWait(d.Thinking) + remote.TextWait(d.PartialJSON) + remote.TextWait(d.Signature))
		default:
			w.Reset(0)
		}
	}
	if r.ended { // ignore any error after the end of the message
		return r.finish(params.Tools)
	}
	err := stream.Err()
	switch {
	case err == nil && r.message.Type == "":
		return "", errNotMessages
	case err == nil:
		return "", io.ErrUnexpectedEOF
	case w.Silent() != "":
		return "", e.server.Fault(w.Silent())
	}
	return "", err
}

// handleEvent adds one event of the stream to the message, and passes on its text.
func (r *response) handleEvent(event sdk.MessageStreamEventUnion) error {
	if err := r.message.Accumulate(event); err != nil {
		return errNotMessages
	}
	switch event.Type {
	case "content_block_start":
		if len(r.message.Content) > 4*limit.Calls {
			return fmt.Errorf("the message has more than %d parts", 4*limit.Calls)
		}
		return r.sendText(event.ContentBlock.Text)
	case "content_block_delta":
		switch event.Delta.Type {
		case "text_delta":
			return r.sendText(event.Delta.Text)
		case "thinking_delta":
			r.outError = r.out(thinker.Piece{Thought: true, Reasoning: event.Delta.Thinking})
			return r.outError
		}
	case "message_stop":
		r.ended = true
	}
	return nil
}

func (r *response) sendText(text string) error {
	if text == "" {
		return nil
	}
	r.textBytes += len(text)
	r.outError = r.out(thinker.Piece{Text: text})
	return r.outError
}

// finish passes the message's tool calls to out and returns why the message ended. It drops
// the calls of a message that was cut off, because they may be incomplete. tools are the
// tools of the request.
func (r *response) finish(tools []sdk.ToolUnionParam) (thinker.Stop, error) {
	switch r.message.StopReason {
	case sdk.StopReasonRefusal:
		return thinker.StopRefused, nil
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return thinker.StopLength, nil
	}
	var calls []thinker.ToolCall
	hasThinking := false
	for _, block := range r.message.Content {
		switch block.Type {
		case "thinking", "redacted_thinking":
			hasThinking = true
		case "tool_use":
			calls = append(calls, thinker.ToolCall{ID: block.ID, Name: block.Name, Arguments: argumentsOf(block.Input)})
		}
	}
	if len(calls) == 0 {
		return thinker.StopEnd, nil
	}
	if len(calls) > limit.Calls {
		return "", fmt.Errorf("the model calls more than %d tools at once", limit.Calls)
	}
	if hasThinking {
		calls[0].Origin = &thinkingMessage{message: r.message.ToParam(), tools: tools}
	}
	for i := range calls {
		if r.outError = r.out(thinker.Piece{Call: &calls[i]}); r.outError != nil {
			return "", r.outError
		}
	}
	return thinker.StopTools, nil
}

// argumentsOf returns a copy of a call's arguments, or an empty object for a call without
// arguments.
func argumentsOf(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return bytes.Clone(raw)
}
