package hass

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Event is an event of a run.
type Event struct {
	Type string
	Data json.RawMessage
}

// Handler returns the handler id for sound from a run-start.
func (e Event) Handler() (byte, error) {
	var data struct {
		Runner struct {
			Handler *uint8 `json:"stt_binary_handler_id"`
		} `json:"runner_data"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return 0, fmt.Errorf("read where sound goes: %w", err)
	}
	if data.Runner.Handler == nil {
		return 0, errors.New("nothing is said of where sound goes")
	}
	return *data.Runner.Handler, nil
}

// Conversation returns the conversation's id from an intent-start, or "" from older versions
// of Home Assistant.
func (e Event) Conversation() string {
	var data struct {
		ID string `json:"conversation_id"`
	}
	_ = json.Unmarshal(e.Data, &data) // not reported
	return data.ID
}

// Language returns the language of speech recognition from an stt-start, or "" if it is
// missing.
func (e Event) Language() string {
	var data struct {
		Metadata struct {
			Language string `json:"language"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &data) // not reported
	return data.Metadata.Language
}

// Transcript returns the recognized text from an stt-end.
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

// Delta is a piece of a conversation's log, from an intent-progress. A new message begins
// if Role is set.
type Delta struct {
	Role    string // "assistant", "tool_result"; empty: unchanged
	Content string
	Thought string     // never spoken
	Calls   []ToolCall // made by the model
	// A tool's answer.
	CallID string
	Failed bool
}

// ToolCall is a model's call of a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"tool_name"`
}

// Delta returns the delta of an intent-progress, if it has one.
func (e Event) Delta() (d Delta, there bool, err error) {
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
	_ = json.Unmarshal(in.Result, &older) // another form is not an error of the tool
	failed := older.Error != nil && older.Error != false || in.Newer.Error != nil && in.Newer.Error != false
	thought, _ := in.Thought.(string)
	return Delta{in.Role, in.Content, thought, in.Calls, in.CallID, failed}, true, nil
}

// Reply is a conversation's answer.
type Reply struct {
	Speech       string // plain text
	Kind         string // "action_done", "query_answer" or "error"
	Code         string // of an error, such as "no_intent_match"
	Conversation string // id for the next question
}

// reply is the JSON of a Reply.
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

func (r reply) reply() Reply {
	return Reply{r.Response.Speech.Plain.Speech, r.Response.Kind, r.Response.Data.Code, r.Conversation}
}

// Reply returns the answer from an intent-end.
func (e Event) Reply() (Reply, error) {
	var data struct {
		Output *reply `json:"intent_output"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return Reply{}, fmt.Errorf("read the answer: %w", err)
	}
	if data.Output == nil {
		return Reply{}, errors.New("there is no answer in it")
	}
	return data.Output.reply(), nil
}
