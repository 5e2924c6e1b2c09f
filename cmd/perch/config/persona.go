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

// PersonaFile reads the persona of one robot, which the configuration file names
// by its path. What a persona asks of a model is of the engine that all share.
func PersonaFile(path string) (agent.Persona, error) {
	if PersonaName().MatchString(path) {
		return agent.Persona{}, fmt.Errorf("%q is no path of a file such as /etc/perch/cook.md", path)
	}
	return RobotPersona(path)
}

// RobotPersona reads a persona for one robot. It may not choose a brain.
func RobotPersona(path string) (agent.Persona, error) {
	p, err := agent.LoadPersona(path)
	if err == nil && p.Brain != (agent.BrainOptions{}) {
		err = fmt.Errorf("%s: brain has no effect in a persona of one robot; name one of brains in the robot's brain", path)
	}
	return p, err
}

// Persona is who the robot is: a file, or a name alone.
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

// Speech returns the language that robots are spoken to in: the persona's, or else the household's.
func Speech(c *Config) (voice.Options, error) {
	persona, err := Persona(c)
	if err != nil {
		return voice.Options{}, err
	}
	return voice.Options{Language: cmp.Or(persona.Language, c.Language.First())}, nil
}

// ownLanguage is the language of the appliance's sentences if they exist in no other.
const ownLanguage = "en"

// spoken returns the languages that robots are spoken to in, without regions, as far as the
// configuration tells.
func (c *Config) spoken() []string {
	tags := c.Language.List()
	if persona, err := Persona(c); err == nil { // check reports one that cannot be read
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

// Book is the reflex brain's book, whose sentences the embedded recognizer
// listens for: of the household's first language that it speaks, or English.
func Book(c *Config) (*reflex.Book, error) {
	books, err := Books(c)
	if err != nil {
		return nil, err
	}
	return books[0], nil
}

// Books are those of all its languages, that book first.
func Books(c *Config) ([]*reflex.Book, error) {
	books, err := reflex.LoadEach(ReflexLanguages(c), Sentences(c))
	if err != nil {
		return nil, fmt.Errorf("read the reflex brain's sentences: %w", err)
	}
	return books, nil
}

// Sentences is the file of the owner's own sentences in these books, or empty.
func Sentences(c *Config) (own string) {
	for _, b := range c.Brains {
		if b.Kind == "reflex" {
			own = driver.Value[string](b.Options, "sentences")
		}
	}
	return own
}

// Patience is how long a session waits for the slowest of the brains: longer
// than that brain's driver does, which knows better what is wrong.
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
