package remote

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// complaint takes the server's own code and words out of the body of an
// error. Both are fit to be shown. It knows OpenAI's {"error": {"message"}},
// {"error": "..."} of many copies of it, FastAPI's {"detail": "..."} and
// {"detail": [{"msg"}]}, and the {"detail": {"status", "message"}} of
// ElevenLabs; other text is taken as it is, and of a page nothing.
func (c *Client) complaint(kind string, body []byte) (code, detail string) {
	text := string(body)
	switch begins := strings.TrimSpace(text); {
	case strings.HasPrefix(begins, "<"), strings.Contains(kind, "html"):
		return "", ""
	case strings.HasPrefix(begins, "{"), strings.HasPrefix(begins, "["):
		code, detail = parts(body)
		return c.scrub(code), c.scrub(detail)
	}
	return "", c.scrub(text)
}

// parts finds code and message in a JSON error.
func parts(body []byte) (code, message string) {
	var outer struct{ Error, Detail, Message json.RawMessage }
	if json.Unmarshal(body, &outer) != nil {
		return "", ""
	}
	for _, raw := range []json.RawMessage{outer.Error, outer.Detail, outer.Message} {
		if code, message = part(raw); message != "" || code != "" {
			return code, message
		}
	}
	return "", ""
}

func part(raw json.RawMessage) (code, message string) {
	if len(raw) == 0 {
		return "", ""
	}
	switch raw[0] {
	case '"':
		_ = json.Unmarshal(raw, &message)
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
		var one struct{ Code, Status, Type, Message any } // a code is a number at times
		_ = json.Unmarshal(raw, &one)
		message, _ = one.Message.(string)
		for _, v := range []any{one.Code, one.Status, one.Type} {
			if s, ok := v.(string); ok && code == "" {
				code = s
			}
		}
	}
	return code, message
}

// keyLike matches what looks like a key, whoever's it is: what stands after
// the word that announces one, the well-known prefixes, what was starred out.
var keyLike = regexp.MustCompile(`(?i)\bbearer\s+\S+|\b(?:sk|pk|rk|gsk|hf)[-_][\w*.-]{6,}|\S*\*{3,}\S*`)

// longRun matches what is a key if there is a digit in it. Names of models are
// cut by dashes, slashes and points, so that they are left alone.
var longRun = regexp.MustCompile(`\w{24,}`)

// mostShown is how much of a server's text is shown, in runes.
const mostShown = 200

// scrub makes a text of the server fit to be shown: one line, short, without
// the key or anything that looks like one.
func (c *Client) scrub(text string) string {
	cut := len(text) >= mostComplaint
	if cut {
		text = text[:mostComplaint]
	}
	var line strings.Builder
	space := true
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			if !space {
				line.WriteByte(' ')
			}
			space = true
		case unicode.IsPrint(r):
			line.WriteRune(r)
			space = false
		}
	}
	text = strings.TrimSpace(line.String())
	if c.o.Key != "" {
		text = strings.ReplaceAll(text, c.o.Key, "(key)")
		text = strings.ReplaceAll(text, url.QueryEscape(c.o.Key), "(key)")
		text = strings.ReplaceAll(text, url.PathEscape(c.o.Key), "(key)")
	}
	text = keyLike.ReplaceAllString(text, "(key)")
	text = longRun.ReplaceAllStringFunc(text, func(run string) string {
		if strings.ContainsAny(run, "0123456789") {
			return "(key)"
		}
		return run
	})
	if cut { // the half of a key at the end was not recognized
		text = text[:max(0, len(text)-mostKey)]
	}
	if runes := []rune(text); len(runes) > mostShown {
		text = string(runes[:mostShown]) + "…"
	}
	return text
}
