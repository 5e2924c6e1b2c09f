package appliance

import (
	"fmt"
	"os"

	"perch/cmd/perch/config"
	"perch/gateway/aituber"
	"perch/gateway/llmvtuber"
	"perch/voice"
)

// newAvatars makes the doors of avatar programs that have protocols of their own.
func (a *Appliance) newAvatars() error {
	o, err := a.avatarOptions(a.Config(), a.engines.get(), a.Characters.Speech())
	if err != nil {
		return err
	}
	a.llmvtuber = llmvtuber.New(o)
	a.aituber = aituber.New(aituber.Options{Feed: a.feed, Chat: a.skins, Words: a.words, Log: a.Log})
	return nil
}

// avatarOptions are those of programs that speak by themselves.
func (a *Appliance) avatarOptions(c *config.Config, e *engines, speech voice.Options) (llmvtuber.Options, error) {
	o := llmvtuber.Options{Feed: a.feed, Chat: a.skins, Words: a.words, Name: c.Persona.Name, Speech: speech, Hold: e.hold,
		Loudness: &a.loudness, Log: a.Log}
	if file := c.Skins.Model; file != "" {
		model, err := readModel(file)
		if err != nil {
			return o, fmt.Errorf("skins.live2d_model: %w", err)
		}
		o.Model = model
	}
	if len(e.recognizers) > 0 {
		o.Recognizer = e.recognizers
	}
	if len(e.synthesizers) > 0 {
		o.Synthesizer = e.synthesizers
	}
	return o, nil
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
