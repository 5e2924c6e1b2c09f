// Package characters holds the characters of robots and of conversations with skins (programs that
// show the agent). A character has a persona, a brain, a voice and a language. The package reads
// characters from the configuration, from imported manifests and from persona files in the data
// directory. The keys persona, language and speech of the configuration describe the default character.
// Robots and skins have it unless they choose another.
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

// Characters holds the characters of this appliance, and maps robots and sessions of skins to
// them.
type Characters struct {
	robots *device.Registry
	data   string // the data directory
	log    *slog.Logger

	mu            sync.RWMutex
	configuration configuration
	characters    map[string]character        // key: the name in robots' settings, which is an ID or the path of a persona file
	sessions      map[string]sessionCharacter // key: session of a skin
	names         map[string]string           // the names that passports give; key: character ID
}

// configuration is the configuration of the appliance, and what New has read from it.
type configuration struct {
	config  *config.Config
	common  robot.Character // the character of robots without settings
	persona agent.Persona
	fixed   map[device.ID]device.Settings // the settings in the key robots.each
}

// sessionCharacter says which character a skin's session uses.
type sessionCharacter struct {
	id string    // ID of the character
	at time.Time // start of the latest turn
}

// character is a character and its source.
type character struct {
	config.ResolvedCharacter
	manifest manifest.Manifest // empty for a persona
	ownName  string            // the name without a passport; empty until Characters.named is called
	from     string            // fromDefault, fromFile, fromImport or fromPersonas
}

// Values of admin.Character.From.
const (
	fromDefault  = "household"     // the default character
	fromFile     = "configuration" // the configuration file or a file that it names
	fromImport   = "import"        // a manifest in ImportDir
	fromPersonas = "persona"       // a file in PersonaDir
)

// Limits of characters.
const (
	maxImported  = 100              // characters besides the default one; above it, nothing new is imported
	maxSessions  = 500              // sessions of skins
	fetchTimeout = 5 * time.Second  // for all remote manifests together, since they delay the start
	sessionLife  = 10 * time.Minute // how long a skin's session uses its character after its latest turn

	// MaxFiles is the maximum number of files that are read from a directory.
	MaxFiles = 2 * maxImported
)

// New reads the characters that a configuration and the robots' settings name. It logs each
// character that cannot be read; the default character takes its place. New returns an error if a
// persona file that the configuration names cannot be read. The result has no effect until it is passed
// to Replace.
func New(c *config.Config, robots *device.Registry, data string, log *slog.Logger) (*Characters, error) {
	speech, err := config.Speech(c)
	if err != nil {
		return nil, err
	}
	persona, err := config.Persona(c)
	if err != nil {
		return nil, err
	}
	k := &Characters{robots: robots, data: data, log: log,
		configuration: configuration{config: c, common: robot.Character{Speech: speech}, persona: persona},
		characters:    map[string]character{}, sessions: map[string]sessionCharacter{}, names: map[string]string{}}
	if k.configuration.fixed, err = k.readFixed(c); err != nil {
		return nil, err
	}
	k.readConfigured(c)
	for id, s := range k.configuration.fixed { // includes robots that never connected
		k.loadFor(id, s)
	}
	for _, r := range robots.List() {
		if k.configuration.fixed[r.ID].Persona == "" {
			k.loadFor(r.ID, r.Settings)
		}
	}
	return k, nil
}

// Replace makes k use the characters of next, which may be k itself, and gives the settings of
// robots.each to the registry. It logs settings of robots that conflict with the configuration.
func (k *Characters) Replace(next *Characters) {
	k.mu.Lock()
	k.configuration, k.characters = next.configuration, next.characters
	h := k.configuration
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
		k.log.Warn("a part of this appliance does not support a robot's language", "what", part.Note)
	}
}

// configured returns the current configuration.
func (k *Characters) configured() configuration {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.configuration
}

// Speech returns the language and voice for robots without settings.
func (k *Characters) Speech() voice.Options { return k.configured().common.Speech }

// Conditions returns a part that names the languages in robots' settings that the engines do not
// support, or nil if the engines support all. Languages in the configuration are left out:
// Config.Warnings covers those.
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

// loadFor loads the character that a robot's settings name. It logs a failure.
func (k *Characters) loadFor(id device.ID, s device.Settings) {
	if _, loaded := k.lookup(s.Persona); loaded || s.Persona == "" {
		return
	}
	if err := k.load(s.Persona); err != nil {
		k.log.Warn("a robot's character cannot be read; the household's is used", "robot", id, "name", s.Persona, "err", err)
	}
}

// readFixed returns the settings of robots.each, and loads the persona files that they name.
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
		k.characters[r.Persona] = character{ResolvedCharacter: config.ResolvedCharacter{Persona: p}, from: fromFile}
	}
	return fixed, nil
}

// readConfigured reads the characters that the configuration names. It logs each character that
// cannot be read or fetched; the next start tries again.
func (k *Characters) readConfigured(c *config.Config) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	for _, entry := range c.Characters {
		m, err := k.readManifest(ctx, entry)
		if err != nil {
			k.log.Warn("a character of the configuration cannot be read; its robots use the household's", "name", entry.Name, "err", err)
			continue
		}
		char := k.newCharacter(entry.Name, m, fromFile)
		k.characters[entry.Name] = char
		for _, text := range char.Remarks {
			k.log.Info("a remark about a character's manifest", "name", entry.Name, "text", text)
		}
	}
}

// readManifest reads the manifest of a configured character. A remote manifest is fetched once,
// and then read from a file in the data directory.
func (k *Characters) readManifest(ctx context.Context, c config.Character) (manifest.Manifest, error) {
	if !c.Remote() {
		return manifest.Read(ctx, nil, c.Manifest)
	}
	sum := sha256.Sum256([]byte(c.Manifest))
	path := filepath.Join(ImportDir(k.data), c.Name+"."+hex.EncodeToString(sum[:8])+".json") // IDs contain no dot, so this is not the file of an imported character
	if m, err := manifest.Read(ctx, nil, path); !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	m, err := manifest.Fetch(ctx, http.DefaultClient, c.Manifest)
	if err != nil {
		return m, err
	}
	return m, writeManifest(path, m)
}

// newCharacter returns the character that a manifest describes.
func (k *Characters) newCharacter(id string, m manifest.Manifest, from string) character {
	h := k.configured()
	return character{ResolvedCharacter: h.config.ResolveCharacter(id, m, h.persona), manifest: m, from: from}
}

// PersonaDir returns the directory of personas in a data directory.
func PersonaDir(data string) string { return filepath.Join(data, "personas") }

// ImportDir returns the directory of imported characters in a data directory.
func ImportDir(data string) string { return filepath.Join(data, "characters") }

// load loads a character from the data directory: an imported one, or a persona file. A character
// of the configuration is loaded already.
func (k *Characters) load(name string) error {
	if !config.PersonaName().MatchString(name) {
		return fmt.Errorf("%.80q is not the name of a character; perch character list shows the names, and a file cook.md in %s adds the name cook. "+
			"Names have letters, digits, - and _", name, PersonaDir(k.data))
	}
	if char, _ := k.lookup(name); char.from == fromFile {
		return nil
	}
	c, err := k.readCharacter(name)
	if err != nil {
		return err
	}
	k.store(name, c)
	return nil
}

// store makes lookup find c by name.
func (k *Characters) store(name string, c character) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.characters[name] = c
}

// defaultCharacter returns the character of robots whose settings name none.
func (k *Characters) defaultCharacter() character {
	return k.named(character{ResolvedCharacter: config.ResolvedCharacter{Persona: k.configured().persona}, from: fromDefault})
}

// Name returns the name of the default character.
func (k *Characters) Name() string { return k.defaultCharacter().Name }

// rename sets the name that a character's passport gives. An empty name removes it.
func (k *Characters) rename(id, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names[id] = name
}

// named returns a character with the name in its passport, if the passport has one. It sets ownName.
func (k *Characters) named(char character) character {
	k.mu.RLock()
	defer k.mu.RUnlock()
	char.ownName = char.Name
	char.Name = cmp.Or(k.names[cmp.Or(char.ID, agent.DefaultCharacter)], char.Name)
	return char
}

// readCharacter reads a character from its file in the data directory.
func (k *Characters) readCharacter(name string) (character, error) {
	m, err := manifest.Read(context.Background(), nil, filepath.Join(ImportDir(k.data), name+".json"))
	if err == nil {
		return k.newCharacter(name, m, fromImport), nil
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

// Check returns an error that wraps device.ErrSetting if the engines do not support a change of a
// robot's settings, or if the new character cannot be loaded.
func (k *Characters) Check(c device.Change) error {
	text := func(s *string) string { return strings.TrimSpace(*cmp.Or(s, new(string))) }
	s := device.Settings{Persona: text(c.Persona), Voice: text(c.Voice), Brain: text(c.Brain), Language: text(c.Language)}
	for _, u := range k.configured().config.Unfit(s) {
		return fmt.Errorf("%w: %s: %w", device.ErrSetting, u.Key, u.Err)
	}
	if s.Persona == "" {
		return nil
	}
	if err := k.load(s.Persona); err != nil {
		return fmt.Errorf("%w: persona: %w", device.ErrSetting, err)
	}
	return nil
}

// lookup returns a loaded character by the name that settings use.
func (k *Characters) lookup(name string) (character, bool) {
	k.mu.RLock()
	char, ok := k.characters[name]
	k.mu.RUnlock()
	if ok {
		char = k.named(char)
	}
	return char, ok
}

// Of returns the character of a robot. If several languages are configured and the persona has none, Of may wait
// for the disk, because it calls Registry.Get.
func (k *Characters) Of(id device.ID) robot.Character {
	h := k.configured()
	s, c := k.robots.Settings(id), h.common
	if languages := h.config.Language.List(); len(languages) > 1 && h.persona.Language == "" {
		c.Speech.DetectLanguage = true
		if r, err := k.robots.Get(id); err == nil {
			spoken, _ := language.Among(languages, language.Accepted(r.Language)...)
			c.Speech.Language = cmp.Or(spoken, c.Speech.Language)
		}
	}
	fallback := k.defaultCharacter()
	if renamed := fallback.Name != fallback.ownName; renamed {
		c.Persona = &fallback.Persona
	}
	if s == (device.Settings{}) {
		return c
	}
	char, loaded := k.lookup(s.Persona)
	c.Name, c.Brain = s.Name, cmp.Or(s.Brain, char.First)
	c.Speech = voice.Options{Language: cmp.Or(s.Language, char.Language, c.Speech.Language), Voice: cmp.Or(s.Voice, char.Voice),
		DetectLanguage: c.Speech.DetectLanguage && cmp.Or(s.Language, char.Language) == "", Mute: char.Mute, Deaf: char.Deaf}
	if !loaded {
		char.Persona, char.Brain = fallback.Persona, agent.BrainOptions{} // the brains have the default character's options already
	}
	if loaded || s.Language != "" {
		char.Language = cmp.Or(s.Language, char.Language)
		c.Persona = &char.Persona
	}
	return c
}

// Language returns the language of a robot (BCP 47), or the default language if id is empty.
func (k *Characters) Language(id device.ID) string {
	if id == "" {
		return k.Speech().Language
	}
	return k.Of(id).Speech.Language
}

// Complete sets the name, persona and brain of a robot's turn, and the language of its character.
func (k *Characters) Complete(t *agent.Turn) {
	char := k.Of(t.Robot)
	t.Name, t.Persona, t.Brain = char.Name, char.Persona, char.Brain
	if p := char.Persona; p != nil && p.ID+p.Language != "" { // else the persona is the household's, perhaps with another name
		t.Language = char.Speech.Language
	}
}

// Who returns the ID of a robot's character. If id is empty, it returns the ID of the character that
// a skin's session uses. It does not block.
func (k *Characters) Who(id device.ID, session string) string {
	if id == "" {
		k.mu.RLock()
		defer k.mu.RUnlock()
		return cmp.Or(k.sessions[session].id, agent.DefaultCharacter)
	}
	char, _ := k.lookup(k.robots.Settings(id).Persona)
	return cmp.Or(char.ID, agent.DefaultCharacter)
}

// SkillsOf returns the names of the skills that a character has besides the built-in ones. Nil means
// all skills. It does not block.
func (k *Characters) SkillsOf(id string) []string {
	char, _ := k.lookup(id)
	if char.manifest.Skills == nil {
		return nil
	}
	names := []string{}
	for _, s := range char.manifest.Skills {
		names = append(names, s.Name())
	}
	return names
}

// Exists reports whether a skin may choose the character with this name. It loads the character if
// necessary.
func (k *Characters) Exists(name string) bool {
	if config.CheckCharacter(name) != nil {
		return false
	}
	_, loaded := k.lookup(name)
	return loaded || k.load(name) == nil
}

// Play makes a skin's turn speak as a character, and records that the skin's session uses the character.
// For a name that is empty or not loaded, it uses the default character. The skin's system message is
// added after the character's text.
func (k *Characters) Play(t *agent.Turn, name, system string) {
	char, loaded := k.lookup(name)
	if !loaded {
		char = k.defaultCharacter()
		char.Brain = agent.BrainOptions{} // the brains have the default character's options already
	}
	k.record(t.Session, char.ID)
	if system != "" {
		char.Text += "\n\n" + system
	}
	if loaded || system != "" || char.Name != char.ownName {
		t.Persona, t.Brain, t.Language = &char.Persona, char.First, cmp.Or(char.Language, t.Language)
	}
}

// record stores which character a skin's session uses. An empty ID removes the session.
func (k *Characters) record(session, id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sessions, session)
	if id == "" {
		return
	}
	if len(k.sessions) >= maxSessions { // remove the oldest
		delete(k.sessions, slices.MinFunc(slices.Collect(maps.Keys(k.sessions)), func(a, b string) int {
			return k.sessions[a].at.Compare(k.sessions[b].at)
		}))
	}
	k.sessions[session] = sessionCharacter{id, time.Now()}
}

// writeManifest writes a manifest to a file atomically.
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
