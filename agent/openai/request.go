package openai

import (
	"encoding/base64"
	"encoding/json"
	"maps"

	"perch/agent/thinker"
)

// body is a request's JSON. It is a map because options may be removed and the
// configuration may add keys.
type body = map[string]any

// unseen replaces a picture for a model without vision.
const unseen = "(There is a picture here, which you cannot see.)"

// encode returns the request for a prompt.
func (e *Engine) encode(p thinker.Prompt, used habits) body {
	var messages []body
	if p.System != "" {
		messages = append(messages, body{"role": "system", "content": p.System})
	}
	names := map[string]string{} // of tools, by call
	for _, m := range p.Messages {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		if e.native {
			messages = append(messages, e.nativeMessage(m, names))
		} else {
			messages = append(messages, e.chatMessage(m))
		}
	}
	b := body{"model": e.o.Model, "stream": true, "messages": messages}
	if e.native {
		e.nativeSettings(b, p, used)
	} else {
		e.chatSettings(b, p, used)
	}
	if tools := offered(p.Tools); len(tools) > 0 && !used.noTools {
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

func (e *Engine) chatSettings(b body, p thinker.Prompt, used habits) {
	if t := p.Temperature(e.o.Temperature, highest); t != nil && !used.noTemperature {
		b["temperature"] = *t
	}
	if most := p.MaxTokens(e.o.MaxTokens); most > 0 {
		name := "max_tokens"
		if used.newLimit {
			name = "max_completion_tokens"
		}
		b[name] = most
	}
	if e.o.ReasoningEffort != "" && !used.noThinking {
		b["reasoning_effort"] = e.o.ReasoningEffort
	}
}

// chatMessage always has content as a string or parts: null is legal with calls, but
// breaks some servers' templates.
func (e *Engine) chatMessage(m thinker.Message) body {
	b := body{"role": string(m.Role), "content": m.Text}
	switch {
	case m.Role == thinker.RoleTool:
		b["tool_call_id"] = m.CallID
		b["content"] = result(m)
	case len(m.Calls) > 0:
		calls := make([]body, 0, len(m.Calls))
		for _, c := range m.Calls {
			calls = append(calls, body{"id": c.ID, "type": "function",
				"function": body{"name": c.Name, "arguments": object(c.Arguments)}})
		}
		b["tool_calls"] = calls
	case len(m.Pictures) > 0:
		b["content"] = e.parts(m)
	}
	return b
}

// object returns a call's arguments for the server. Strict servers refuse anything but
// a JSON object, and with it every later turn; the model already has the error as the
// tool's answer.
func object(arguments json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) != nil || fields == nil {
		return "{}"
	}
	return string(arguments)
}

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

// result returns a tool's answer; these APIs have no field for failures.
func result(m thinker.Message) string {
	if m.Failed {
		return "The tool failed: " + m.Text
	}
	return m.Text
}

func (e *Engine) nativeSettings(b body, p thinker.Prompt, used habits) {
	options := body{}
	if e.o.NumCtx > 0 {
		options["num_ctx"] = e.o.NumCtx
	}
	if t := p.Temperature(e.o.Temperature, highest); t != nil {
		options["temperature"] = *t
	}
	if most := p.MaxTokens(e.o.MaxTokens); most > 0 {
		options["num_predict"] = most
	}
	b["options"] = options
	if value, _ := keepAlive(e.o.KeepAlive); value != nil {
		b["keep_alive"] = value
	}
	if e.o.ReasoningEffort != "" && !used.noThinking {
		b["think"] = think(e.o.ReasoningEffort)
	}
}

// think converts an effort for Ollama: a level if it is one, and otherwise whether to
// think at all.
func think(effort string) any {
	switch effort {
	case "low", "medium", "high":
		return effort
	}
	return effort != "none" && effort != "minimal"
}

// nativeMessage identifies a tool's answer by the tool's name, and has a call's
// arguments as an object. Invalid ones were already answered by an error.
func (e *Engine) nativeMessage(m thinker.Message, names map[string]string) body {
	b := body{"role": string(m.Role), "content": m.Text}
	if m.Role == thinker.RoleTool {
		b["content"], b["tool_name"], b["tool_call_id"] = result(m), names[m.CallID], m.CallID
	}
	if len(m.Calls) > 0 {
		calls := make([]body, 0, len(m.Calls))
		for _, c := range m.Calls {
			object := map[string]any{}
			if json.Unmarshal(c.Arguments, &object) != nil || object == nil {
				object = map[string]any{}
			}
			calls = append(calls, body{"id": c.ID, "function": body{"name": c.Name, "arguments": object}})
		}
		b["tool_calls"] = calls
	}
	if len(m.Pictures) > 0 && e.o.Vision {
		images := make([][]byte, 0, len(m.Pictures)) // encoded as base64 by json.Marshal
		for _, picture := range m.Pictures {
			images = append(images, picture.Data)
		}
		b["images"] = images
	} else if len(m.Pictures) > 0 {
		b["content"] = m.Text + "\n" + unseen
	}
	return b
}

func offered(tools []thinker.Tool) []body {
	all := make([]body, 0, len(tools))
	for _, t := range tools {
		schema := t.Schema
		if !json.Valid(schema) {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		all = append(all, body{"type": "function",
			"function": body{"name": t.Name, "description": t.Description, "parameters": schema}})
	}
	return all
}
