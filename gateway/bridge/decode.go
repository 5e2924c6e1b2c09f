package bridge

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"perch/gateway/door"
)

// decode reads a body. What a client sends besides is left alone, for clients
// differ in that.
func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return badBody("the body is not the JSON object that belongs here: " + door.WhyNotJSON(err))
	}
	return nil
}

// badBody is the refusal of a body that cannot be carried out.
func badBody(why string) error {
	return &door.Fault{Word: "bad_body", Sentence: why, HTTP: http.StatusBadRequest}
}

// line is a text in one line, without what no keyboard types.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// needed is a text in one line that must be there, of at most that many bytes.
func needed(name, text string, most int) (string, error) {
	text = line(text)
	if text == "" {
		return "", badBody(name + " is needed, a text that is not empty")
	}
	if len(text) > most {
		return "", badBody(name + " is too long")
	}
	return text, nil
}

// cut is at most n characters of a text.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n])
}
