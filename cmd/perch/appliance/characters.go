package appliance

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
	"perch/gateway/admin"
	"perch/gateway/robot"
	"perch/language"
	"perch/store"
	"perch/voice"
)

// characters are the characters of this appliance, and which robot and which skin's talk
// has which.
type characters struct {
	robots *device.Registry
	data   string

	mu        sync.RWMutex
	household household
	known     map[string]castCharacter // as settings call them
	sessions  map[string]played        // the characters of skins' talks
}

// household is what the configuration says for all robots.
type household struct {
	config  *config.Config
	common  robot.Character // of a robot without anything
	persona agent.Persona
	fixed   map[device.ID]device.Settings
}

// played is the character of a skin's talk.
type played struct {
	id string
	at time.Time // of its latest turn
}

// castCharacter is one of them.
type castCharacter struct {
	config.Cast
	manifest manifest.Manifest // of one that came as a manifest
	from     string
}

// Where characters come from.
const (
	fromHousehold = "household"
	fromFile      = "configuration"
	fromImport    = "import"
	fromPersonas  = "persona"
)

// Bounds of characters.
const (
	mostCharacters = 100 // that are imported
	mostCast       = 500 // talks of skins whose character is known
	fetchWithin    = 5 * time.Second
	talksFor       = 10 * time.Minute // after its latest turn, a skin's talk is still its character's
)

// newCharacters reads the characters of robots. One that is stored and cannot be
// read is logged, and the household's is used instead. They are used from follow on.
func newCharacters(c *config.Config, robots *device.Registry, data string, log *slog.Logger) (*characters, error) {
	speech, err := config.Speech(c)
	if err != nil {
		return nil, err
	}
	person, err := config.Persona(c)
	if err != nil {
		return nil, err
	}
	k := &characters{robots: robots, data: data, household: household{config: c, common: robot.Character{Speech: speech}, persona: person},
		known: map[string]castCharacter{}, sessions: map[string]played{}}
	if k.household.fixed, err = k.fixed(c); err != nil {
		return nil, err
	}
	k.fromFile(c, log)
	for id, s := range k.household.fixed { // of robots that may come later, too
		k.readFor(id, s, log)
	}
	for _, r := range robots.List() {
		if k.household.fixed[r.ID].Persona == "" {
			k.readFor(r.ID, r.Settings, log)
		}
	}
	return k, nil
}

// follow has the robots be as next has them, which may be k itself.
func (k *characters) follow(next *characters, log *slog.Logger) {
	k.mu.Lock()
	k.household, k.known = next.household, next.known
	h := k.household
	k.mu.Unlock()
	for _, hidden := range k.robots.Fix(h.fixed) {
		log.Warn("a robot's name is used by another robot in the configuration file and is not applied; choose another with perch robot rename",
			"robot", hidden.ID, "name", hidden.Settings.Name)
	}
	for _, r := range k.robots.List() {
		for _, u := range h.config.Unfit(r.Settings, CheckPart) {
			log.Warn("the engines do not support a robot's setting; change it with perch robot set", "robot", r.ID, "key", u.Key, "err", u.Err)
		}
	}
	for _, part := range k.lacking() {
		log.Warn("a part of this appliance does not know a robot's language", "what", part.Note)
	}
}

// now is what the configuration says now.
func (k *characters) now() household {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.household
}

// Speech is how robots are spoken to that have nothing of their own.
func (k *characters) Speech() voice.Options { return k.now().common.Speech }

// lacking is what is missing for languages that robots are set to, beside those of the
// configuration; mostly it is nothing. Robots are talked to all the same.
func (k *characters) lacking() []admin.Part {
	var tags []string
	for _, r := range k.robots.List() {
		if r.Settings.Language != "" {
			tags = append(tags, r.Settings.Language)
		}
	}
	lacks := k.now().config.Lacks(tags...)
	if len(lacks) == 0 {
		return nil
	}
	return []admin.Part{admin.Part{Name: "language", OK: true}.Saying(strings.Join(lacks, "; "))}
}

// readFor reads the character of a robot's settings.
func (k *characters) readFor(id device.ID, s device.Settings, log *slog.Logger) {
	if _, read := k.named(s.Persona); read || s.Persona == "" {
		return
	}
	if err := k.read(s.Persona); err != nil {
		log.Warn("a robot's character cannot be read; the household's is used", "robot", id, "name", s.Persona, "err", err)
	}
}

// fixed are the settings of the file, whose personas are read.
func (k *characters) fixed(c *config.Config) (map[device.ID]device.Settings, error) {
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
		k.known[r.Persona] = castCharacter{Cast: config.Cast{Persona: p}, from: fromFile}
	}
	return fixed, nil
}

// fromFile reads the characters that the configuration names. What cannot be read or
// fetched is logged; the next start tries again.
func (k *characters) fromFile(c *config.Config, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchWithin)
	defer cancel()
	for _, one := range c.Characters {
		m, err := k.load(ctx, one)
		if err != nil {
			log.Warn("a character of the configuration cannot be read; robots that have it have the household's", "name", one.Name, "err", err)
			continue
		}
		own := k.cast(one.Name, m, fromFile)
		k.known[one.Name] = own
		for _, text := range own.Remarks {
			log.Info("a character does not get all that its manifest asks for", "name", one.Name, "text", text)
		}
	}
}

// load reads one, which is fetched once and kept.
func (k *characters) load(ctx context.Context, one config.Character) (manifest.Manifest, error) {
	if !one.Remote() {
		return manifest.Read(ctx, nil, one.Manifest)
	}
	sum := sha256.Sum256([]byte(one.Manifest))
	path := filepath.Join(k.imports(), one.Name+"."+hex.EncodeToString(sum[:8])+".json") // no id has a dot
	if m, err := manifest.Read(ctx, nil, path); !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	m, err := manifest.Fetch(ctx, http.DefaultClient, one.Manifest)
	if err != nil {
		return m, err
	}
	return m, keepManifest(path, m)
}

// cast makes a character of a manifest.
func (k *characters) cast(id string, m manifest.Manifest, from string) castCharacter {
	h := k.now()
	return castCharacter{h.config.Cast(id, m, h.persona, CheckPart), m, from}
}

// directory holds the personas that commands name.
func (k *characters) directory() string { return filepath.Join(k.data, "personas") }

// imports holds the characters that were imported.
func (k *characters) imports() string { return filepath.Join(k.data, "characters") }

// read takes over a character that was imported, or a persona of the directory.
func (k *characters) read(name string) error {
	if !config.PersonaName().MatchString(name) {
		return fmt.Errorf("a character is one that perch character list shows, or the name of a file in %s, such as cook for cook.md, and has letters, digits, - and _",
			k.directory())
	}
	k.mu.RLock()
	of := k.known[name].from
	k.mu.RUnlock()
	if of == fromFile {
		return nil
	}
	read, err := k.stored(name)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.known[name] = read
	k.mu.Unlock()
	return nil
}

// stored reads one of a file.
func (k *characters) stored(name string) (castCharacter, error) {
	m, err := manifest.Read(context.Background(), nil, filepath.Join(k.imports(), name+".json")) // which asks nobody
	if err == nil {
		return k.cast(name, m, fromImport), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return castCharacter{}, err
	}
	p, err := config.RobotPersona(filepath.Join(k.directory(), name+".md"))
	if errors.Is(err, os.ErrNotExist) {
		return castCharacter{}, fmt.Errorf("there is no character %q: import one with perch character import, or put a persona into %s", name,
			filepath.Join(k.directory(), name+".md"))
	}
	p.ID = name
	return castCharacter{Cast: config.Cast{Persona: p}, from: fromPersonas}, err
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
	for _, u := range k.now().config.Unfit(s, CheckPart) {
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

// named is a character as settings call it.
func (k *characters) named(name string) (castCharacter, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	own, has := k.known[name]
	return own, has
}

// Of is what a robot has of its own. It does not block.
func (k *characters) Of(id device.ID) robot.Character {
	h := k.now()
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
		own.Persona, own.Brain = h.persona, agent.BrainOptions{} // which its brains have been given
	}
	if has || s.Language != "" {
		own.Language = cmp.Or(s.Language, own.Language)
		c.Persona = &own.Persona
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
func (k *characters) Who(id device.ID, session string) string {
	if id == "" {
		k.mu.RLock()
		defer k.mu.RUnlock()
		return cmp.Or(k.sessions[session].id, agent.DefaultCharacter)
	}
	own, _ := k.named(k.robots.Settings(id).Persona)
	return cmp.Or(own.ID, agent.DefaultCharacter)
}

// SkillsOf are the names of the skills that a character has beside the built-in ones;
// nil is all. It does not block.
func (k *characters) SkillsOf(id string) []string {
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

// Known reports whether a skin may choose a character by that name.
func (k *characters) Known(name string) bool {
	if config.CheckCharacter(name) != nil {
		return false
	}
	_, known := k.named(name)
	return known || k.read(name) == nil
}

// Play has a skin's turn answered by a character; an empty name is the household's.
// What the skin's own system message says comes after the character's text.
func (k *characters) Play(t *agent.Turn, name, system string) {
	own, has := k.named(name)
	if !has {
		own.Persona, own.Brain = k.now().persona, agent.BrainOptions{} // which its brains have been given
	}
	k.enter(t.Session, own.ID)
	if system != "" {
		own.Text += "\n\n" + system
	}
	if has || system != "" {
		t.Persona, t.Brain, t.Language = &own.Persona, own.First, cmp.Or(own.Language, t.Language)
	}
}

// enter notes whose a session is.
func (k *characters) enter(session, id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sessions, session)
	if id == "" {
		return
	}
	if len(k.sessions) >= mostCast { // the one that has not talked for longest
		delete(k.sessions, slices.MinFunc(slices.Collect(maps.Keys(k.sessions)), func(a, b string) int {
			return k.sessions[a].at.Compare(k.sessions[b].at)
		}))
	}
	k.sessions[session] = played{id, time.Now()}
}

// keepManifest writes a manifest that is there whole or not at all.
func keepManifest(path string, m manifest.Manifest) error {
	data, err := m.Export()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("keep a character: %w", err)
	}
	if err := store.WriteFile(path, data); err != nil {
		return fmt.Errorf("keep a character: %w", err)
	}
	return nil
}
