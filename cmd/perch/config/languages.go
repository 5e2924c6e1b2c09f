package config

import (
	"fmt"
	"slices"

	"perch/language"
)

// Hears reports whether one of the configured recognizers may support a language.
func (c *Config) Hears(tag string) bool {
	return !slices.ContainsFunc(bases([]string{tag}), func(base string) bool {
		return !slices.ContainsFunc(c.Speech.Recognizers, func(e Engine) bool { return e.hears(base) })
	})
}

// Unheard returns the languages that people speak and no configured recognizer supports.
func (c *Config) Unheard() []string {
	return slices.DeleteFunc(c.spoken(), c.Hears)
}

// Lacks returns sentences about what is missing for the languages of robots, and how to add it. It skips
// languages that the configuration names, because Warnings covers those.
func (c *Config) Lacks(tags ...string) (sentences []string) {
	for _, l := range bases(tags) {
		if missing := c.missingFor(l); len(missing) > 0 && !slices.Contains(c.spoken(), l) {
			sentences = append(sentences, missing...)
		}
	}
	return sentences
}

// missingFor returns sentences about what is missing for a language, and how to add it.
func (c *Config) missingFor(l string) (sentences []string) {
	if _, hasWords := language.Match(l); !hasWords {
		sentences = append(sentences, c.untranslated(l))
	}
	if !c.Hears(l) {
		sentences = append(sentences, fmt.Sprintf("no recognizer supports %q: sphinx supports only English; "+
			"add one of kind wyoming to speech.recognizers, such as faster-whisper: docs/how-to/whisper-and-piper.md", l))
	}
	if slices.ContainsFunc(c.Speech.Synthesizers, func(e Engine) bool { return e.speaks(l) }) {
		return sentences
	}
	if l == "ja" {
		return append(sentences, fmt.Sprintf(
			"no synthesizer speaks %q: espeak cannot read kanji; add {kind: openjtalk} to speech.synthesizers, before espeak", l))
	}
	return append(sentences, fmt.Sprintf("no synthesizer speaks %q: openjtalk speaks only Japanese; add {kind: espeak} to speech.synthesizers", l))
}

// untranslated returns a sentence about a language into which Perch is not translated: which texts are
// English, and which brains reply in the language.
func (c *Config) untranslated(l string) string {
	reflex := slices.ContainsFunc(c.Brains, func(b Engine) bool { return b.Kind == "reflex" })
	others := slices.ContainsFunc(c.Brains, func(b Engine) bool { return b.Kind != "reflex" && b.Kind != "none" })
	switch {
	case reflex && others:
		return fmt.Sprintf("what Perch says by itself is English where people speak %q, and so are the sentences of the reflex brain; "+
			"its other brains answer in it", l)
	case reflex:
		return fmt.Sprintf("what Perch says by itself is English where people speak %q, and so are the sentences of the reflex brain; "+
			"add a language model to brains, which answers in it: docs/how-to/ollama.md", l)
	}
	return fmt.Sprintf("what Perch says by itself is English where people speak %q; its brain answers in it", l)
}
