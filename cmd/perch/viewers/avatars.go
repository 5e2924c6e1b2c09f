package viewers

import (
	"fmt"

	"perch/cmd/perch/config"
	"perch/cmd/perch/engines"
	"perch/gateway/avatar/llmvtuber"
	"perch/voice"
)

// avatarOptions completes the options of programs that have Perch hear and speak for them by what
// a configuration says.
func avatarOptions(o llmvtuber.Options, c *config.Config, e *engines.Set, speech voice.Options) (llmvtuber.Options, error) {
	o.Name, o.Speech, o.Hold = c.Persona.Name, speech, e.Acquire
	if file := c.Skins.Model; file != "" {
		model, err := file.Read()
		if err != nil {
			return o, fmt.Errorf("skins.live2d_model: %w", err)
		}
		o.Model = model
	}
	if len(e.Recognizers) > 0 {
		o.Recognizer = e.Recognizers
	}
	if len(e.Synthesizers) > 0 {
		o.Synthesizer = e.Synthesizers
	}
	return o, nil
}
