package engines

import (
	"log/slog"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/voice"
)

// voiceSetup returns the setup of recognizers and synthesizers. name is the voice for a synthesizer, or ""
// for the voice in its options.
func (e *Set) voiceSetup(name string, log *slog.Logger) drivers.Voice {
	return drivers.Voice{Setup: voice.Setup{Language: e.language, Voice: name, Log: log}, Book: e.Book, FindWyoming: e.findWyoming}
}

func (e *Set) addRecognizers(c *config.Config, log *slog.Logger) error {
	setup := e.voiceSetup("", log)
	for _, r := range c.Speech.Recognizers {
		engine, err := drivers.Recognizers().New(r.Kind, r.Options, setup)
		if err != nil {
			return err
		}
		n := e.addConfigured("recognizer", r, engine, log)
		n.Recognizer = engine
		e.Recognizers = append(e.Recognizers, watchedRecognizer{engine, n.condition, false})
	}
	return nil
}

// addSynthesizers makes the synthesizers. name is the persona's voice, which the first engine of the
// list is expected to have; the others use their default voices.
func (e *Set) addSynthesizers(c *config.Config, name string, log *slog.Logger) error {
	setup := e.voiceSetup(name, log)
	for _, s := range c.Speech.Synthesizers {
		engine, err := drivers.Synthesizers().New(s.Kind, s.Options, setup)
		if err != nil {
			return err
		}
		n := e.addConfigured("synthesizer", s, engine, log)
		n.Synthesizer = engine
		e.Synthesizers = append(e.Synthesizers, watchedSynthesizer{engine, n.condition, false})
		setup.Voice = ""
	}
	return nil
}
