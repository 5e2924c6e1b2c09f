package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"perch/voice"
)

// transcript parses an answer, with the language if it has one. complaint is not empty if
// the server returned an error with status 200, as whisper.cpp does.
func transcript(body []byte) (heard voice.Transcript, complaint string, ok bool) {
	var answer struct {
		Text     *string
		Language string
		Segments []struct {
			NoSpeech float64 `json:"no_speech_prob"`
		}
		Error json.RawMessage
	}
	if json.Unmarshal(body, &answer) != nil {
		return heard, "", false
	}
	if answer.Text != nil {
		heard.Text, heard.Language = strings.Join(strings.Fields(*answer.Text), " "), answer.Language
		for i, s := range answer.Segments {
			if i == 0 || s.NoSpeech < heard.NoSpeech {
				heard.NoSpeech = s.NoSpeech
			}
		}
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
