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

// PersonaFile reads the persona of a robot from a path in the configuration. It refuses a bare name, such
// as cook.
func PersonaFile(path string) (agent.Persona, error) {
	if PersonaName().MatchString(path) {
		return agent.Persona{}, fmt.Errorf("%q is not the path of a file such as /etc/perch/cook.md", path)
	}
	return RobotPersona(path)
}

// RobotPersona reads the persona of a robot from a file. It refuses options for the brain, because all
// robots share the engines.
func RobotPersona(path string) (agent.Persona, error) {
	p, err := agent.LoadPersona(path)
	if err == nil && p.Brain != (agent.BrainOptions{}) {
		err = fmt.Errorf("%s: brain has no effect in the persona of one robot; set the robot's brain to one of brains", path)
	}
	return p, err
}

// Persona returns the persona of robots without settings: from the file that the key persona.file names, or
// else the default one. If the file gives no name, or no file is configured, the name is the key persona.name.
func Persona(c *Config) (agent.Persona, error) {
	persona := agent.DefaultPersona()
	if c.Persona.File != "" {
		loaded, err := agent.LoadPersona(c.Persona.File)
		if err != nil {
			return persona, err
		}
		persona = loaded
	}
	if persona.Name == "" || c.Persona.File == "" {
		persona.Name = c.Persona.Name
	}
	return persona, nil
}

// Speech returns the voice options of robots without settings. Only the language is set: the persona's, or else
// the first one of the key language.
func Speech(c *Config) (voice.Options, error) {
	persona, err := Persona(c)
	if err != nil {
		return voice.Options{}, err
	}
	return voice.Options{Language: cmp.Or(persona.Language, c.Language.First())}, nil
}

// fallbackLanguage is the language of the appliance's own sentences if they are not translated into
// any spoken language.
const fallbackLanguage = "en"

// spoken returns the spoken languages: those that the configuration names for robots, without regions. The
// languages of the key language come first.
func (c *Config) spoken() []string {
	tags := c.Language.List()
	if persona, err := Persona(c); err == nil { // check reports the error
		tags = append(tags, persona.Language)
	}
	for _, r := range c.Robots.Each {
		tags = append(tags, r.Language)
	}
	return bases(tags)
}

// bases returns language tags in lower case, without their regions and without duplicates.
func bases(tags []string) (bases []string) {
	for _, tag := range tags {
		if base, _, _ := strings.Cut(strings.ToLower(tag), "-"); base != "" && !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
	}
	return bases
}

// ReflexLanguages returns the spoken languages that the reflex brain, which answers a fixed set of
// sentences, supports. The languages of the key language come first. If the brain supports none of the
// spoken languages, the result is English.
func ReflexLanguages(c *Config) (tags []string) {
	for _, tag := range c.spoken() {
		if _, ok := language.Match(tag); ok {
			tags = append(tags, tag)
		}
	}
	if len(tags) == 0 {
		tags = []string{fallbackLanguage}
	}
	return tags
}

// Book returns the reflex brain's book of sentences in the first of ReflexLanguages. The embedded
// recognizer understands the sentences of this book.
func Book(c *Config) (*reflex.Book, error) {
	books, err := Books(c)
	if err != nil {
		return nil, err
	}
	return books[0], nil
}

// Books returns the reflex brain's books in all ReflexLanguages.
func Books(c *Config) ([]*reflex.Book, error) {
	books, err := reflex.LoadEach(ReflexLanguages(c), Sentences(c))
	if err != nil {
		return nil, fmt.Errorf("read the reflex brain's sentences: %w", err)
	}
	return books, nil
}

// Sentences returns the path of the file with the owner's sentences for the books, or "".
func Sentences(c *Config) (path string) {
	for _, b := range c.Brains {
		if b.Kind == "reflex" {
			path = driver.Value[string](b.Options, "sentences")
		}
	}
	return path
}

// Patience returns how long a session waits for a brain that sends nothing: three minutes, or ten seconds more than the
// longest timeout of a configured brain, if that is longer. The brain must give up before the session,
// because the brain's error is more informative.
func (c *Config) Patience() time.Duration {
	patience := 3 * time.Minute
	for _, b := range c.Brains {
		timeout := driver.Value[time.Duration](b.Options, "within")
		if o, ok := b.Options.(interface{ Patience() time.Duration }); ok {
			timeout = o.Patience()
		}
		patience = max(patience, timeout+10*time.Second)
	}
	return patience
}
