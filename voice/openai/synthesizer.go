package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"perch/limit"
	"perch/voice"
	"perch/voice/media"
)

// Synthesizer implements voice.Synthesizer.
type Synthesizer struct{ engine }

// NewSynthesizer checks the options and returns the engine. It opens no connection.
func NewSynthesizer(o Options) (*Synthesizer, error) {
	client, err := o.client("tts-1")
	if err != nil {
		return nil, err
	}
	return &Synthesizer{engine{o, client}}, nil
}

// Check returns an error of one sentence if the server could not speak: it neither lists the
// model nor begins to synthesize "Hi.".
func (s *Synthesizer) Check(ctx context.Context) error {
	return checkServer(ctx, s.client, s.o.Model, func(ctx context.Context) error { return media.CheckSynthesizer(ctx, s) })
}

// openAIVoices are the voices of OpenAI's own models, which its server does not list.
func openAIVoices() []string {
	return []string{"alloy", "ash", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer"}
}

// Voices implements voice.Lister. OpenAI's API has no list of voices, but kokoro-fastapi, speaches and others have
// one at /audio/voices. Without such a list, Voices returns the fixed voices of OpenAI's own models, and no voices for
// another model.
func (s *Synthesizer) Voices(ctx context.Context) (list []voice.Named, err error) {
	add := func(name, title string) { list = append(list, voice.Named{Name: name, Title: title}) }
	body, err := s.client.Get(ctx, "audio/voices", url.Values{"model_id": {s.o.Model}})
	if media.IsRefusal(err) {
		if strings.HasPrefix(s.o.Model, "tts-1") || strings.HasSuffix(s.o.Model, "-tts") {
			for _, name := range openAIVoices() {
				add(name, "")
			}
		}
		return list, nil
	} else if err != nil {
		return nil, err
	}
	var result struct{ Voices []json.RawMessage }
	if json.Unmarshal(body, &result) != nil {
		_ = json.Unmarshal(body, &result.Voices)
	}
	for _, raw := range result.Voices { // each is a name or an object
		var name string
		var object struct {
			ID      string `json:"id"`
			VoiceID string `json:"voice_id"`
			Name    string `json:"name"`
		}
		if json.Unmarshal(raw, &name) == nil {
			add(name, "")
		} else if json.Unmarshal(raw, &object) == nil {
			add(cmp.Or(object.VoiceID, object.ID, object.Name), object.Name)
		}
	}
	return list, nil
}

// speechRequest is the body of a request to /audio/speech.
type speechRequest struct {
	Model    string `json:"model"`
	Input    string `json:"input"`
	Voice    string `json:"voice"`
	Format   string `json:"response_format"`
	Streamed bool   `json:"stream,omitempty"`
}

// Synthesize implements voice.Synthesizer.
func (s *Synthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	name := s.o.Voice
	if o.Voice != "" && len(o.Voice) <= limit.Name {
		name = o.Voice
	}
	request := speechRequest{Model: s.o.Model, Input: text, Voice: name, Format: "pcm", Streamed: s.o.Stream}
	return s.client.Speak(ctx, text, s.o.Rate, "audio/speech", nil, request, out)
}
