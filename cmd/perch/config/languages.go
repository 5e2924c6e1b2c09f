package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"perch/language"
	"perch/voice/openjtalk"
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
		return fmt.Errorf("line %d: cannot unmarshal %s into Languages", n.Line, n.Tag)
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

// languageTag is what a language is called by, in part: BCP 47.
var languageTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`) })

// household checks the household's languages.
func (k *checker) household(c *Config) {
	all := c.Language.List()
	if len(all) > mostLanguages {
		k.fault("language", fmt.Errorf("%d languages are more than %d", len(all), mostLanguages))
	}
	for i, tag := range all {
		switch {
		case !languageTag().MatchString(tag):
			k.fault("language", fmt.Errorf("%q is no language such as en or de-AT", tag))
		case slices.Contains(all[:i], tag):
			k.fault("language", fmt.Errorf("%s is there twice", tag))
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
	c.Speech.Synthesizers = append(Synthesizers{{"openjtalk", &openjtalk.Options{}}}, c.Speech.Synthesizers...)
}

// spoken are the languages in which robots are talked to, without their regions, as far
// as the configuration says.
func (c *Config) spoken() []string {
	tags := c.Language.List()
	if persona, err := Persona(c); err == nil { // one that cannot be read is a fault of its own
		tags = append(tags, persona.Language)
	}
	for _, r := range c.Robots.Each {
		tags = append(tags, r.Language)
	}
	return bases(tags)
}

// bases are languages without their regions, each once.
func bases(tags []string) (all []string) {
	for _, tag := range tags {
		if base, _, _ := strings.Cut(strings.ToLower(tag), "-"); base != "" && !slices.Contains(all, base) {
			all = append(all, base)
		}
	}
	return all
}

// speaks reports whether a synthesizer may know a language. Whether a server does
// turns out when it is asked.
func (e Engine) speaks(language string) bool {
	o, limited := e.Options.(interface{ Speaks(language string) bool })
	return !limited || o.Speaks(language)
}

// hears reports whether a recognizer may know a language.
func (e Engine) hears(language string) bool {
	o, limited := e.Options.(interface{ Hears(language string) bool })
	return !limited || o.Hears(language)
}

// Hears reports whether a recognizer may know a language.
func (c *Config) Hears(tag string) bool {
	return !slices.ContainsFunc(bases([]string{tag}), func(base string) bool {
		return !slices.ContainsFunc(c.Speech.Recognizers, func(e Engine) bool { return e.hears(base) })
	})
}

// unknownLanguages warns of those that no engine knows.
func (c *Config) unknownLanguages() (all []Warning) {
	for _, l := range c.spoken() {
		for _, what := range c.lacks(l) {
			all = append(all, Warning{"language", what})
		}
	}
	return all
}

// Lacks says what is missing for languages that robots are set to, a sentence each with
// its cure. Of those that the configuration names, Warnings tells.
func (c *Config) Lacks(tags ...string) (all []string) {
	for _, l := range bases(tags) {
		if what := c.lacks(l); len(what) > 0 && !slices.Contains(c.spoken(), l) {
			all = append(all, what...)
		}
	}
	return all
}

// lacks is what is missing for one.
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

// wordless says what is English, and what brains do, with a language that Perch has no words for.
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
