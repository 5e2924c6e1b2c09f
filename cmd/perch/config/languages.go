package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"perch/agent/reflex"
	"perch/language"
)

// Languages are those of a household, the usual one first: "de", or "en, de".
type Languages string

// UnmarshalYAML takes one language or a list.
func (l *Languages) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = Languages(n.Value)
		return nil
	}
	var all []string
	if err := n.Decode(&all); err != nil {
		return fmt.Errorf("line %d: language is one such as de, or a list such as [en, de]", n.Line)
	}
	*l = Languages(strings.Join(all, ", "))
	return nil
}

// List are the languages, one by one.
func (l Languages) List() (all []string) {
	for one := range strings.SplitSeq(string(l), ",") {
		all = append(all, strings.TrimSpace(one))
	}
	return all
}

// First is the usual one.
func (l Languages) First() string { return l.List()[0] }

// mostLanguages bounds a household's languages: in each of them sentences are spoken
// ahead.
const mostLanguages = 8

// household checks the household's languages.
func (k *checker) household(c *Config) {
	all := c.Language.List()
	if len(all) > mostLanguages {
		k.fault("language", "%d languages are more than %d", len(all), mostLanguages)
	}
	for i, tag := range all {
		switch {
		case !languageTag.MatchString(tag):
			k.fault("language", "%q is no language such as en or de-AT", tag)
		case slices.Contains(all[:i], tag):
			k.fault("language", "%s is there twice", tag)
		case slices.ContainsFunc(c.Brains, func(b Brain) bool { return b.Kind == "reflex" }):
			if _, err := reflex.Load(tag, ""); err != nil {
				k.fault("language", "%s", err)
			}
		}
	}
}

// ReflexLanguages are the spoken languages that the reflex brain knows, the
// household's first; English where it knows none.
func ReflexLanguages(c *Config) (known []string) {
	for _, tag := range c.spoken() {
		if _, ok := language.Match(tag); ok {
			known = append(known, tag)
		}
	}
	if len(known) == 0 {
		known = []string{ownLanguage}
	}
	return known
}

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
	tags := c.Language.List()
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
		if _, words := language.Match(l); !words {
			all = append(all, Warning{"language",
				fmt.Sprintf("what Perch says by itself is English where people speak %q; its brain answers in it", l)})
		}
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
