package engines

import (
	"log/slog"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/voice"
)

func (e *Set) voiceSetup(name string, log *slog.Logger) drivers.Voice {
	return drivers.Voice{Setup: voice.Setup{Language: e.language, Voice: name, Log: log}, Book: e.Book, FindWyoming: e.findWyoming}
}

// addRecognizers makes the recognizers.
func (e *Set) addRecognizers(c *config.Config, log *slog.Logger) error {
	setup := e.voiceSetup("", log)
	for _, r := range c.Speech.Recognizers {
		made, err := drivers.Recognizers().New(r.Kind, r.Options, setup)
		if err != nil {
			return err
		}
		n := e.addMade("recognizer", r, made, log)
		n.Recognizer = made
		e.Recognizers = append(e.Recognizers, watchedRecognizer{made, n.condition, false})
	}
	return nil
}

// addSynthesizers makes the synthesizers, the first of them with the persona's voice, whose name is
// one of that engine's.
func (e *Set) addSynthesizers(c *config.Config, name string, log *slog.Logger) error {
	setup := e.voiceSetup(name, log)
	for _, s := range c.Speech.Synthesizers {
		made, err := drivers.Synthesizers().New(s.Kind, s.Options, setup)
		if err != nil {
			return err
		}
		n := e.addMade("synthesizer", s, made, log)
		n.Synthesizer = made
		e.Synthesizers = append(e.Synthesizers, watchedSynthesizer{made, n.condition, false})
		setup.Voice = ""
	}
	return nil
}
