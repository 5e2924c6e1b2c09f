package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"perch/voice"
)

// parseTranscript parses a response in OpenAI's JSON format, plain or verbose. heard.NoSpeech is the
// lowest value of all segments. ok is false if the response holds no transcript. complaint is the
// server's error if the server sent one with status 200, as whisper.cpp does.
func parseTranscript(body []byte) (heard voice.Transcript, complaint string, ok bool) {
	var response struct {
		Text     *string
		Language string
		Segments []struct {
			NoSpeech float64 `json:"no_speech_prob"`
		}
		Error json.RawMessage
	}
	if json.Unmarshal(body, &response) != nil {
		return heard, "", false
	}
	if response.Text != nil {
		heard.Text, heard.Language = strings.Join(strings.Fields(*response.Text), " "), response.Language
		for i, s := range response.Segments {
			if i == 0 || s.NoSpeech < heard.NoSpeech {
				heard.NoSpeech = s.NoSpeech
			}
		}
		return heard, "", true
	}
	if len(response.Error) == 0 || string(response.Error) == "null" {
		return heard, "", false
	}
	var object struct{ Message string }
	if json.Unmarshal(response.Error, &complaint) != nil {
		_ = json.Unmarshal(response.Error, &object)
		complaint = object.Message
	}
	complaint = cmp.Or(complaint, "it does not say why")
	return heard, complaint, false
}
