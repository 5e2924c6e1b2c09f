// Package characters holds the characters of the robots and of skins' talks: their personas, brains,
// voices and languages, from the configuration, from manifests that were imported and from the data
// directory.
package characters

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/manifest"
	"perch/cmd/perch/config"
	"perch/device"
	"perch/gateway/robot"
	"perch/health"
	"perch/language"
	"perch/store"
	"perch/voice"
)

// Characters holds the characters of this appliance, and which of them each robot and each skin's
// talk has.
type Characters struct {
	robots *device.Registry
	data   string // the data directory
	log    *slog.Logger

	mu        sync.RWMutex
	household household
	known     map[string]character // by the name in settings
	sessions  map[string]played    // of skins' talks
}

// household is what the configuration says for all robots.
type household struct {
	config  *config.Config
	common  robot.Character // of a robot without settings
	persona agent.Persona
	fixed   map[device.ID]device.Settings
}

// played is the character of a skin's talk.
type played struct {
	id string
	at time.Time // of its latest turn
}

// character is a character and where it is from.
type character struct {
	config.ResolvedCharacter
	manifest manifest.Manifest // empty for a persona
	from     string
}

// Values of admin.Character.From.
const (
	fromHousehold = "household"
	fromFile      = "configuration"
	fromImport    = "import"
	fromPersonas  = "persona"
)

// Bounds of characters.
const (
	maxImported = 100 // characters
	maxSessions = 500 // talks of skins
	fetchWithin = 5 * time.Second
	sessionLife = 10 * time.Minute // how long a skin's talk uses its character after the latest turn

	// MaxFiles is how many files of a directory are read.
	MaxFiles = 2 * maxImported
)

// New reads the characters of robots. A character that cannot be read is logged, and the household's
// is used instead. They take effect with Replace.
func New(c *config.Config, robots *device.Registry, data string, log *slog.Logger) (*Characters, error) {
	speech, err := config.Speech(c)
	if err != nil {
		return nil, err
	}
	person, err := config.Persona(c)
	if err != nil {
		return nil, err
	}
	k := &Characters{robots: robots, data: data, log: log,
		household: household{config: c, common: robot.Character{Speech: speech}, persona: person},
		known:     map[string]character{}, sessions: map[string]played{}}
	if k.household.fixed, err = k.readFixed(c); err != nil {
		return nil, err
	}
	k.readConfigured(c)
	for id, s := range k.household.fixed { // also of robots that have not come yet
		k.readFor(id, s)
	}
	for _, r := range robots.List() {
		if k.household.fixed[r.ID].Persona == "" {
			k.readFor(r.ID, r.Settings)
		}
	}
	return k, nil
}

// Replace makes the characters of next, which may be k itself, those of the robots.
func (k *Characters) Replace(next *Characters) {
	k.mu.Lock()
	k.household, k.known = next.household, next.known
	h := k.household
	k.mu.Unlock()
	for _, hidden := range k.robots.SetFixed(h.fixed) {
		k.log.Warn("a robot's name is used by another robot in the configuration file and is not applied; choose another with perch robot rename",
			"robot", hidden.ID, "name", hidden.Settings.Name)
	}
	for _, r := range k.robots.List() {
		for _, u := range h.config.Unfit(r.Settings) {
			k.log.Warn("the engines do not support a robot's setting; change it with perch robot set", "robot", r.ID, "key", u.Key, "err", u.Err)
		}
	}
	for _, part := range k.Conditions() {
		k.log.Warn("a part of this appliance does not know a robot's language", "what", part.Note)
	}
}

// configured returns the present configuration of all robots.
func (k *Characters) configured() household {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.household
}

// Speech returns the language and voice of robots without settings.
func (k *Characters) Speech() voice.Options { return k.configured().common.Speech }

// Conditions returns a part that says what the engines lack for the languages that robots are set to,
// or nothing. Languages of the configuration are left to its warnings.
func (k *Characters) Conditions() []health.Part {
	var tags []string
	for _, r := range k.robots.List() {
		if r.Settings.Language != "" {
			tags = append(tags, r.Settings.Language)
		}
	}
	lacks := k.configured().config.Lacks(tags...)
	if len(lacks) == 0 {
		return nil
	}
	return []health.Part{{Name: "language", OK: true, Note: strings.Join(lacks, "; ")}}
}

// readFor reads the character of a robot's settings.
func (k *Characters) readFor(id device.ID, s device.Settings) {
	if _, read := k.named(s.Persona); read || s.Persona == "" {
		return
	}
	if err := k.read(s.Persona); err != nil {
		k.log.Warn("a robot's character cannot be read; the household's is used", "robot", id, "name", s.Persona, "err", err)
	}
}

// readFixed returns the settings of the configuration, and reads their personas.
func (k *Characters) readFixed(c *config.Config) (map[device.ID]device.Settings, error) {
	fixed := map[device.ID]device.Settings{}
	for i, r := range c.Robots.Each {
		id, err := device.ParseID(r.Robot)
		if err != nil {
			return nil, fmt.Errorf("robots.each.%d.robot: %w", i, err)
		}
		fixed[id] = r.Settings()
		if r.Persona == "" || r.Character != "" {
			continue
		}
		p, err := config.PersonaFile(r.Persona)
		if err != nil {
			return nil, fmt.Errorf("robots.each.%d.persona: %w", i, err)
		}
		p.ID = strings.TrimSuffix(filepath.Base(r.Persona), filepath.Ext(r.Persona))
		k.known[r.Persona] = character{ResolvedCharacter: config.ResolvedCharacter{Persona: p}, from: fromFile}
	}
	return fixed, nil
}

// readConfigured reads the characters that the configuration names. What cannot be read or
// fetched is logged; the next start tries again.
func (k *Characters) readConfigured(c *config.Config) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchWithin)
	defer cancel()
	for _, named := range c.Characters {
		m, err := k.load(ctx, named)
		if err != nil {
			k.log.Warn("a character of the configuration cannot be read; robots that have it have the household's", "name", named.Name, "err", err)
			continue
		}
		own := k.cast(named.Name, m, fromFile)
		k.known[named.Name] = own
		for _, text := range own.Remarks {
			k.log.Info("a character does not get all that its manifest asks for", "name", named.Name, "text", text)
		}
	}
}

// load reads a character of the configuration. A remote one is fetched once, and stored.
func (k *Characters) load(ctx context.Context, one config.Character) (manifest.Manifest, error) {
	if !one.Remote() {
		return manifest.Read(ctx, nil, one.Manifest)
	}
	sum := sha256.Sum256([]byte(one.Manifest))
	path := filepath.Join(ImportDir(k.data), one.Name+"."+hex.EncodeToString(sum[:8])+".json") // no id has a dot
	if m, err := manifest.Read(ctx, nil, path); !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	m, err := manifest.Fetch(ctx, http.DefaultClient, one.Manifest)
	if err != nil {
		return m, err
	}
	return m, writeManifest(path, m)
}

// cast returns the character of a manifest.
func (k *Characters) cast(id string, m manifest.Manifest, from string) character {
	h := k.configured()
	return character{h.config.ResolveCharacter(id, m, h.persona), m, from}
}

// PersonaDir returns the directory of personas in a data directory.
func PersonaDir(data string) string { return filepath.Join(data, "personas") }

// ImportDir returns the directory of imported characters in a data directory.
func ImportDir(data string) string { return filepath.Join(data, "characters") }

// read reads a character that was imported, or a persona of the data directory.
func (k *Characters) read(name string) error {
	if !config.PersonaName().MatchString(name) {
		return fmt.Errorf("a character is one that perch character list shows, or the name of a file in %s, such as cook for cook.md, and has letters, digits, - and _",
			PersonaDir(k.data))
	}
	if own, _ := k.named(name); own.from == fromFile {
		return nil
	}
	read, err := k.stored(name)
	if err != nil {
		return err
	}
	k.store(name, read)
	return nil
}

func (k *Characters) store(name string, c character) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[name] = c
}

// householdCharacter returns the character of robots without one.
func (k *Characters) householdCharacter() character {
	return character{ResolvedCharacter: config.ResolvedCharacter{Persona: k.configured().persona}, from: fromHousehold}
}

// stored returns a character of a file in the data directory.
func (k *Characters) stored(name string) (character, error) {
	m, err := manifest.Read(context.Background(), nil, filepath.Join(ImportDir(k.data), name+".json"))
	if err == nil {
		return k.cast(name, m, fromImport), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return character{}, err
	}
	p, err := config.RobotPersona(filepath.Join(PersonaDir(k.data), name+".md"))
	if errors.Is(err, os.ErrNotExist) {
		return character{}, fmt.Errorf("there is no character %q: import one with perch character import, or put a persona into %s", name,
			filepath.Join(PersonaDir(k.data), name+".md"))
	}
	p.ID = name
	return character{ResolvedCharacter: config.ResolvedCharacter{Persona: p}, from: fromPersonas}, err
}

// Check returns an error for a change of a robot's settings that cannot take effect.
func (k *Characters) Check(c device.Change) error {
	text := func(s *string) string { return strings.TrimSpace(*cmp.Or(s, new(string))) }
	s := device.Settings{Persona: text(c.Persona), Voice: text(c.Voice), Brain: text(c.Brain), Language: text(c.Language)}
	for _, u := range k.configured().config.Unfit(s) {
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

// named returns a character by the name that settings have.
func (k *Characters) named(name string) (character, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	own, has := k.known[name]
	return own, has
}

// Of returns the character of a robot. It does not block.
func (k *Characters) Of(id device.ID) robot.Character {
	h := k.configured()
	s, c := k.robots.Settings(id), h.common
	if all := h.config.Language.List(); len(all) > 1 && h.persona.Language == "" {
		c.Speech.Detect = true
		if r, err := k.robots.Get(id); err == nil {
			spoken, _ := language.Among(all, language.Accepted(r.Language)...)
			c.Speech.Language = cmp.Or(spoken, c.Speech.Language)
		}
	}
	if s == (device.Settings{}) {
		return c
	}
	own, has := k.named(s.Persona)
	c.Name, c.Brain = s.Name, cmp.Or(s.Brain, own.First)
	c.Speech = voice.Options{Language: cmp.Or(s.Language, own.Language, c.Speech.Language), Voice: cmp.Or(s.Voice, own.Voice),
		Detect: c.Speech.Detect && cmp.Or(s.Language, own.Language) == ""}
	if !has {
		own.Persona, own.Brain = h.persona, agent.BrainOptions{} // its brains were made with its options
	}
	if has || s.Language != "" {
		own.Language = cmp.Or(s.Language, own.Language)
		c.Persona = &own.Persona
	}
	return c
}

// Language returns the language of a robot, BCP 47, and the household's for no robot.
func (k *Characters) Language(id device.ID) string {
	if id == "" {
		return k.Speech().Language
	}
	return k.Of(id).Speech.Language
}

// Complete sets the name, persona and brain of a robot's turn.
func (k *Characters) Complete(t *agent.Turn) {
	own := k.Of(t.Robot)
	t.Name, t.Persona, t.Brain = own.Name, own.Persona, own.Brain
	if own.Persona != nil {
		t.Language = own.Speech.Language
	}
}

// Who returns the id of the character in a session of a robot, or of a skin if id is empty. It does
// not block.
func (k *Characters) Who(id device.ID, session string) string {
	if id == "" {
		k.mu.RLock()
		defer k.mu.RUnlock()
		return cmp.Or(k.sessions[session].id, agent.DefaultCharacter)
	}
	own, _ := k.named(k.robots.Settings(id).Persona)
	return cmp.Or(own.ID, agent.DefaultCharacter)
}

// SkillsOf returns the names of the skills that a character has besides the built-in ones, or nil for
// all. It does not block.
func (k *Characters) SkillsOf(id string) []string {
	own, _ := k.named(id)
	if own.manifest.Skills == nil {
		return nil
	}
	names := []string{}
	for _, s := range own.manifest.Skills {
		names = append(names, s.Name())
	}
	return names
}

// Exists reports whether there is a character of that name, which a skin may choose.
func (k *Characters) Exists(name string) bool {
	if config.CheckCharacter(name) != nil {
		return false
	}
	_, known := k.named(name)
	return known || k.read(name) == nil
}

// Play makes a character answer a skin's turn; an empty name is the household's. The skin's own system
// message comes after the character's text.
func (k *Characters) Play(t *agent.Turn, name, system string) {
	own, has := k.named(name)
	if !has {
		own.Persona, own.Brain = k.configured().persona, agent.BrainOptions{} // its brains were made with its options
	}
	k.record(t.Session, own.ID)
	if system != "" {
		own.Text += "\n\n" + system
	}
	if has || system != "" {
		t.Persona, t.Brain, t.Language = &own.Persona, own.First, cmp.Or(own.Language, t.Language)
	}
}

// record stores the character of a skin's talk.
func (k *Characters) record(session, id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sessions, session)
	if id == "" {
		return
	}
	if len(k.sessions) >= maxSessions { // the oldest is forgotten
		delete(k.sessions, slices.MinFunc(slices.Collect(maps.Keys(k.sessions)), func(a, b string) int {
			return k.sessions[a].at.Compare(k.sessions[b].at)
		}))
	}
	k.sessions[session] = played{id, time.Now()}
}

// writeManifest writes a manifest to a file, atomically.
func writeManifest(path string, m manifest.Manifest) error {
	data, err := m.Export()
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
		err = store.WriteFile(path, data)
	}
	if err != nil {
		return fmt.Errorf("write a character: %w", err)
	}
	return nil
}
