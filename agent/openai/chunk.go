package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"perch/agent/thinker"
	"perch/remote"
)

// errGarbage reports a response that does not conform to the protocol.
var errGarbage = errors.New("answers with what is not of this protocol")

// chunk is a piece of a message from /chat/completions, or the whole message. Fields are raw if their
// types differ between servers.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index        int     `json:"index"`
		Delta        *delta  `json:"delta"`
		Message      *delta  `json:"message"` // in a whole message
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

// delta is a part of a message. Its thoughts prolong the time limit, and are not passed on.
type delta struct {
	Reasoning json.RawMessage `json:"reasoning_content"`
	Thought   json.RawMessage `json:"reasoning"`
	Thinking  json.RawMessage `json:"thinking"`
	Content   json.RawMessage `json:"content"` // text, null, or parts
	Refusal   string          `json:"refusal"`
	// Details are thoughts in a format of the server.
	Details   json.RawMessage `json:"reasoning_details"`
	ToolCalls []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function function
		Extra    json.RawMessage `json:"extra_content"` // Gemini's signature of a thought
	} `json:"tool_calls"`
}

// function is the tool and arguments of a call.
type function struct {
	Name      string
	Arguments json.RawMessage // a string of JSON; some servers send an object
}

// chunk handles a chunk of the OpenAI dialect.
func (a *answer) chunk(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if code, reason := remote.Message(data); reason != "" { // Gemini sends a list
			return &remote.Fault{Code: code, Refusal: remote.Refusal{Status: http.StatusBadGateway, Reason: reason}}
		}
		return errGarbage
	}
	if len(c.Choices) == 0 && !there(c.Error) {
		if code, reason := remote.Message(data); reason != "" { // {"object":"error","message":...}
			return &remote.Fault{Code: code, Refusal: remote.Refusal{Status: http.StatusBadGateway, Reason: reason}}
		}
	}
	if there(c.Error) {
		code, reason := remote.Message(data)
		return &remote.Fault{Code: code, Refusal: remote.Refusal{Status: statusOf(c.Error), Reason: reason}}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		a.markStarted()
		d := choice.Delta
		if d == nil {
			d = choice.Message
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			a.alive = a.alive || a.finish == ""
			a.finish = *choice.FinishReason
			if finish := strings.ToLower(a.finish); strings.Contains(finish, "malformed") {
				return &remote.Fault{Code: "malformed_function_call", Refusal: remote.Refusal{Status: http.StatusBadGateway, Reason: a.finish}}
			}
		}
		if d == nil {
			continue
		}
		if err := a.delta(d); err != nil {
			return err
		}
	}
	return nil
}

// markStarted records that the message has begun. Some servers begin a message before they have
// processed the prompt.
func (a *answer) markStarted() {
	a.alive = a.alive || !a.began
	a.began = true
}

// holds reports whether a field has content.
func holds(raw json.RawMessage) bool { return there(raw) && string(raw) != `""` && string(raw) != "[]" }

// worth returns remote.Worth of a string, or of other JSON.
func worth(raw json.RawMessage) time.Duration {
	if !holds(raw) {
		return 0
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return remote.Worth(text)
}

// delta handles a part of the message.
func (a *answer) delta(d *delta) error {
	a.worth += remote.Worth(d.Refusal) + worth(d.Reasoning) + worth(d.Thought) + worth(d.Thinking)
	if holds(d.Reasoning) || holds(d.Thought) || holds(d.Thinking) || holds(d.Details) {
		a.opaque.add("reasoning_content", d.Reasoning)
		a.opaque.add("reasoning", d.Thought)
		a.opaque.add("reasoning_details", d.Details)
		if err := a.out(thinker.Piece{Thought: true}); err != nil {
			return err
		}
	}
	a.refused = a.refused || d.Refusal != ""
	text, err := content(d.Content)
	if err != nil {
		return err
	}
	a.worth += remote.Worth(text)
	if err := a.sendText(text); err != nil {
		return err
	}
	for _, t := range d.ToolCalls {
		raw := []byte(t.Function.Arguments)
		var piece string
		if json.Unmarshal(raw, &piece) == nil {
			raw = []byte(piece)
		}
		if err := a.piece(t.Index, t.ID, t.Function.Name, raw, t.Extra); err != nil {
			return err
		}
	}
	return nil
}

// content returns the text in a content field: a string, null, or a list of parts.
func content(raw json.RawMessage) (string, error) {
	if !there(raw) {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", errGarbage
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type == "text" || p.Type == "output_text" || p.Type == "" {
			all.WriteString(p.Text)
		}
	}
	return all.String(), nil
}

// there reports whether a field is present and not null.
func there(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// statusOf returns the HTTP status in an error within an answer, as llama.cpp and
// OpenRouter send it, or else 502.
func statusOf(raw json.RawMessage) int {
	var e struct{ Code int }
	if json.Unmarshal(raw, &e) == nil && e.Code >= 400 && e.Code < 600 {
		return e.Code
	}
	return http.StatusBadGateway
}

// native is a line of Ollama's own API.
type native struct {
	Error   string `json:"error"`
	Message struct {
		Content   string `json:"content"`
		Thinking  string `json:"thinking"`
		ToolCalls []struct {
			ID       string
			Function function
		} `json:"tool_calls"`
	} `json:"message"`
	Done       *bool  `json:"done"`
	DoneReason string `json:"done_reason"`
}

// native handles a line of Ollama's own API and reports whether it was the last. Its
// calls are always complete.
func (a *answer) native(data []byte) (done bool, err error) {
	var n native
	if err := json.Unmarshal(data, &n); err != nil {
		return false, errGarbage
	}
	if n.Error != "" {
		return false, &remote.Fault{Refusal: remote.Refusal{Status: http.StatusInternalServerError, Reason: n.Error}}
	}
	if n.Done == nil {
		return false, fmt.Errorf("%w: a line has no done", errGarbage)
	}
	a.markStarted()
	a.worth += remote.Worth(n.Message.Content) + remote.Worth(n.Message.Thinking)
	if err := a.sendText(n.Message.Content); err != nil {
		return false, err
	}
	for _, t := range n.Message.ToolCalls {
		next := len(a.calls)
		if err := a.piece(&next, t.ID, t.Function.Name, t.Function.Arguments, nil); err != nil {
			return false, err
		}
	}
	if *n.Done {
		a.finish = cmp.Or(n.DoneReason, "stop")
	}
	return *n.Done, nil
}
