package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// errEnough ends a message that is too long. It is not an error for the caller.
var errEnough = errors.New("the message is too long")

// messageReader reads a message in the format of either API. It passes text on at once. Calls may arrive in
// pieces, so it passes them on at the end of the message.
type messageReader struct {
	e        *Engine
	response *remote.Answer
	in       *bufio.Reader // reads response
	out      func(thinker.Piece) error
	opaque   opaque
	calls    []*call
	spoken   int           // number of bytes of text
	args     int           // number of bytes of arguments
	finish   string        // the finish_reason; "" until the message ends
	refused  bool          // whether the model has refused to answer
	began    bool          // whether the message has begun
	alive    bool          // whether the next piece may take the whole idle time of the engine
	textWait time.Duration // if alive is false, the waiting time that the latest text adds; see remote.TextWait
}

// call is a tool call; some of its pieces may be missing.
type call struct {
	index     int // number that the server has given to the call
	id, name  string
	arguments []byte
	extra     json.RawMessage // extra_content
}

// sendText passes text on, and returns errEnough if the message is too long.
func (r *messageReader) sendText(s string) error {
	if s == "" {
		return nil
	}
	r.spoken += len(s)
	if err := r.out(thinker.Piece{Text: s}); err != nil {
		return err
	}
	if r.spoken > limit.File { // a high limit, because the text may contain thoughts
		return errEnough
	}
	return nil
}

// addPiece adds a piece of a call. Servers differ: OpenAI numbers the calls, and sends the name in the first
// piece only. Other servers send complete calls, all with the number 0 or without numbers. Some repeat the
// name in each piece.
func (r *messageReader) addPiece(index *int, id, name string, arguments []byte, extra json.RawMessage) error {
	c := r.callOf(index, id, name)
	if c == nil {
		if len(r.calls) == limit.Calls {
			return fmt.Errorf("the model calls more than %d tools at once", limit.Calls)
		}
		c = &call{index: len(r.calls)}
		if index != nil {
			c.index = *index
		}
		r.calls = append(r.calls, c)
		r.alive = true
	}
	r.textWait += remote.TextWait(string(arguments))
	c.id = cmp.Or(c.id, id)
	if hasContent(extra) && len(extra) <= limit.Body {
		c.extra = bytes.Clone(extra)
	}
	c.name = cmp.Or(c.name, name)
	c.arguments = append(c.arguments, arguments...)
	if r.args += len(arguments); r.args > limit.List || len(c.name) > limit.ID || len(c.id) > maxID {
		return errors.New("a tool call is too long")
	}
	return nil
}

// callOf returns the call that a piece belongs to, or nil if the piece begins a new call.
func (r *messageReader) callOf(index *int, id, name string) *call {
	for _, c := range slices.Backward(r.calls) {
		switch {
		case index != nil && c.index != *index:
			continue
		case id != "" && c.id != "" && id != c.id:
			continue // another call with the same number
		case id == "" && name != "" && c.name != "" && (name != c.name || json.Valid(c.arguments)):
			continue // a different tool, or the call is complete
		}
		return c
	}
	return nil
}

// finishMessage passes the calls on and returns why the message ended. The calls of a message that
// was cut off are dropped, because they may be incomplete.
func (r *messageReader) finishMessage() (thinker.Stop, error) {
	cut := r.finish == "length" || r.finish == "max_tokens"
	switch {
	case r.refused || r.finish == "content_filter" || r.finish == "refusal":
		return thinker.StopRefused, nil
	case cut || r.spoken > limit.File:
		return thinker.StopLength, nil
	}
	usedIDs := map[string]bool{}
	for _, c := range r.calls {
		if c.name == "" {
			continue
		}
		if c.id == "" || usedIDs[c.id] {
			c.id = fmt.Sprintf("call_%d", r.e.calls.Add(1))
		}
		usedIDs[c.id] = true
		toolCall := thinker.ToolCall{ID: c.id, Name: c.name, Arguments: decodeArguments(c.arguments)}
		if o := (origin{call: c.extra}); c.extra != nil || len(usedIDs) == 1 {
			if len(usedIDs) == 1 {
				o.message = r.opaque.fields()
			}
			toolCall.Origin = o
		}
		if err := r.out(thinker.Piece{Call: &toolCall}); err != nil {
			return "", err
		}
	}
	if len(usedIDs) > 0 {
		return thinker.StopTools, nil
	}
	return thinker.StopEnd, nil
}

// decodeArguments returns the arguments of a call. Empty arguments become an empty object. If the
// arguments are an object that is encoded as a JSON string, the result is the object.
func decodeArguments(raw []byte) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" || string(raw) == `""` {
		return json.RawMessage("{}")
	}
	var inner string
	if json.Unmarshal(raw, &inner) == nil && strings.HasPrefix(strings.TrimSpace(inner), "{") && json.Valid([]byte(inner)) {
		return json.RawMessage(strings.TrimSpace(inner))
	}
	return bytes.Clone(raw)
}
