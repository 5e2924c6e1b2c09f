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

// errGarbage reports a response that does not follow the protocol. Its text continues a sentence that begins
// with the server's name.
var errGarbage = errors.New("sends a response that does not follow the protocol")

// chunk is a piece of a message from /chat/completions, or a whole message. The fields of type json.RawMessage
// have different types on different servers.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index        int     `json:"index"`
		Delta        *delta  `json:"delta"`
		Message      *delta  `json:"message"` // in place of Delta in a whole message
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

// delta is a part of a message.
type delta struct {
	Reasoning json.RawMessage `json:"reasoning_content"`
	Thought   json.RawMessage `json:"reasoning"`
	Thinking  json.RawMessage `json:"thinking"`
	Content   json.RawMessage `json:"content"` // a string, null, or a list of parts
	Refusal   string          `json:"refusal"`
	// Details are thoughts in the server's own format.
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

// addChunk decodes a chunk of the OpenAI dialect and adds it to the message.
func (r *messageReader) addChunk(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if code, reason := remote.Message(data); reason != "" { // Gemini sends a list
			return &remote.Fault{Code: code, Refusal: remote.Refusal{Status: http.StatusBadGateway, Reason: reason}}
		}
		return errGarbage
	}
	if len(c.Choices) == 0 && !isPresent(c.Error) {
		if code, reason := remote.Message(data); reason != "" { // {"object":"error","message":...}
			return &remote.Fault{Code: code, Refusal: remote.Refusal{Status: http.StatusBadGateway, Reason: reason}}
		}
	}
	if isPresent(c.Error) {
		code, reason := remote.Message(data)
		return &remote.Fault{Code: code, Refusal: remote.Refusal{Status: statusOf(c.Error), Reason: reason}}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		r.markStarted()
		d := choice.Delta
		if d == nil {
			d = choice.Message
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			r.alive = r.alive || r.finish == ""
			r.finish = *choice.FinishReason
			if finish := strings.ToLower(r.finish); strings.Contains(finish, "malformed") {
				return &remote.Fault{Code: "malformed_function_call", Refusal: remote.Refusal{Status: http.StatusBadGateway, Reason: r.finish}}
			}
		}
		if d == nil {
			continue
		}
		if err := r.addDelta(d); err != nil {
			return err
		}
	}
	return nil
}

// markStarted records that the message has begun. The next piece may still take the whole idle time, because some
// servers begin a message before they have processed the prompt.
func (r *messageReader) markStarted() {
	r.alive = r.alive || !r.began
	r.began = true
}

// hasContent reports whether a field is neither absent, null, "" nor [].
func hasContent(raw json.RawMessage) bool {
	return isPresent(raw) && string(raw) != `""` && string(raw) != "[]"
}

// waitOf returns the remote.TextWait of a JSON string, or of the text of other JSON.
func waitOf(raw json.RawMessage) time.Duration {
	if !hasContent(raw) {
		return 0
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return remote.TextWait(text)
}

// addDelta adds a part to the message.
func (r *messageReader) addDelta(d *delta) error {
	r.textWait += remote.TextWait(d.Refusal) + waitOf(d.Reasoning) + waitOf(d.Thought) + waitOf(d.Thinking)
	if hasContent(d.Reasoning) || hasContent(d.Thought) || hasContent(d.Thinking) || hasContent(d.Details) {
		r.opaque.add("reasoning_content", d.Reasoning)
		r.opaque.add("reasoning", d.Thought)
		r.opaque.add("reasoning_details", d.Details)
		if err := r.out(thinker.Piece{Thought: true, Reasoning: reasoningOf(d.Reasoning, d.Thought, d.Thinking)}); err != nil {
			return err
		}
	}
	r.refused = r.refused || d.Refusal != ""
	text, err := textOf(d.Content)
	if err != nil {
		return err
	}
	r.textWait += remote.TextWait(text)
	if err := r.sendText(text); err != nil {
		return err
	}
	for _, t := range d.ToolCalls {
		raw := []byte(t.Function.Arguments)
		var piece string
		if json.Unmarshal(raw, &piece) == nil {
			raw = []byte(piece)
		}
		if err := r.addPiece(t.Index, t.ID, t.Function.Name, raw, t.Extra); err != nil {
			return err
		}
	}
	return nil
}

// reasoningOf returns the first string that is not empty. A server may send the same thought in several fields.
func reasoningOf(fields ...json.RawMessage) (text string) {
	for _, raw := range fields {
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// textOf returns the text in a field content, which is a string, null, or a list of parts.
func textOf(raw json.RawMessage) (string, error) {
	if !isPresent(raw) {
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
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" || p.Type == "output_text" || p.Type == "" {
			b.WriteString(p.Text)
		}
	}
	return b.String(), nil
}

// isPresent reports whether a field is present and not null.
func isPresent(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// statusOf returns the HTTP status in an error object, which llama.cpp and OpenRouter send
// within a successful response, or 502 if the error has no status.
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

// addLine decodes a line of Ollama's own API and adds it to the message. done reports
// whether the line was the last. The calls in a line are complete.
func (r *messageReader) addLine(data []byte) (done bool, err error) {
	var n native
	if err := json.Unmarshal(data, &n); err != nil {
		return false, errGarbage
	}
	if n.Error != "" {
		return false, &remote.Fault{Refusal: remote.Refusal{Status: http.StatusInternalServerError, Reason: n.Error}}
	}
	if n.Done == nil {
		return false, fmt.Errorf("%w: a line has no field done", errGarbage)
	}
	r.markStarted()
	r.textWait += remote.TextWait(n.Message.Content) + remote.TextWait(n.Message.Thinking)
	if n.Message.Thinking != "" {
		if err := r.out(thinker.Piece{Thought: true, Reasoning: n.Message.Thinking}); err != nil {
			return false, err
		}
	}
	if err := r.sendText(n.Message.Content); err != nil {
		return false, err
	}
	for _, t := range n.Message.ToolCalls {
		next := len(r.calls)
		if err := r.addPiece(&next, t.ID, t.Function.Name, t.Function.Arguments, nil); err != nil {
			return false, err
		}
	}
	if *n.Done {
		r.finish = cmp.Or(n.DoneReason, "stop")
	}
	return *n.Done, nil
}
