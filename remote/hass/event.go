package hass

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Event is an event of a run.
type Event struct {
	Type string // such as EventRunStart
	Data json.RawMessage
}

// Handler returns the handler ID from a run-start event. Run.Sound sends this ID with each piece of
// sound, so that Home Assistant knows the run to which the sound belongs.
func (e Event) Handler() (byte, error) {
	var data struct {
		Runner struct {
			Handler *uint8 `json:"stt_binary_handler_id"`
		} `json:"runner_data"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return 0, fmt.Errorf("read the handler ID for sound: %w", err)
	}
	if data.Runner.Handler == nil {
		return 0, errors.New("the event has no handler ID for sound")
	}
	return *data.Runner.Handler, nil
}

// Conversation returns the ID of the conversation from an intent-start event. The ID is empty with
// older versions of Home Assistant.
func (e Event) Conversation() string {
	var data struct {
		ID string `json:"conversation_id"`
	}
	_ = json.Unmarshal(e.Data, &data) // without valid data the result is empty
	return data.ID
}

// Language returns the language of the speech recognition from an stt-start event, or "" if it
// is missing.
func (e Event) Language() string {
	var data struct {
		Metadata struct {
			Language string `json:"language"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &data) // without valid data the result is empty
	return data.Metadata.Language
}

// Transcript returns the recognized text from an stt-end event.
func (e Event) Transcript() (string, error) {
	var data struct {
		Output struct {
			Text string `json:"text"`
		} `json:"stt_output"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return "", fmt.Errorf("read the transcript: %w", err)
	}
	return data.Output.Text, nil
}

// Delta is a piece of a conversation, from an intent-progress event. Home Assistant calls it
// chat_log_delta.
type Delta struct {
	Role    string     // "assistant" or "tool_result" at the beginning of a message; empty otherwise
	Content string     // text to be spoken, if the role of the message is "assistant"
	Thought string     // the model's thinking, which is not spoken
	Calls   []ToolCall // the model's calls of tools
	CallID  string     // ID of the call that a tool result belongs to
	Failed  bool       // the tool failed
}

// ToolCall is a call of a tool by the model.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"tool_name"`
}

// Delta returns the delta in an intent-progress event. ok is false if the event has no delta.
func (e Event) Delta() (d Delta, ok bool, err error) {
	var data struct {
		Delta *struct {
			Role    string          `json:"role"`
			Content string          `json:"content"`
			Thought any             `json:"thinking_content"`
			Calls   []ToolCall      `json:"tool_calls"`
			CallID  string          `json:"tool_call_id"`
			Result  json.RawMessage `json:"tool_result"`
			Newer   struct {
				Error any `json:"error"`
			} `json:"result"`
		} `json:"chat_log_delta"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return d, false, fmt.Errorf("read a piece of the conversation: %w", err)
	}
	if data.Delta == nil {
		return d, false, nil
	}
	in := data.Delta
	var older struct{ Error any }
	// Older versions of Home Assistant send the error in tool_result, newer versions in result.
	_ = json.Unmarshal(in.Result, &older) // a result in another format is not a failure of the tool
	failed := older.Error != nil && older.Error != false || in.Newer.Error != nil && in.Newer.Error != false
	thought, _ := in.Thought.(string)
	return Delta{in.Role, in.Content, thought, in.Calls, in.CallID, failed}, true, nil
}

// Reply is a reply of a conversation agent.
type Reply struct {
	Speech       string // plain text
	Kind         string // "action_done", "query_answer" or "error"
	Code         string // error code, such as "no_intent_match"; empty unless Kind is "error"
	Conversation string // ID for the next question
}

// reply is a reply in Home Assistant's JSON format.
type reply struct {
	Response struct {
		Speech struct {
			Plain struct {
				Speech string `json:"speech"`
			} `json:"plain"`
		} `json:"speech"`
		Kind string `json:"response_type"`
		Data struct {
			Code string `json:"code"`
		} `json:"data"`
	} `json:"response"`
	Conversation string `json:"conversation_id"`
}

// reply converts r to a Reply.
func (r reply) reply() Reply {
	return Reply{r.Response.Speech.Plain.Speech, r.Response.Kind, r.Response.Data.Code, r.Conversation}
}

// Reply returns the reply from an intent-end event.
func (e Event) Reply() (Reply, error) {
	var data struct {
		Output *reply `json:"intent_output"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return Reply{}, fmt.Errorf("read the reply: %w", err)
	}
	if data.Output == nil {
		return Reply{}, errors.New("the event has no reply")
	}
	return data.Output.reply(), nil
}
