package sphinx

import (
	"cmp"

	"perch/driver"
	"perch/language"
	"perch/voice"
)

// Setup holds what a recognizer needs besides its keys in the configuration.
type Setup struct {
	voice.Setup
	// Grammar returns the grammar, and the file and line of each sentence that the grammar
	// omits because of non-ASCII letters.
	Grammar func() (g Grammar, unheard []string)
}

// Keys are the keys of a recognizer of kind sphinx in the configuration.
type Keys struct {
	Model string `yaml:"model" doc:"The directory of its model. If empty, that of Debian's package pocketsphinx-en-us."`
}

// Driver declares the recognizer sphinx.
func Driver() driver.Driver[Setup, voice.Recognizer] {
	return driver.Driver[Setup, voice.Recognizer]{Kind: "sphinx", Runs: []string{"nothing"},
		Summary: "Understands Perch's own sentences in English, and no others. It runs on this machine.",
		Sample:  `{kind: sphinx, model: ""}`,
		Options: func() any { return new(Keys) },
		Check:   func(any, Setup) error { return nil }, // Keys.CheckGrammar checks the grammar
		New: func(keys any, s Setup) (voice.Recognizer, error) {
			g, unheard := s.Grammar()
			s.logUnheard(unheard)
			return New(Options{Model: keys.(*Keys).Model, Grammar: g, Log: s.Log}), nil
		}}
}

// logUnheard logs a warning if the language of the setup is not English, or if some sentences
// cannot be recognized. unheard is the second result of Setup.Grammar.
func (s Setup) logUnheard(unheard []string) {
	const maxPlaces = 10
	tag, _ := language.Match(s.Language)
	switch {
	case tag != language.English:
		s.Log.Warn("the recognizer sphinx supports only English and listens for the English sentences; add another to speech.recognizers",
			"language", s.Language)
	case len(unheard) > 0:
		s.Log.Warn("the recognizer sphinx supports only English and does not listen for sentences with non-ASCII letters",
			"places", unheard[:min(len(unheard), maxPlaces)], "count", len(unheard))
	}
}

// Hears reports whether the recognizer supports a language.
func (*Keys) Hears(language string) bool { return language == "en" }

// CheckGrammar calls Check with the configured model. It is too slow to be called at every
// start.
func (k *Keys) CheckGrammar(g Grammar) error { return Check(g, cmp.Or(k.Model, Model)) }

// StatusText returns whether the model is loaded, as text for the owner.
func (e *Engine) StatusText() string {
	if e.Loaded() {
		return "loaded"
	}
	return "loaded when a robot comes or listens"
}
