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

// afterEnd is how long is waited for the connection to be free again.
const afterEnd = 100 * time.Millisecond

// errGarbage reports an answer that is not of the Messages API.
var errGarbage = errors.New("answers with what is not of the Messages API")

// answer is a message while it is received.
type answer struct {
	out      func(thinker.Piece) error
	outError error // of out: the server is not at fault
	message  sdk.Message
	spoken   int // bytes
	ended    bool
}

// once makes one request for a message and passes it on as it is received.
func (e *Engine) once(ctx context.Context, p thinker.Prompt, without rejections, a *answer) (thinker.Stop, error) {
	params := e.encode(p, without)
	w := remote.NewWatch(ctx, e.o.FirstWithin, e.o.IdleWithin)
	defer w.Stop()
	w.Start()
	stream := e.messages.NewStreaming(context.WithValue(w.Context(), watchKey{}, w), params, e.extra...)
	defer stream.Close()
	for stream.Next() {
		if a.ended {
			continue
		}
		if err := a.event(stream.Current()); err != nil {
			return "", err
		}
		if a.spoken > limit.List {
			return thinker.StopLength, nil
		}
		switch {
		case a.ended:
			w.Lives(afterEnd)
		case stream.Current().Type == "content_block_delta":
			d := stream.Current().Delta
			w.Wrote(remote.Worth(d.Text) + remote.Worth(d.Thinking) + remote.Worth(d.PartialJSON) + remote.Worth(d.Signature))
		default:
			w.Lives(0)
		}
	}
	if a.ended { // anything after the end is ignored
		return a.finish(params.Tools)
	}
	err := stream.Err()
	switch {
	case err == nil && a.message.Type == "":
		return "", errGarbage
	case err == nil:
		return "", io.ErrUnexpectedEOF
	case w.Silent() != "":
		return "", e.server.Fault(w.Silent())
	}
	return "", err
}

// event handles one event of the stream.
func (a *answer) event(event sdk.MessageStreamEventUnion) error {
	if err := a.message.Accumulate(event); err != nil {
		return errGarbage
	}
	switch event.Type {
	case "content_block_start":
		if len(a.message.Content) > 4*limit.Calls {
			return fmt.Errorf("it has more than %d parts", 4*limit.Calls)
		}
		return a.sendText(event.ContentBlock.Text)
	case "content_block_delta":
		if event.Delta.Type == "text_delta" {
			return a.sendText(event.Delta.Text)
		}
	case "message_stop":
		a.ended = true
	}
	return nil
}

func (a *answer) sendText(text string) error {
	if text == "" {
		return nil
	}
	a.spoken += len(text)
	a.outError = a.out(thinker.Piece{Text: text})
	return a.outError
}

// finish passes on the calls and returns why the message ended. A message that was cut
// off has no calls, because they may be incomplete.
func (a *answer) finish(tools []sdk.ToolUnionParam) (thinker.Stop, error) {
	switch a.message.StopReason {
	case sdk.StopReasonRefusal:
		return thinker.StopRefused, nil
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return thinker.StopLength, nil
	}
	var calls []thinker.ToolCall
	thought := false
	for _, block := range a.message.Content {
		switch block.Type {
		case "thinking", "redacted_thinking":
			thought = true
		case "tool_use":
			calls = append(calls, thinker.ToolCall{ID: block.ID, Name: block.Name, Arguments: arguments(block.Input)})
		}
	}
	if len(calls) == 0 {
		return thinker.StopEnd, nil
	}
	if len(calls) > limit.Calls {
		return "", fmt.Errorf("it asks for more than %d tools at once", limit.Calls)
	}
	if thought {
		calls[0].Origin = &thinking{message: a.message.ToParam(), tools: tools}
	}
	for i := range calls {
		if a.outError = a.out(thinker.Piece{Call: &calls[i]}); a.outError != nil {
			return "", a.outError
		}
	}
	return thinker.StopTools, nil
}

func arguments(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return bytes.Clone(raw)
}
