package hass

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Event is what happened in a run.
type Event struct {
	Type string
	Data json.RawMessage
}

// Handler reads from a run-start where sound goes.
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

// Conversation reads from an intent-start by which id the conversation goes;
// older ones do not say.
func (e Event) Conversation() string {
	var data struct {
		ID string `json:"conversation_id"`
	}
	_ = json.Unmarshal(e.Data, &data) // then it does not say
	return data.ID
}

// Language reads from an stt-start in which language speech is recognized; nothing where
// it does not say.
func (e Event) Language() string {
	var data struct {
		Metadata struct {
			Language string `json:"language"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &data) // then it does not say
	return data.Metadata.Language
}

// Transcript reads from an stt-end what was understood.
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

// Delta is a piece of a conversation's log, from an intent-progress. A new
// message begins where Role is set.
type Delta struct {
	Role    string // "assistant", "tool_result"; empty: the same as before
	Content string
	Thought string     // is never spoken
	Calls   []ToolCall // that the model makes
	// What a tool answered.
	CallID string
	Failed bool
}

// ToolCall is a tool that a model uses.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"tool_name"`
}

// Delta reads the delta of an intent-progress; there is none in some.
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
	_ = json.Unmarshal(in.Result, &older) // another shape is not an error of the tool
	failed := older.Error != nil && older.Error != false || in.Newer.Error != nil && in.Newer.Error != false
	thought, _ := in.Thought.(string)
	return Delta{in.Role, in.Content, thought, in.Calls, in.CallID, failed}, true, nil
}

// Reply is what a conversation answered.
type Reply struct {
	Speech       string // plain
	Kind         string // "action_done", "query_answer" or "error"
	Code         string // of an error, "no_intent_match"
	Conversation string // the id to go on with
}

// reply is the JSON of one.
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

// Reply reads the answer from an intent-end.
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
