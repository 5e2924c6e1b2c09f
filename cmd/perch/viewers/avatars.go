package viewers

import (
	"fmt"
	"os"

	"perch/cmd/perch/config"
	"perch/gateway/llmvtuber"
	"perch/voice"
)

// Engines are the engines that avatar programs hear and speak with.
type Engines struct {
	Recognizers  voice.Recognizers
	Synthesizers voice.Synthesizers
	Hold         func() (done func()) // keeps them open
	Speech       voice.Options        // the household's
}

// avatarOptions completes the options of programs that have Perch hear and speak for them by what
// a configuration says.
func avatarOptions(o llmvtuber.Options, c *config.Config, e Engines) (llmvtuber.Options, error) {
	o.Name, o.Speech, o.Hold = c.Persona.Name, e.Speech, e.Hold
	if file := c.Skins.Model; file != "" {
		model, err := ReadModel(file)
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

// ReadModel reads the description of a Live2D model.
func ReadModel(file config.Live2DModel) (*llmvtuber.Model, error) {
	text, err := os.ReadFile(string(file))
	if err != nil {
		return nil, err
	}
	model, err := llmvtuber.ReadModel(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return model, nil
}
