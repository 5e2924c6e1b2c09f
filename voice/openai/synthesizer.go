package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"perch/remote"
	"perch/voice"
	"perch/voice/media"
)

// Synthesizer implements voice.Synthesizer.
type Synthesizer struct {
	o      Options
	client *media.Client
}

// NewSynthesizer checks the options and returns the engine. It opens no connection.
func NewSynthesizer(o Options) (*Synthesizer, error) {
	client, err := o.client("tts-1")
	if err != nil {
		return nil, err
	}
	return &Synthesizer{o, client}, nil
}

// Name is "openai".
func (*Synthesizer) Name() string { return "openai" }

// Close ends what is under way and closes the engine's connections.
func (s *Synthesizer) Close() { s.client.Close() }

// Check reports whether the server would speak: it knows the model, or begins
// to say "Hi.". Its error is one sentence.
func (s *Synthesizer) Check(ctx context.Context) error {
	return check(ctx, s.client, s.o.Model, func(ctx context.Context) error { return media.Speaks(ctx, s) })
}

// longestText is how much OpenAI's takes at once, in characters.
const longestText = 4096

// speech is the body of a request.
type speech struct {
	Model    string  `json:"model"`
	Input    string  `json:"input"`
	Voice    string  `json:"voice"`
	Format   string  `json:"response_format"`
	Speed    float64 `json:"speed,omitempty"`
	Streamed bool    `json:"stream,omitempty"`
}

// Synthesize implements voice.Synthesizer.
func (s *Synthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if n := utf8.RuneCountInString(text); n > longestText {
		return fmt.Errorf("a speech server takes %d characters at once, not %d", longestText, n)
	}
	name := s.o.Voice
	if o.Voice != "" && len(o.Voice) <= longestName {
		name = o.Voice
	}
	body, err := json.Marshal(speech{
		Model: s.o.Model, Input: text, Voice: name, Format: "pcm", Speed: s.o.Speed, Streamed: s.o.Stream,
	})
	if err != nil {
		return fmt.Errorf("ask for speech: %w", err)
	}
	return s.client.Sound(ctx, remote.Request{
		Method: http.MethodPost, Path: "audio/speech", ContentType: "application/json", Body: body,
	}, media.PCM(text, s.o.Rate), out)
}
