package remote

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Message finds a server's code and text in the body of an error. Both still need Quote. It
// knows OpenAI's {"error": {"message"}} and the {"error": "..."} of many copies of it,
// OAuth's {"error_description"}, FastAPI's {"detail": "..."} and {"detail": [{"msg"}]}, and
// the {"detail": {"status", "message"}} of ElevenLabs, {"errors": [{"message"}]}, each also in a list. Other text is returned unchanged, and
// an HTML page as nothing.
func Message(body []byte) (code, message string) {
	text := strings.TrimSpace(string(body))
	switch {
	case strings.HasPrefix(text, "<"):
		return "", ""
	case !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "["):
		// "401: Unauthorized" is aiohttp's own text.
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
	if strings.HasPrefix(text, "[") { // Gemini's compatible API puts its error into a list
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil {
			return "", ""
		}
		for _, one := range list {
			if code, message = Message(one); message != "" || code != "" {
				return code, message
			}
		}
		return "", ""
	}
	if json.Unmarshal(body, &outer) != nil {
		return "", ""
	}
	if status, is := outer.Status.(float64); is && len(outer.Message) > 0 && string(outer.Error) == strconv.Quote(http.StatusText(int(status))) {
		outer.Error = nil // Spring's {"status": 400, "error": "Bad Request", "message": ...}
	}
	for _, raw := range []json.RawMessage{outer.Description, outer.Error, outer.Detail, outer.Message, outer.Errors, outer.Details, outer.Msg, outer.Reason} {
		if code, message = part(raw); message != "" || code != "" {
			return code, message
		}
	}
	return "", ""
}

// part returns the code and message in a field of a JSON error. An unknown form is returned
// unchanged.
func part(raw json.RawMessage) (code, message string) {
	if len(raw) == 0 {
		return "", ""
	}
	switch raw[0] {
	case '"':
		_ = json.Unmarshal(raw, &message)
		return "", message
	case '[':
		var several []struct {
			Loc          []any
			Msg, Message string
		}
		if json.Unmarshal(raw, &several) == nil && len(several) > 0 {
			message = cmp.Or(several[0].Msg, several[0].Message)
			if n := len(several[0].Loc); n > 0 {
				if field, ok := several[0].Loc[n-1].(string); ok {
					message = field + ": " + message
				}
			}
		}
	case '{':
		var one struct {
			Code, Status, Type, Message any // some codes are numbers
			Msg, Detail                 string
			Error                       json.RawMessage
			Metadata                    struct{ Raw string } // OpenRouter: what the provider said
		}
		_ = json.Unmarshal(raw, &one)
		message, _ = one.Message.(string)
		message = cmp.Or(message, one.Msg, one.Detail)
		if inner, said := part(one.Error); said != "" && message == "" {
			code, message = inner, said
		}
		if _, said := Message([]byte(one.Metadata.Raw)); said != "" {
			message = strings.TrimPrefix(message+": "+said, ": ")
		}
		for _, v := range []any{one.Code, one.Status, one.Type} {
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
