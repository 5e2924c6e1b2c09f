package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"perch/agent"
	"perch/agent/reflex"
	"perch/device"
	"perch/gateway/robot"
	"perch/voice"
)

// robotConfig is what one robot has of its own.
type robotConfig struct {
	Robot    string `yaml:"robot"` // its MAC address
	Name     string `yaml:"name"`
	Persona  string `yaml:"persona"` // a file
	Voice    string `yaml:"voice"`
	Brain    string `yaml:"brain"`
	Language string `yaml:"language"`
}

func (r robotConfig) settings() device.Settings {
	return device.Settings{Name: r.Name, Persona: r.Persona, Voice: r.Voice, Brain: r.Brain, Language: r.Language}
}

// find is the robot that the configuration means, by its MAC address or by a
// name that stands in the same file.
func (c *config) find(robot string) (device.ID, error) {
	for _, r := range c.Robots.Each {
		if id, err := device.ParseID(r.Robot); err == nil && r.Name != "" && strings.EqualFold(r.Name, strings.TrimSpace(robot)) {
			return id, nil
		}
	}
	return device.ParseID(robot)
}

// robots finds what cannot be meant for single robots.
func (k *checker) robots(c *config) {
	ids, names := map[device.ID]bool{}, map[string]device.ID{}
	for i, r := range c.Robots.Each {
		at := fmt.Sprintf("robots.each.%d", i)
		id, err := device.ParseID(r.Robot)
		switch {
		case err != nil:
			k.fault(at+".robot", "%s", err)
		case ids[id]:
			k.fault(at+".robot", "%s stands here twice", id)
		}
		ids[id] = true
		if r.Name != "" {
			name, err := device.CheckName(r.Name)
			if holder, taken := names[strings.ToLower(name)]; err == nil && taken {
				err = fmt.Errorf("%q is the name of %s already", name, holder)
			}
			if err == nil && name != r.Name {
				err = fmt.Errorf("a name has single spaces, and none around it: %q", name)
			}
			if err != nil {
				k.fault(at+".name", "%s", err)
			}
			names[strings.ToLower(name)] = id
		}
		for _, u := range c.unfit(r.settings()) {
			k.fault(at+"."+u.key, "%s", u.err)
		}
		if r.Persona != "" {
			if _, err := personaFile(r.Persona); err != nil {
				k.fault(at+".persona", "%s", err)
			}
		}
	}
}

// unfit is a setting that the engines cannot follow.
type unfit struct {
	key string
	err error
}

// unfit finds what of a robot's settings the engines cannot follow, as far as
// they know without being asked. The persona is looked at where it is read.
func (c *config) unfit(s device.Settings) (all []unfit) {
	refuse := func(key, format string, args ...any) { all = append(all, unfit{key, fmt.Errorf(format, args...)}) }
	if brains := c.brainNames(); s.Brain != "" && !slices.Contains(brains, s.Brain) {
		refuse("brain", "there is no brain %q; there are %s", s.Brain, strings.Join(brains, ", "))
	}
	if s.Voice != "" && len(c.Speech.Synthesizers) > 0 {
		first := c.Speech.Synthesizers[0]
		first.Voice = s.Voice
		e := &engines{}
		if err := e.addMouth(first, slog.New(slog.DiscardHandler)); err != nil {
			refuse("voice", "%s", err)
		}
		e.close()
	}
	if s.Language == "" {
		return all
	}
	if !languageTag.MatchString(s.Language) {
		refuse("language", "%q is no language such as en or de-AT", s.Language)
		return all
	}
	if base(s.Language) != ownLanguage && !slices.ContainsFunc(c.Speech.Recognizers, func(r recognizerConfig) bool { return r.Kind != "sphinx" }) {
		refuse("language", "no recognizer hears %q: sphinx knows English alone; add another to speech.recognizers", s.Language)
	}
	others := slices.ContainsFunc(c.Brains, func(b brainConfig) bool { return b.Kind != "reflex" })
	if _, err := reflex.Load(s.Language, ""); err != nil && (!others || s.Brain == "reflex") {
		refuse("language", "%s; add another brain to brains", err)
	}
	return all
}

// base is a language without its region.
func base(tag string) string {
	first, _, _ := strings.Cut(strings.ToLower(tag), "-")
	return first
}

// brainNames are the brains as a robot's setting names them: by their kind, the
// second of a kind "openai 2".
func (c *config) brainNames() (names []string) {
	of := map[string]int{}
	for _, b := range c.Brains {
		name := b.Kind
		if of[b.Kind]++; of[b.Kind] > 1 {
			name = fmt.Sprintf("%s %d", b.Kind, of[b.Kind])
		}
		names = append(names, name)
	}
	return names
}

// personaFile reads the persona of one robot, which the configuration file names
// by its path. What a persona asks of a model is of the engine that all share.
func personaFile(path string) (agent.Persona, error) {
	if personaName.MatchString(path) {
		return agent.Persona{}, fmt.Errorf("%q is no path of a file such as /etc/perch/cook.md", path)
	}
	return ownPersona(path)
}

func ownPersona(path string) (agent.Persona, error) {
	p, err := agent.LoadPersona(path)
	if err == nil && p.Brain != (agent.BrainOptions{}) {
		err = fmt.Errorf("%s: brain has no effect in a persona of one robot; name one of brains in the robot's brain", path)
	}
	return p, err
}

// personaName is how an owner's command names a persona: a file of the directory
// personas, and no other that the appliance may read.
var personaName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// characters are what single robots have of their own.
type characters struct {
	config *config
	robots *device.Registry
	data   string
	house  robot.Character // of a robot without anything
	person agent.Persona   // the household's

	mu       sync.RWMutex
	personas map[string]agent.Persona // as settings call them
}

// newCharacters reads the personas of robots. One that is stored and cannot be
// read is told of, and the household's takes its place.
func newCharacters(c *config, robots *device.Registry, data string, log *slog.Logger) (*characters, error) {
	speech, err := speechOf(c)
	if err != nil {
		return nil, err
	}
	person, err := personaOf(c)
	if err != nil {
		return nil, err
	}
	k := &characters{config: c, robots: robots, data: data, house: robot.Character{Speech: speech}, person: person, personas: map[string]agent.Persona{}}
	fixed := map[device.ID]device.Settings{}
	for i, r := range c.Robots.Each {
		id, err := device.ParseID(r.Robot)
		if err != nil {
			return nil, fmt.Errorf("robots.each.%d.robot: %w", i, err)
		}
		fixed[id] = r.settings()
		if r.Persona == "" {
			continue
		}
		if k.personas[r.Persona], err = personaFile(r.Persona); err != nil {
			return nil, fmt.Errorf("robots.each.%d.persona: %w", i, err)
		}
	}
	for _, hidden := range robots.Fix(fixed) {
		log.Warn("a robot's name is another's in the configuration file, so that it has none; perch robot rename gives it another", "robot", hidden.ID, "name", hidden.Settings.Name)
	}
	for _, r := range robots.List() {
		if name := r.Settings.Persona; name != "" {
			if _, read := k.personas[name]; !read {
				if err := k.read(name); err != nil {
					log.Warn("a robot's persona cannot be read, so that it has the household's", "robot", r.ID, "name", name, "err", err)
				}
			}
		}
		for _, u := range c.unfit(r.Settings) {
			log.Warn("a robot's setting is none that the engines can follow; perch robot set changes it", "robot", r.ID, "key", u.key, "err", u.err)
		}
	}
	return k, nil
}

// directory holds the personas that commands name.
func (k *characters) directory() string { return filepath.Join(k.data, "personas") }

// read takes over a persona of the directory.
func (k *characters) read(name string) error {
	if !personaName.MatchString(name) {
		return fmt.Errorf("a persona is the name of a file in %s, such as cook for cook.md, and has letters, digits, - and _", k.directory())
	}
	p, err := ownPersona(filepath.Join(k.directory(), name+".md"))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no persona %q: put it into %s", name, filepath.Join(k.directory(), name+".md"))
	}
	if err == nil {
		k.mu.Lock()
		k.personas[name] = p
		k.mu.Unlock()
	}
	return err
}

// check refuses a change that nothing could come of.
func (k *characters) check(c device.Change) error {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return strings.TrimSpace(*s)
	}
	s := device.Settings{Persona: text(c.Persona), Voice: text(c.Voice), Brain: text(c.Brain), Language: text(c.Language)}
	for _, u := range k.config.unfit(s) {
		return fmt.Errorf("%w: %s: %w", device.ErrSetting, u.key, u.err)
	}
	if s.Persona == "" {
		return nil
	}
	if err := k.read(s.Persona); err != nil {
		return fmt.Errorf("%w: persona: %w", device.ErrSetting, err)
	}
	return nil
}

// of is what a robot has of its own. It waits for nobody.
func (k *characters) of(id device.ID) robot.Character {
	s, c := k.robots.Settings(id), k.house
	if s == (device.Settings{}) {
		return c
	}
	c.Name, c.Brain = s.Name, s.Brain
	k.mu.RLock()
	own, has := k.personas[s.Persona]
	k.mu.RUnlock()
	c.Speech = voice.Options{Language: cmp.Or(s.Language, own.Language, c.Speech.Language), Voice: cmp.Or(s.Voice, own.Voice)}
	if !has {
		own = k.person
	}
	if has || s.Language != "" {
		own.Language = cmp.Or(s.Language, own.Language)
		c.Persona = &own
	}
	return c
}

// complete tells a robot's turn who answers it.
func (k *characters) complete(t *agent.Turn) {
	own := k.of(t.Robot)
	t.Name, t.Persona, t.Brain = own.Name, own.Persona, own.Brain
	if own.Persona != nil {
		t.Language = own.Speech.Language
	}
}
