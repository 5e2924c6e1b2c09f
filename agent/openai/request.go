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

// unseen replaces a picture in requests to a model without vision.
const unseen = "(There is a picture here, which you cannot see.)"

// encode returns the request for a prompt.
func (e *Engine) encode(p thinker.Prompt, without rejections) body {
	var messages []body
	if p.System != "" {
		messages = append(messages, body{"role": "system", "content": p.System})
	}
	names := map[string]string{} // names of tools; key: ID of the call
	for _, m := range p.Messages {
		messages = append(messages, e.message(m, names, without&rejectsOpaque == 0))
	}
	b := body{"model": e.o.Model, "stream": true, "messages": messages}
	e.settings(b, p, without)
	if tools := offered(p.Tools); len(tools) > 0 && without&rejectsTools == 0 {
		b["tools"] = tools
		if !e.native {
			b["tool_choice"] = "auto"
		}
	}
	for key, value := range e.o.Extra {
		if b["tools"] == nil && (key == "tool_choice" || key == "parallel_tool_calls") {
			continue // OpenAI refuses these without tools
		}
		inner, both := value.(map[string]any)
		if there, ok := b[key].(body); ok && both {
			maps.Copy(there, inner) // Ollama's options contain some of ours
			continue
		}
		b[key] = value
	}
	return b
}

// settings adds the options of the engine and of the answering character.
func (e *Engine) settings(b body, p thinker.Prompt, without rejections) {
	in, most := b, "max_tokens"
	switch {
	case e.native:
		in, most = e.nativeOptions(b), "num_predict"
	case without&rejectsMaxTokens != 0:
		most = "max_completion_tokens"
	}
	if t := p.Temperature(e.o.Temperature, highest); t != nil && without&rejectsTemperature == 0 {
		in["temperature"] = *t
	}
	if n := p.MaxTokens(e.o.MaxTokens); n > 0 && without&rejectsLimit == 0 {
		in[most] = n
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
	default: // whether to think at all
		b["think"] = effort != "none" && effort != "minimal"
	}
}

// nativeOptions adds keep_alive and num_ctx for Ollama to a request, and returns the object that has its other options.
func (e *Engine) nativeOptions(b body) body {
	options := body{}
	if e.o.NumCtx > 0 {
		options["num_ctx"] = e.o.NumCtx // another length would reload the model
	}
	if value, _ := keepAlive(e.o.KeepAlive); value != nil {
		b["keep_alive"] = value
	}
	b["options"] = options
	return options
}

// message returns the JSON of a message. Its content is never null, which is legal with calls but breaks the
// templates of some servers. Ollama's own API identifies the result of a tool by the tool's name, and has the
// arguments of a call as an object. names are the names of tools by the ID of the call; opaque means that the
// server's thoughts are sent back.
func (e *Engine) message(m thinker.Message, names map[string]string, opaque bool) body {
	b := body{"role": string(m.Role), "content": m.Text}
	if m.Role == thinker.RoleTool {
		b["tool_call_id"] = m.CallID
		if m.Failed { // these APIs have no field for it
			b["content"] = "The tool failed: " + m.Text
		}
		if e.native {
			b["tool_name"] = names[m.CallID]
		}
	}
	calls := make([]body, 0, len(m.Calls))
	for _, c := range m.Calls {
		names[c.ID] = c.Name
		call := body{"id": c.ID, "function": body{"name": c.Name, "arguments": json.RawMessage(object(c.Arguments))}}
		if !e.native {
			call["type"], call["function"] = "function", body{"name": c.Name, "arguments": object(c.Arguments)}
			if o, is := c.Origin.(origin); is && opaque {
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
		b["content"] = e.parts(m)
	case e.o.Vision:
		images := make([][]byte, 0, len(m.Pictures)) // encoded as base64 by json.Marshal
		for _, picture := range m.Pictures {
			images = append(images, picture.Data)
		}
		b["images"] = images
	default:
		b["content"] = m.Text + "\n" + unseen
	}
	return b
}

// object returns the arguments of a call, or "{}" if they are not a JSON object: strict servers would refuse
// every later request with that message. The result of the tool tells the model of its mistake.
func object(arguments json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) != nil || fields == nil {
		return "{}"
	}
	return string(arguments)
}

// parts returns the content of a message with pictures.
func (e *Engine) parts(m thinker.Message) []body {
	var parts []body
	if m.Text != "" {
		parts = append(parts, body{"type": "text", "text": m.Text})
	}
	for _, picture := range m.Pictures {
		if !e.o.Vision {
			parts = append(parts, body{"type": "text", "text": unseen})
			continue
		}
		data := "data:" + picture.Type + ";base64," + base64.StdEncoding.EncodeToString(picture.Data)
		parts = append(parts, body{"type": "image_url", "image_url": body{"url": data}})
	}
	return parts
}

// offered returns the JSON of the offered tools.
func offered(tools []thinker.Tool) []body {
	all := make([]body, 0, len(tools))
	for _, t := range tools {
		all = append(all, body{"type": "function",
			"function": body{"name": t.Name, "description": t.Description, "parameters": t.Schema}})
	}
	return all
}
