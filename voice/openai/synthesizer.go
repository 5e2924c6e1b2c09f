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

// Check reports whether the server would speak: it knows the model, or begins to synthesize
// "Hi.". Its error is one sentence.
func (s *Synthesizer) Check(ctx context.Context) error {
	return check(ctx, s.client, s.o.Model, func(ctx context.Context) error { return media.Speaks(ctx, s) })
}

// speech is the body of a request.
type speech struct {
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
	order := speech{Model: s.o.Model, Input: text, Voice: name, Format: "pcm", Streamed: s.o.Stream}
	return s.client.Speak(ctx, text, s.o.Rate, "audio/speech", nil, order, out)
}
