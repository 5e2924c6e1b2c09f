package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/reflex"
	"perch/driver"
	"perch/language"
	"perch/voice"
)

// PersonaFile reads a persona that the configuration names for a robot, by its path.
func PersonaFile(path string) (agent.Persona, error) {
	if PersonaName().MatchString(path) {
		return agent.Persona{}, fmt.Errorf("%q is no path of a file such as /etc/perch/cook.md", path)
	}
	return RobotPersona(path)
}

// RobotPersona reads a persona for a robot, which may not have options for the brain: all robots
// share the engines.
func RobotPersona(path string) (agent.Persona, error) {
	p, err := agent.LoadPersona(path)
	if err == nil && p.Brain != (agent.BrainOptions{}) {
		err = fmt.Errorf("%s: brain has no effect in a persona of one robot; name one of brains in the robot's brain", path)
	}
	return p, err
}

// Persona returns the household's persona: of a file, or the default one with a name.
func Persona(c *Config) (agent.Persona, error) {
	persona := agent.DefaultPersona()
	if c.Persona.File != "" {
		read, err := agent.LoadPersona(c.Persona.File)
		if err != nil {
			return persona, err
		}
		persona = read
	}
	if persona.Name == "" || c.Persona.File == "" {
		persona.Name = c.Persona.Name
	}
	return persona, nil
}

// Speech returns the language of robots: the persona's, or else the household's.
func Speech(c *Config) (voice.Options, error) {
	persona, err := Persona(c)
	if err != nil {
		return voice.Options{}, err
	}
	return voice.Options{Language: cmp.Or(persona.Language, c.Language.First())}, nil
}

// ownLanguage is the language of the appliance's sentences if no other is known.
const ownLanguage = "en"

// spoken returns the languages of robots by the configuration, without regions.
func (c *Config) spoken() []string {
	tags := c.Language.List()
	if persona, err := Persona(c); err == nil { // check reports a persona that cannot be read
		tags = append(tags, persona.Language)
	}
	for _, r := range c.Robots.Each {
		tags = append(tags, r.Language)
	}
	return bases(tags)
}

// bases returns languages without their regions, each once.
func bases(tags []string) (all []string) {
	for _, tag := range tags {
		if base, _, _ := strings.Cut(strings.ToLower(tag), "-"); base != "" && !slices.Contains(all, base) {
			all = append(all, base)
		}
	}
	return all
}

// ReflexLanguages returns the spoken languages that the reflex brain knows, the household's first, or
// English if it knows none of them.
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

// Book returns the reflex brain's book of the first of ReflexLanguages. The embedded recognizer knows
// its sentences.
func Book(c *Config) (*reflex.Book, error) {
	books, err := Books(c)
	if err != nil {
		return nil, err
	}
	return books[0], nil
}

// Books returns the books of all ReflexLanguages, in their order.
func Books(c *Config) ([]*reflex.Book, error) {
	books, err := reflex.LoadEach(ReflexLanguages(c), Sentences(c))
	if err != nil {
		return nil, fmt.Errorf("read the reflex brain's sentences: %w", err)
	}
	return books, nil
}

// Sentences returns the path of the file with the owner's sentences for the books, or "".
func Sentences(c *Config) (own string) {
	for _, b := range c.Brains {
		if b.Kind == "reflex" {
			own = driver.Value[string](b.Options, "sentences")
		}
	}
	return own
}

// Patience returns how long a session waits for a brain: longer than the driver of the slowest one,
// whose error says what is wrong.
func (c *Config) Patience() time.Duration {
	longest := 3 * time.Minute
	for _, b := range c.Brains {
		own := driver.Value[time.Duration](b.Options, "within")
		if o, is := b.Options.(interface{ Patience() time.Duration }); is {
			own = o.Patience()
		}
		longest = max(longest, own+10*time.Second)
	}
	return longest
}
