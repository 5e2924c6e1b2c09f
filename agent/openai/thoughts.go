package openai

import (
	"encoding/json"
	"strings"

	"perch/limit"
)

// ThinksAloud reports whether a message of the model probably begins inside a thought, because the template of
// the model has begun the thought in the prompt. It guesses by the model's name. It is false for Ollama, which
// sends thoughts in a separate field.
func (e *Engine) ThinksAloud() bool {
	return !e.native && !looksLikeOllama(e.base) && mentions(strings.ToLower(e.o.Model), "-r1", "qwq", "think", "reason", "magistral", "-z1")
}

// origin is the ToolCall.Origin of this package: fields that the server requires back, unchanged, in the request
// with the result of the call.
type origin struct {
	call    json.RawMessage            // extra_content of the call, with Gemini's signature of a thought
	message map[string]json.RawMessage // thoughts of the message; nil except in the first call of a message
}

// opaque collects the thoughts of a message. Some servers require them back with the results of the message's
// calls: DeepSeek and Kimi in the field reasoning_content, OpenRouter in reasoning_details. If the thoughts have
// more than limit.List bytes, they are dropped.
type opaque struct {
	text map[string][]byte            // key: name of the field
	list map[string][]json.RawMessage // key: name of the field
	size int                          // total size in bytes
}

// add adds a piece of the field with the name key. The piece is a string or a list.
func (o *opaque) add(key string, piece json.RawMessage) {
	if !hasContent(piece) {
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

// appendDetail appends a piece of an element of reasoning_details. OpenRouter sends an element in pieces with the
// same type and index. If the last element has the same type and index, appendDetail joins the texts.
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

// fields returns the fields to send back, or nil if none exist.
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
