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
	text map[string][]byte
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
		o.text, o.list = map[string][]byte{}, map[string][]json.RawMessage{}
	}
	var text string
	var list []json.RawMessage
	switch {
	case json.Unmarshal(piece, &text) == nil:
		o.text[key] = append(o.text[key], text...)
	case json.Unmarshal(piece, &list) == nil:
		for _, element := range list {
			o.list[key] = appendDetail(o.list[key], element)
		}
	}
}

// appendDetail adds an element of reasoning_details. OpenRouter sends an element in pieces of the same type and
// index; their texts are joined.
func appendDetail(list []json.RawMessage, piece json.RawMessage) []json.RawMessage {
	var before, next map[string]any
	if len(list) == 0 || json.Unmarshal(list[len(list)-1], &before) != nil || json.Unmarshal(piece, &next) != nil ||
		next["index"] == nil || before["index"] != next["index"] || before["type"] != next["type"] {
		return append(list, piece)
	}
	for key, value := range next {
		text, isText := value.(string)
		start, _ := before[key].(string)
		switch {
		case isText && (key == "text" || key == "summary" || key == "data"):
			before[key] = start + text
		case value != nil:
			before[key] = value
		}
	}
	joined, err := json.Marshal(before)
	if err != nil {
		return append(list, piece)
	}
	list[len(list)-1] = joined
	return list
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
		put(key, string(text))
	}
	for key, list := range o.list {
		put(key, list)
	}
	return fields
}
