package engines

import (
	"log/slog"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/voice"
)

// addRecognizers makes the recognizers.
func (e *Set) addRecognizers(c *config.Config, log *slog.Logger) error {
	setup := drivers.Voice{Setup: voice.Setup{Language: e.language, Log: log}, Book: e.Book, FindWyoming: e.findWyoming}
	for _, r := range c.Speech.Recognizers {
		made, err := drivers.Recognizers().New(r.Kind, r.Options, setup)
		if err != nil {
			return err
		}
		n := e.addMade("recognizer", r, made, log)
		n.Recognizer = made
		e.Recognizers = append(e.Recognizers, watchedRecognizer{made, n.condition})
	}
	return nil
}

// addSynthesizers makes the synthesizers, the first of them with the persona's voice. The others
// know it by no such name.
func (e *Set) addSynthesizers(c *config.Config, name string, log *slog.Logger) error {
	setup := drivers.Voice{Setup: voice.Setup{Language: e.language, Log: log}, Book: e.Book, FindWyoming: e.findWyoming}
	setup.Voice = name
	for _, s := range c.Speech.Synthesizers {
		made, err := drivers.Synthesizers().New(s.Kind, s.Options, setup)
		if err != nil {
			return err
		}
		n := e.addMade("synthesizer", s, made, log)
		n.Synthesizer = made
		e.Synthesizers = append(e.Synthesizers, watchedSynthesizer{made, n.condition})
		setup.Voice = ""
	}
	return nil
}
