package config

import (
	"fmt"
	"slices"
	"strings"
)

// languages has Japanese spoken by what can read it, where no synthesizer was chosen.
func (k *checker) languages(c *Config) {
	_, written := k.lines["speech.synthesizers"]
	if written || len(k.under("speech.synthesizers")) > 0 || !slices.Contains(c.spoken(), "ja") {
		return
	}
	c.Speech.Synthesizers = append([]Synthesizer{{Kind: "openjtalk"}}, c.Speech.Synthesizers...)
}

// spoken are the languages in which robots are talked to, without their regions.
func (c *Config) spoken() (all []string) {
	tags := []string{c.Language}
	if persona, err := Persona(c); err == nil { // one that cannot be read is a fault of its own
		tags = append(tags, persona.Language)
	}
	for _, r := range c.Robots.Each {
		tags = append(tags, r.Language)
	}
	for _, tag := range tags {
		if base, _, _ := strings.Cut(strings.ToLower(tag), "-"); base != "" && !slices.Contains(all, base) {
			all = append(all, base)
		}
	}
	return all
}

// speaks reports whether a synthesizer may know a language. Whether a server does
// turns out when it is asked. espeak reads of Japanese only kana.
func (s Synthesizer) speaks(language string) bool {
	switch s.Kind {
	case "openjtalk":
		return language == "ja"
	case "espeak":
		return language != "ja"
	}
	return true
}

// hears is the same of a recognizer.
func (r Recognizer) hears(language string) bool { return r.Kind != "sphinx" || language == "en" }

// unknownLanguages warns of those that no engine knows.
func (c *Config) unknownLanguages() (all []Warning) {
	for _, l := range c.spoken() {
		if !slices.ContainsFunc(c.Speech.Recognizers, func(r Recognizer) bool { return r.hears(l) }) {
			all = append(all, Warning{"language", fmt.Sprintf("no recognizer hears %q: sphinx knows English alone; "+
				"add one of kind wyoming to speech.recognizers, such as faster-whisper: docs/how-to/whisper-and-piper.md", l)})
		}
		if slices.ContainsFunc(c.Speech.Synthesizers, func(s Synthesizer) bool { return s.speaks(l) }) {
			continue
		}
		why, cure := "openjtalk speaks Japanese alone", "{kind: espeak}"
		if l == "ja" {
			why, cure = "espeak cannot read kanji", "{kind: openjtalk}, before espeak"
		}
		all = append(all, Warning{"language", fmt.Sprintf("no synthesizer speaks %q: %s; add %s to speech.synthesizers", l, why, cure)})
	}
	return all
}
