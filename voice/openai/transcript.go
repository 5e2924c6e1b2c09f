package openai

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode"

	"perch/voice"
)

// transcript parses an answer, with the language if it has one. complaint is not empty if
// the server returned an error with status 200, as whisper.cpp does.
func transcript(body []byte) (heard voice.Transcript, complaint string, ok bool) {
	var answer struct {
		Text     *string
		Language string
		Error    json.RawMessage
	}
	if json.Unmarshal(body, &answer) != nil {
		return heard, "", false
	}
	if answer.Text != nil {
		heard.Text, heard.Language = strings.Join(strings.Fields(*answer.Text), " "), answer.Language
		return heard, "", true
	}
	if len(answer.Error) == 0 || string(answer.Error) == "null" {
		return heard, "", false
	}
	var object struct{ Message string }
	if json.Unmarshal(answer.Error, &complaint) != nil {
		_ = json.Unmarshal(answer.Error, &object)
		complaint = object.Message
	}
	complaint = cmp.Or(complaint, "it does not say why")
	return heard, complaint, false
}

// wordless reports whether a text has no letter or digit outside of brackets: "", "...",
// "[BLANK_AUDIO]", "(music) (applause)". Whisper writes such text for silence and noise. It
// also writes "Thank you." for silence, but people do say that.
func wordless(text string) bool {
	depth, words, inner := 0, false, false
	for _, r := range text {
		switch {
		case strings.ContainsRune("([（［【", r):
			depth++
		case strings.ContainsRune(")]）］】", r):
			depth = max(0, depth-1)
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
		case depth > 0:
			inner = true
		default:
			words = true
		}
	}
	// An unclosed bracket is no remark.
	return !words && (depth == 0 || !inner)
}
