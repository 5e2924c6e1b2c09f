package config

import (
	"fmt"
	"slices"

	"perch/language"
)

// Hears reports whether a recognizer may know a language.
func (c *Config) Hears(tag string) bool {
	return !slices.ContainsFunc(bases([]string{tag}), func(base string) bool {
		return !slices.ContainsFunc(c.Speech.Recognizers, func(e Engine) bool { return e.hears(base) })
	})
}

// Lacks returns a sentence, with its cure, for each thing that is missing for languages that robots
// are set to. Languages that the configuration names are left to Warnings.
func (c *Config) Lacks(tags ...string) (all []string) {
	for _, l := range bases(tags) {
		if missing := c.lacks(l); len(missing) > 0 && !slices.Contains(c.spoken(), l) {
			all = append(all, missing...)
		}
	}
	return all
}

// lacks returns what is missing for a language.
func (c *Config) lacks(l string) (all []string) {
	if _, words := language.Match(l); !words {
		all = append(all, c.wordless(l))
	}
	if !c.Hears(l) {
		all = append(all, fmt.Sprintf("no recognizer hears %q: sphinx knows English alone; "+
			"add one of kind wyoming to speech.recognizers, such as faster-whisper: docs/how-to/whisper-and-piper.md", l))
	}
	if slices.ContainsFunc(c.Speech.Synthesizers, func(e Engine) bool { return e.speaks(l) }) {
		return all
	}
	if l == "ja" {
		return append(all, fmt.Sprintf(
			"no synthesizer speaks %q: espeak cannot read kanji; add {kind: openjtalk}, before espeak to speech.synthesizers", l))
	}
	return append(all, fmt.Sprintf("no synthesizer speaks %q: openjtalk speaks Japanese alone; add {kind: espeak} to speech.synthesizers", l))
}

// wordless says what is English for a language that Perch has no words for, and what brains answer.
func (c *Config) wordless(l string) string {
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
