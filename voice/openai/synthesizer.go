package openai

import (
	"context"

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
