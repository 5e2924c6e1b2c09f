package openai

import (
	"encoding/json"
	"strings"

	"perch/limit"
)

// ThinksAloud reports whether a message may begin inside a thought whose beginning is in the prompt:
// parts of the names of models whose templates do that. Ollama separates thoughts.
func (e *Engine) ThinksAloud() bool {
	return !e.native && !looksLikeOllama(e.base) && mentions(strings.ToLower(e.o.Model), "-r1", "qwq", "think", "reason", "magistral", "-z1")
}

// origin is what a server wants back with a call, as it came: Gemini a signature of a thought, and others the
// thoughts of the message, which the first call has.
type origin struct {
	call    json.RawMessage // extra_content
	message map[string]json.RawMessage
}

// opaque collects a message's thoughts, which some servers want back with the results of its calls:
// DeepSeek and Kimi their reasoning_content, OpenRouter its reasoning_details. They are limited to
// limit.List bytes in all; longer ones are not sent back.
type opaque struct {
	text map[string]string
	list map[string][]json.RawMessage
	size int
}

// add adds a piece: text, which is joined, or a list, whose elements are collected.
func (o *opaque) add(key string, piece json.RawMessage) {
	if !holds(piece) {
		return
	}
	if o.size += len(piece); o.size > limit.List {
		o.text, o.list = nil, nil
		return
	}
	if o.text == nil {
		o.text, o.list = map[string]string{}, map[string][]json.RawMessage{}
	}
	var text string
	var list []json.RawMessage
	switch {
	case json.Unmarshal(piece, &text) == nil:
		o.text[key] += text
	case json.Unmarshal(piece, &list) == nil:
		o.list[key] = append(o.list[key], list...)
	}
}

// fields returns the fields to send back, or nil.
func (o *opaque) fields() map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	put := func(key string, value any) {
		if encoded, err := json.Marshal(value); err == nil {
			if fields == nil {
				fields = map[string]json.RawMessage{}
			}
			fields[key] = encoded
		}
	}
	for key, text := range o.text {
		put(key, text)
	}
	for key, list := range o.list {
		put(key, list)
	}
	return fields
}
