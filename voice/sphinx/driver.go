package sphinx

import (
	"cmp"

	"perch/driver"
	"perch/language"
	"perch/voice"
)

// Setup is what a recognizer needs besides its keys.
type Setup struct {
	voice.Setup
	// Grammar returns what is to be recognized, and the locations of sentences that are
	// left out because of their letters.
	Grammar func() (g Grammar, unheard []string)
}

// Keys are the configuration keys of a recognizer of kind sphinx.
type Keys struct {
	Model string `yaml:"model" doc:"The directory of its model. If empty, that of Debian's package pocketsphinx-en-us."`
}

// Driver declares the recognizer sphinx.
func Driver() driver.Driver[Setup, voice.Recognizer] {
	return driver.Driver[Setup, voice.Recognizer]{Kind: "sphinx", Runs: []string{"nothing"}, Sample: `{kind: sphinx, model: ""}`,
		Options: func() any { return new(Keys) },
		Check:   func(any, Setup) error { return nil }, // it needs the whole grammar; see Keys.CheckGrammar
		New: func(keys any, s Setup) (voice.Recognizer, error) {
			g, unheard := s.Grammar()
			s.warn(unheard)
			return New(Options{Model: keys.(*Keys).Model, Grammar: g, Log: s.Log}), nil
		}}
}

// warn logs the household's sentences that the recognizer cannot recognize.
func (s Setup) warn(unheard []string) {
	const mostNamed = 10
	tag, _ := language.Match(s.Language)
	switch {
	case tag != language.English:
		s.Log.Warn("the recognizer sphinx knows English alone and listens for the English sentences; add another to speech.recognizers",
			"language", s.Language)
	case len(unheard) > 0:
		s.Log.Warn("the recognizer sphinx knows English alone and does not listen for sentences in other letters",
			"names", unheard[:min(len(unheard), mostNamed)], "count", len(unheard))
	}
}

// Hears reports whether the recognizer knows a language.
func (*Keys) Hears(language string) bool { return language == "en" }

// CheckGrammar calls Check with the configured model. It is too slow for every start.
func (k *Keys) CheckGrammar(g Grammar) error { return Check(g, cmp.Or(k.Model, Model)) }

// StatusText returns the status text of a working engine.
func (e *Engine) StatusText() string {
	if e.Loaded() {
		return "loaded"
	}
	return "loaded when the first robot comes"
}
