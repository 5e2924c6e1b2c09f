package appliance

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"perch/agent"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/gateway/robot"
	"perch/voice"
)

// characters are what single robots have of their own.
type characters struct {
	config  *config.Config
	robots  *device.Registry
	data    string
	common  robot.Character // of a robot without anything
	persona agent.Persona   // the household's

	mu       sync.RWMutex
	personas map[string]agent.Persona // as settings call them
}

// newCharacters reads the personas of robots. One that is stored and cannot be
// read is logged, and the household's is used instead.
func newCharacters(c *config.Config, robots *device.Registry, data string, log *slog.Logger) (*characters, error) {
	speech, err := config.Speech(c)
	if err != nil {
		return nil, err
	}
	person, err := config.Persona(c)
	if err != nil {
		return nil, err
	}
	k := &characters{config: c, robots: robots, data: data, common: robot.Character{Speech: speech}, persona: person,
		personas: map[string]agent.Persona{}}
	fixed := map[device.ID]device.Settings{}
	for i, r := range c.Robots.Each {
		id, err := device.ParseID(r.Robot)
		if err != nil {
			return nil, fmt.Errorf("robots.each.%d.robot: %w", i, err)
		}
		fixed[id] = r.Settings()
		if r.Persona == "" {
			continue
		}
		if k.personas[r.Persona], err = config.PersonaFile(r.Persona); err != nil {
			return nil, fmt.Errorf("robots.each.%d.persona: %w", i, err)
		}
	}
	for _, hidden := range robots.Fix(fixed) {
		log.Warn("a robot's name is used by another robot in the configuration file and is not applied; choose another with perch robot rename",
			"robot", hidden.ID, "name", hidden.Settings.Name)
	}
	for _, r := range robots.List() {
		if name := r.Settings.Persona; name != "" {
			if _, read := k.personas[name]; !read {
				if err := k.read(name); err != nil {
					log.Warn("a robot's persona cannot be read; the household's is used", "robot", r.ID, "name", name, "err", err)
				}
			}
		}
		for _, u := range c.Unfit(r.Settings, CheckPart) {
			log.Warn("the engines do not support a robot's setting; change it with perch robot set", "robot", r.ID, "key", u.Key, "err", u.Err)
		}
	}
	return k, nil
}

// directory holds the personas that commands name.
func (k *characters) directory() string { return filepath.Join(k.data, "personas") }

// read takes over a persona of the directory.
func (k *characters) read(name string) error {
	if !config.PersonaName.MatchString(name) {
		return fmt.Errorf("a persona is the name of a file in %s, such as cook for cook.md, and has letters, digits, - and _", k.directory())
	}
	p, err := config.RobotPersona(filepath.Join(k.directory(), name+".md"))
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
	for _, u := range k.config.Unfit(s, CheckPart) {
		return fmt.Errorf("%w: %s: %w", device.ErrSetting, u.Key, u.Err)
	}
	if s.Persona == "" {
		return nil
	}
	if err := k.read(s.Persona); err != nil {
		return fmt.Errorf("%w: persona: %w", device.ErrSetting, err)
	}
	return nil
}

// Of is what a robot has of its own. It does not block.
func (k *characters) Of(id device.ID) robot.Character {
	s, c := k.robots.Settings(id), k.common
	if s == (device.Settings{}) {
		return c
	}
	c.Name, c.Brain = s.Name, s.Brain
	k.mu.RLock()
	own, has := k.personas[s.Persona]
	k.mu.RUnlock()
	c.Speech = voice.Options{Language: cmp.Or(s.Language, own.Language, c.Speech.Language), Voice: cmp.Or(s.Voice, own.Voice)}
	if !has {
		own = k.persona
	}
	if has || s.Language != "" {
		own.Language = cmp.Or(s.Language, own.Language)
		c.Persona = &own
	}
	return c
}

// Complete sets the name, persona and brain of a robot's turn.
func (k *characters) Complete(t *agent.Turn) {
	own := k.Of(t.Robot)
	t.Name, t.Persona, t.Brain = own.Name, own.Persona, own.Brain
	if own.Persona != nil {
		t.Language = own.Speech.Language
	}
}

// Who is the id of the character that acts in a session: a robot's own, or that of the
// skin's talk. It does not block.
func (k *characters) Who(id device.ID, _ string) string {
	if id == "" {
		return agent.DefaultCharacter
	}
	return cmp.Or(k.robots.Settings(id).Persona, agent.DefaultCharacter)
}
