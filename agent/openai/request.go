package openai

import (
	"encoding/base64"
	"encoding/json"
	"maps"

	"perch/agent/thinker"
)

// body is the JSON object of a request. It is a map because some options may be absent, and the
// configuration may add keys.
type body = map[string]any

// hiddenPicture is the text in place of a picture in requests to a model without vision.
const hiddenPicture = "(There is a picture here, which you cannot see.)"

// encode returns the request for a prompt, without the options that the server has rejected.
func (e *Engine) encode(p thinker.Prompt, without rejections) body {
	var messages []body
	if p.System != "" {
		messages = append(messages, body{"role": "system", "content": p.System})
	}
	names := map[string]string{} // names of tools; key: ID of the call
	for _, m := range p.Messages {
		messages = append(messages, e.encodeMessage(m, names, without&rejectsOpaque == 0))
	}
	b := body{"model": e.o.Model, "stream": true, "messages": messages}
	e.addSettings(b, p, without)
	if tools := encodeTools(p.Tools); len(tools) > 0 && without&rejectsTools == 0 {
		b["tools"] = tools
		if !e.native {
			b["tool_choice"] = "auto"
		}
	}
	for key, value := range e.o.Extra {
		if b["tools"] == nil && (key == "tool_choice" || key == "parallel_tool_calls") {
			continue // OpenAI refuses these without tools
		}
		inner, isObject := value.(map[string]any)
		if existing, ok := b[key].(body); ok && isObject {
			maps.Copy(existing, inner) // existing contains the options of Ollama that the engine has set
			continue
		}
		b[key] = value
	}
	return b
}

// addSettings adds the options of the engine and of the character to a request.
func (e *Engine) addSettings(b body, p thinker.Prompt, without rejections) {
	options, maxTokensKey := b, "max_tokens"
	switch {
	case e.native:
		options, maxTokensKey = e.nativeOptions(b), "num_predict"
	case without&rejectsMaxTokens != 0:
		maxTokensKey = "max_completion_tokens"
	}
	if t := p.Temperature(e.o.Temperature, maxTemperature); t != nil && without&rejectsTemperature == 0 {
		options["temperature"] = *t
	}
	if n := p.MaxTokens(e.o.MaxTokens); n > 0 && without&rejectsLimit == 0 {
		options[maxTokensKey] = n
	}
	effort := e.o.ReasoningEffort
	if without&wantsNoEffort != 0 && len(p.Tools) > 0 {
		effort = "none"
	}
	switch {
	case effort == "" || without&rejectsThinking != 0:
	case !e.native:
		b["reasoning_effort"] = effort
	case effort == "low" || effort == "medium" || effort == "high":
		b["think"] = effort
	default: // think has no names for other efforts, but can be switched on or off
		b["think"] = effort != "none" && effort != "minimal"
	}
}

// nativeOptions adds keep_alive and num_ctx to a request for Ollama, and returns the object for further options.
func (e *Engine) nativeOptions(b body) body {
	options := body{}
	if e.o.NumCtx > 0 {
		options["num_ctx"] = e.o.NumCtx // in every request, because Ollama reloads the model if the length changes
	}
	if value, _ := parseKeepAlive(e.o.KeepAlive); value != nil {
		b["keep_alive"] = value
	}
	b["options"] = options
	return options
}

// encodeMessage returns the JSON of a message. The content is never null: null is legal in a message with calls, but
// breaks the templates of some servers. In Ollama's own API, the result of a tool has the name of the tool, and
// the arguments of a call are an object. encodeMessage adds the calls of m to names, whose keys are IDs of calls and
// whose values are names of tools. opaque tells whether to send the server's thoughts back.
func (e *Engine) encodeMessage(m thinker.Message, names map[string]string, opaque bool) body {
	b := body{"role": string(m.Role), "content": m.Text}
	if m.Role == thinker.RoleTool {
		b["tool_call_id"] = m.CallID
		if m.Failed { // the APIs have no field for a failure
			b["content"] = "The tool failed: " + m.Text
		}
		if e.native {
			b["tool_name"] = names[m.CallID]
		}
	}
	calls := make([]body, 0, len(m.Calls))
	for _, c := range m.Calls {
		names[c.ID] = c.Name
		call := body{"id": c.ID, "function": body{"name": c.Name, "arguments": json.RawMessage(objectOrEmpty(c.Arguments))}}
		if !e.native {
			call["type"], call["function"] = "function", body{"name": c.Name, "arguments": objectOrEmpty(c.Arguments)}
			if o, ok := c.Origin.(origin); ok && opaque {
				if o.call != nil {
					call["extra_content"] = o.call
				}
				for key, value := range o.message {
					b[key] = value
				}
			}
		}
		calls = append(calls, call)
	}
	if len(calls) > 0 {
		b["tool_calls"] = calls
	}
	switch {
	case len(m.Pictures) == 0:
	case !e.native:
		b["content"] = e.contentParts(m)
	case e.o.Vision:
		images := make([][]byte, 0, len(m.Pictures)) // encoded as base64 by json.Marshal
		for _, picture := range m.Pictures {
			images = append(images, picture.Data)
		}
		b["images"] = images
	default:
		b["content"] = m.Text + "\n" + hiddenPicture
	}
	return b
}

// objectOrEmpty returns the arguments of a call, or "{}" if they are not a JSON object: strict servers would
// refuse this request and all later ones with the same message. The tool's result tells the model of its mistake.
func objectOrEmpty(arguments json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) != nil || fields == nil {
		return "{}"
	}
	return string(arguments)
}

// contentParts returns the content of a message with pictures.
func (e *Engine) contentParts(m thinker.Message) []body {
	var parts []body
	if m.Text != "" {
		parts = append(parts, body{"type": "text", "text": m.Text})
	}
	for _, picture := range m.Pictures {
		if !e.o.Vision {
			parts = append(parts, body{"type": "text", "text": hiddenPicture})
			continue
		}
		data := "data:" + picture.Type + ";base64," + base64.StdEncoding.EncodeToString(picture.Data)
		parts = append(parts, body{"type": "image_url", "image_url": body{"url": data}})
	}
	return parts
}

// encodeTools returns the JSON of the offered tools.
func encodeTools(tools []thinker.Tool) []body {
	encoded := make([]body, 0, len(tools))
	for _, t := range tools {
		encoded = append(encoded, body{"type": "function",
			"function": body{"name": t.Name, "description": t.Description, "parameters": t.Schema}})
	}
	return encoded
}
