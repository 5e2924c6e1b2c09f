package remote

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Message returns the code and the message in the body of an error response. Both may contain
// keys, and must pass Quote before they are shown. Message recognizes these forms, alone or in a list:
//
//   - OpenAI: {"error": {"message"}}, and in servers that imitate it {"error": "..."}
//   - OAuth: {"error_description": "..."}
//   - FastAPI: {"detail": "..."} and {"detail": [{"msg"}]}
//   - ElevenLabs: {"detail": {"status", "message"}}
//   - others: {"errors": [{"message"}]}, {"message"}, {"details"}, {"msg"} and {"reason"}
//
// If such a field has another form, its JSON is the message. Text that is neither JSON nor
// HTML is returned as the message. For an HTML page, Message returns nothing.
func Message(body []byte) (code, message string) {
	text := strings.TrimSpace(string(body))
	switch {
	case strings.HasPrefix(text, "<"):
		return "", ""
	case !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "["):
		// aiohttp repeats the status in its text: "401: Unauthorized".
		if len(text) > 4 && strings.Trim(text[:3], "0123456789") == "" && text[3] == ':' {
			text = strings.TrimSpace(text[4:])
		}
		return "", text
	}
	var outer struct {
		Error, Detail, Details, Errors, Message, Msg, Reason json.RawMessage
		Description                                          json.RawMessage `json:"error_description"`
		Status                                               any
	}
	if strings.HasPrefix(text, "[") { // Gemini's OpenAI-compatible API sends a list
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil {
			return "", ""
		}
		for _, element := range list {
			if code, message = Message(element); message != "" || code != "" {
				return code, message
			}
		}
		return "", ""
	}
	if json.Unmarshal(body, &outer) != nil {
		return "", ""
	}
	if status, ok := outer.Status.(float64); ok && len(outer.Message) > 0 && string(outer.Error) == strconv.Quote(http.StatusText(int(status))) {
		outer.Error = nil // Spring sends {"status": 400, "error": "Bad Request", "message": ...}
	}
	for _, raw := range []json.RawMessage{outer.Description, outer.Error, outer.Detail, outer.Message, outer.Errors, outer.Details, outer.Msg, outer.Reason} {
		if code, message = fieldMessage(raw); message != "" || code != "" {
			return code, message
		}
	}
	return "", ""
}

// fieldMessage returns the code and the message in a field of a JSON error. If the field has an
// unknown form, its JSON is the message.
func fieldMessage(raw json.RawMessage) (code, message string) {
	if len(raw) == 0 {
		return "", ""
	}
	switch raw[0] {
	case '"':
		_ = json.Unmarshal(raw, &message)
		return "", message
	case '[':
		var list []struct {
			Loc          []any
			Msg, Message string
		}
		if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
			message = cmp.Or(list[0].Msg, list[0].Message)
			if n := len(list[0].Loc); n > 0 {
				if field, ok := list[0].Loc[n-1].(string); ok {
					message = field + ": " + message
				}
			}
		}
	case '{':
		var object struct {
			Code, Status, Type, Message any // some codes are numbers
			Msg, Detail                 string
			Error                       json.RawMessage
			Metadata                    struct{ Raw string } // OpenRouter: the response of the model's provider
		}
		_ = json.Unmarshal(raw, &object)
		message, _ = object.Message.(string)
		message = cmp.Or(message, object.Msg, object.Detail)
		if innerCode, innerMessage := fieldMessage(object.Error); innerMessage != "" && message == "" {
			code, message = innerCode, innerMessage
		}
		if _, innerMessage := Message([]byte(object.Metadata.Raw)); innerMessage != "" {
			message = strings.TrimPrefix(message+": "+innerMessage, ": ")
		}
		for _, v := range []any{object.Code, object.Status, object.Type} {
			if s, ok := v.(string); ok && code == "" {
				code = s
			}
		}
	default:
		return "", ""
	}
	if code == "" && message == "" && len(raw) > len("{}") {
		message = string(raw)
	}
	return code, message
}
