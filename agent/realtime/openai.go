package realtime

import (
	"encoding/json"
	"strings"

	"perch/agent"
	"perch/agent/thinker"
)

// openai is the dialect of OpenAI's Realtime API.
type openai struct {
	serverTurns bool
	beta        bool // whether the server has the names of the API's beta
}

func (*openai) greeting() string { return "session.created" }

// greeted finds out whether the server has the names of the API's beta.
func (d *openai) greeted(e serverEvent) { d.beta = len(e.Session.Modalities) > 0 }

func (d *openai) setUp(o Options, t agent.Turn, p thinker.Prompt) object {
	tools := []object{}
	for _, tool := range p.Tools {
		tools = append(tools, object{"type": "function", "name": tool.Name, "description": tool.Description, "parameters": tool.Schema})
	}
	transcription := object{"model": o.Transcriber}
	if language, _, _ := strings.Cut(t.Language, "-"); language != "" {
		transcription["language"] = language
	}
	var turns any // null: the client decides
	if d.serverTurns {
		turns = object{"type": "server_vad"}
	}
	s := object{"instructions": p.System, "tools": tools, "tool_choice": "auto"}
	modalities := []string{"audio"} // with a transcript
	if t.Speech == nil {
		modalities = []string{"text"}
	}
	maxTokens := p.MaxTokens(o.MaxTokens)
	if d.beta {
		if t.Speech != nil {
			modalities = []string{"text", "audio"}
		}
		s["modalities"], s["input_audio_format"], s["output_audio_format"] = modalities, "pcm16", "pcm16"
		s["input_audio_transcription"], s["turn_detection"] = transcription, turns
		if o.Voice != "" {
			s["voice"] = o.Voice
		}
		if maxTokens > 0 {
			s["max_response_output_tokens"] = min(maxTokens, maxOutput)
		}
		return object{"type": "session.update", "session": s}
	}
	format := object{"type": "audio/pcm", "rate": defaultRate}
	output := object{"format": format}
	if o.Voice != "" {
		output["voice"] = o.Voice
	}
	s["type"], s["output_modalities"] = "realtime", modalities
	s["audio"] = object{"input": object{"format": format, "transcription": transcription, "turn_detection": turns}, "output": output}
	if maxTokens > 0 {
		s["max_output_tokens"] = min(maxTokens, maxOutput)
	}
	return object{"type": "session.update", "session": s}
}

func (d *openai) add(messages []thinker.Message, _ bool) (events []object) {
	for _, m := range messages {
		var item object
		switch m.Role {
		case thinker.RoleTool:
			item = object{"type": "function_call_output", "call_id": m.CallID, "output": m.Text}
		case thinker.RoleAssistant:
			kind := "output_text"
			if d.beta {
				kind = "text"
			}
			item = object{"type": "message", "role": "assistant", "content": []object{{"type": kind, "text": m.Text}}}
		default:
			item = object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": m.Text}}}
		}
		events = append(events, object{"type": "conversation.item.create", "item": item})
	}
	return events
}

func (*openai) startSpeech() []object { return nil }

func (d *openai) endSpeech() []object {
	if d.serverTurns {
		return nil
	}
	return []object{{"type": "input_audio_buffer.commit"}}
}

func (*openai) sound(pcm []int16) object {
	return object{"type": "input_audio_buffer.append", "audio": encodeSound(pcm)}
}

func (*openai) respond() []object { return []object{{"type": "response.create"}} }

func (*openai) cancel() []object { return []object{{"type": "response.cancel"}} }

// decode ignores fields of unexpected types: events that a turn does not use may have such fields.
func (*openai) decode(data []byte) []serverEvent {
	var e serverEvent
	if _ = json.Unmarshal(data, &e); e.Type == "" {
		return nil
	}
	return []serverEvent{e}
}
