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

// errEnough ends a message that is too long.
var errEnough = errors.New("the message is too long")

// answer assembles a message of either API. It passes text on at once, and calls, which may arrive in
// pieces, at the end of the message.
type answer struct {
	e       *Engine
	of      *remote.Answer
	in      *bufio.Reader // reads of
	out     func(thinker.Piece) error
	opaque  opaque
	calls   []*call
	spoken  int           // bytes of text
	args    int           // bytes of arguments
	finish  string        // the finish_reason; "" until the message ends
	refused bool          // whether the model has refused to answer
	began   bool          // whether the message has begun
	alive   bool          // whether to wait for the next piece as long as for the first
	worth   time.Duration // else the additional time to wait, see remote.Worth
}

// call is a partially received tool call.
type call struct {
	index     int // the server's number of the call
	id, name  string
	arguments []byte
	extra     json.RawMessage // extra_content
}

// sendText passes text on.
func (a *answer) sendText(s string) error {
	if s == "" {
		return nil
	}
	a.spoken += len(s)
	if err := a.out(thinker.Piece{Text: s}); err != nil {
		return err
	}
	if a.spoken > limit.File { // it may include thoughts, which are long
		return errEnough
	}
	return nil
}

// piece adds a piece to its call. Servers differ: OpenAI numbers the calls and sends each name once; others
// send complete calls, all with the number 0 or without one; some repeat the name in each piece.
func (a *answer) piece(index *int, id, name string, arguments []byte, extra json.RawMessage) error {
	c := a.belongs(index, id, name)
	if c == nil {
		if len(a.calls) == limit.Calls {
			return fmt.Errorf("it asks for more than %d tools at once", limit.Calls)
		}
		c = &call{index: len(a.calls)}
		if index != nil {
			c.index = *index
		}
		a.calls = append(a.calls, c)
		a.alive = true
	}
	a.worth += remote.Worth(string(arguments))
	c.id = cmp.Or(c.id, id)
	if holds(extra) && len(extra) <= limit.Body {
		c.extra = bytes.Clone(extra)
	}
	c.name = cmp.Or(c.name, name)
	c.arguments = append(c.arguments, arguments...)
	if a.args += len(arguments); a.args > limit.List || len(c.name) > limit.ID || len(c.id) > maxID {
		return errors.New("a tool call is too long")
	}
	return nil
}

// belongs returns the call that a piece continues, or nil if it begins one.
func (a *answer) belongs(index *int, id, name string) *call {
	for _, c := range slices.Backward(a.calls) {
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
func (a *answer) finishMessage() (thinker.Stop, error) {
	cut := a.finish == "length" || a.finish == "max_tokens"
	switch {
	case a.refused || a.finish == "content_filter" || a.finish == "refusal":
		return thinker.StopRefused, nil
	case cut || a.spoken > limit.File:
		return thinker.StopLength, nil
	}
	given := map[string]bool{}
	for _, c := range a.calls {
		if c.name == "" {
			continue
		}
		if c.id == "" || given[c.id] {
			c.id = fmt.Sprintf("call_%d", a.e.calls.Add(1))
		}
		given[c.id] = true
		whole := thinker.ToolCall{ID: c.id, Name: c.name, Arguments: arguments(c.arguments)}
		if o := (origin{call: c.extra}); c.extra != nil || len(given) == 1 {
			if len(given) == 1 {
				o.message = a.opaque.fields()
			}
			whole.Origin = o
		}
		if err := a.out(thinker.Piece{Call: &whole}); err != nil {
			return "", err
		}
	}
	if len(given) > 0 {
		return thinker.StopTools, nil
	}
	return thinker.StopEnd, nil
}

// arguments returns the arguments of a call. Empty arguments become an empty object, and an object
// encoded as a JSON string is decoded.
func arguments(raw []byte) json.RawMessage {
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
