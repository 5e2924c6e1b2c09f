package appliance

import (
	"fmt"
	"os"

	"perch/cmd/perch/config"
	"perch/gateway/aituber"
	"perch/gateway/llmvtuber"
)

// newAvatars makes the doors of avatar programs that have protocols of their own.
func (a *Appliance) newAvatars() error {
	o := llmvtuber.Options{Feed: a.feed, Chat: a.skins, Words: a.words, Name: a.Config.Persona.Name, Speech: a.Characters.common.Speech,
		Loudness: &a.loudness, Log: a.Log}
	if file := a.Config.Skins.Model; file != "" {
		model, err := readModel(file)
		if err != nil {
			return fmt.Errorf("skins.live2d_model: %w", err)
		}
		o.Model = model
	}
	if len(a.Engines.recognizers) > 0 {
		o.Recognizer = a.Engines.recognizers
	}
	if len(a.Engines.synthesizers) > 0 {
		o.Synthesizer = a.Engines.synthesizers
	}
	a.llmvtuber = llmvtuber.New(o)
	a.aituber = aituber.New(aituber.Options{Feed: a.feed, Chat: a.skins, Words: a.words, Log: a.Log})
	return nil
}

// readModel reads the description of a Live2D model.
func readModel(file config.Live2DModel) (*llmvtuber.Model, error) {
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
