package remote

import (
	"encoding/json"
	"strings"
)

// Message finds a server's code and text in the body of an error. Both still need Quote. It
// knows OpenAI's {"error": {"message"}} and the {"error": "..."} of many copies of it,
// OAuth's {"error_description"}, FastAPI's {"detail": "..."} and {"detail": [{"msg"}]}, and
// the {"detail": {"status", "message"}} of ElevenLabs. Other text is returned unchanged, and
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
		Error, Detail, Message json.RawMessage
		Description            json.RawMessage `json:"error_description"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return "", ""
	}
	for _, raw := range []json.RawMessage{outer.Description, outer.Error, outer.Detail, outer.Message} {
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
			Loc []any
			Msg string
		}
		if json.Unmarshal(raw, &several) == nil && len(several) > 0 {
			message = several[0].Msg
			if n := len(several[0].Loc); n > 0 {
				if field, ok := several[0].Loc[n-1].(string); ok {
					message = field + ": " + message
				}
			}
		}
	case '{':
		var one struct{ Code, Status, Type, Message any } // some codes are numbers
		_ = json.Unmarshal(raw, &one)
		message, _ = one.Message.(string)
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
