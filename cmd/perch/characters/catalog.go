package characters

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/manifest"
	"perch/agent/skill"
	"perch/cmd/perch/config"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
)

// Catalog lists, imports, exports and removes characters for the owner's API. It publishes an
// event for each change.
type Catalog struct {
	*Characters
	passports *Passports
	skills    *skill.Library
	bus       *event.Bus
}

// NewCatalog returns the catalog of the characters.
func NewCatalog(c *Characters, p *Passports, skills *skill.Library, bus *event.Bus) Catalog {
	return Catalog{c, p, skills, bus}
}

// List returns the default character, and then the characters of Names.
func (k Catalog) List() []admin.Character {
	list := []admin.Character{k.describe(k.defaultCharacter())}
	for _, name := range k.Names() {
		if char, ok := k.lookup(name); ok {
			list = append(list, k.describe(char))
		}
	}
	return list
}

// Names returns the sorted IDs of all characters except the default character and the persona files that
// robots.each names. It loads the characters if necessary, and leaves out those that cannot be read. Of each
// directory it uses the first MaxFiles entries only.
func (k *Characters) Names() []string {
	names := map[string]bool{}
	for _, c := range k.configured().config.Characters {
		names[c.Name] = true
	}
	for dir, ext := range map[string]string{ImportDir(k.data): ".json", PersonaDir(k.data): ".md"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // the directory does not exist before its first file
		}
		for _, e := range entries[:min(len(entries), MaxFiles)] {
			if name, ok := strings.CutSuffix(e.Name(), ext); ok {
				names[name] = true
			}
		}
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return !k.Exists(name) })
	return slices.Sorted(maps.Keys(names))
}

// describe returns a character as the owner's API shows it.
func (k Catalog) describe(char character) admin.Character {
	shown := admin.Character{ID: cmp.Or(char.ID, agent.DefaultCharacter), Name: char.Name, Description: char.manifest.Description, From: char.from, Brain: char.First,
		Language: char.Language, Voice: char.Voice, Tools: char.Tools, MemoryTokens: char.MemoryTokens, Skills: []string{}, Robots: []string{}}
	shown.Remarks = append([]string{}, char.Remarks...)
	for _, s := range char.manifest.Skills {
		shown.Skills = append(shown.Skills, s.URI)
		switch err := k.skills.Check(s.Name(), s.Version); {
		case errors.Is(err, skill.ErrVersion):
			shown.Remarks = append(shown.Remarks, fmt.Sprintf("The manifest asks for version %s of the skill %s, and %v.", s.Version, s.Name(), err))
		case errors.Is(err, skill.ErrElsewhere):
			shown.Remarks = append(shown.Remarks, fmt.Sprintf("The skill %s is run by the viewer that shows the character's model.", s.Name()))
		case err != nil && !strings.HasPrefix(s.URI, "ipfs://"): // the manifest's remarks already mention such a skill
			shown.Remarks = append(shown.Remarks, fmt.Sprintf("The skill %s is not on this appliance: put its folder into the directory of skills, "+
				"or get it with perch skill get, and restart. perch skill check says whether it is trusted.", s.Name()))
		}
	}
	for _, r := range k.robots.List() {
		if k.robots.Trusts(r.ID) && k.Who(r.ID, "") == shown.ID {
			shown.Robots = append(shown.Robots, string(r.ID))
		}
	}
	return shown
}

// Import stores the character of a manifest under an ID, or under an ID derived from its name if id is
// empty. It replaces an imported character with this ID. data is a manifest that refers to no other files.
func (k Catalog) Import(id string, data []byte) (admin.Character, error) {
	m, err := manifest.Parse(data, manifest.Alone)
	if err != nil {
		return admin.Character{}, errManifest(err)
	}
	id = cmp.Or(id, m.ID())
	if err := config.CheckCharacter(id); err != nil {
		return admin.Character{}, errManifest(fmt.Errorf("%w; name it with --name", err))
	}
	if char, ok := k.lookup(id); ok && char.from == fromFile {
		return admin.Character{}, errManifest(fmt.Errorf("the configuration file has a character %s; name it with --name, or change the file", id))
	}
	path := filepath.Join(ImportDir(k.data), id+".json")
	if _, err := os.Stat(path); err != nil && len(k.Names()) >= maxImported {
		return admin.Character{}, errManifest(fmt.Errorf("there are %d characters already; perch character remove removes one", maxImported))
	}
	if err := writeManifest(path, m); err != nil {
		return admin.Character{}, err
	}
	char := k.newCharacter(id, m, fromImport)
	k.store(id, char)
	k.bus.Publish("", "", event.Changed{What: "characters", ID: id})
	return k.describe(char), nil
}

// Export returns the manifest of a character, with all referenced files included. For a character that was
// not made from a manifest, it makes one.
func (k Catalog) Export(id string) ([]byte, error) {
	char, err := k.byID(id)
	if err != nil {
		return nil, err
	}
	m := char.manifest
	if m.Name == "" {
		if m, err = manifest.Of(char.Persona); err != nil {
			return nil, err
		}
	}
	return m.Export()
}

// Remove removes an imported character and its passport. For any other character, and for a character in
// use, it returns an error.
func (k Catalog) Remove(id string) error {
	if id == agent.DefaultCharacter || id == "perch" {
		return errInUse("default is the household's character and cannot be removed; persona in the configuration changes it")
	}
	if !k.Exists(id) {
		return errUnknown(id)
	}
	switch char, _ := k.lookup(id); char.from {
	case fromFile:
		return errInUse("the character %s is in the configuration file; remove it from characters there, and restart Perch", id)
	case fromPersonas:
		return errInUse("the character %s is the file %s; remove that file", id, filepath.Join(PersonaDir(k.data), id+".md"))
	}
	if use := k.findUse(id, time.Now()); use != "" {
		return errInUse("the character %s is in use: %s", id, use)
	}
	if err := os.Remove(filepath.Join(ImportDir(k.data), id+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a character: %w", err)
	}
	if err := k.passports.remove(id); err != nil {
		return err
	}
	k.mu.Lock()
	delete(k.characters, id)
	k.mu.Unlock()
	k.bus.Publish("", "", event.Changed{What: "characters", ID: id})
	return nil
}

// Card returns the ERC-8004 registration file of a character, with remarks for the owner.
func (k Catalog) Card(id string) (card admin.Card, err error) {
	own, err := k.passports.own(id)
	if err != nil {
		return card, err
	}
	written, _, err := k.passports.table.Get(own.ID)
	if err != nil {
		return card, err
	}
	card.File, card.Remarks = written.Card(own)
	return card, nil
}

// findUse returns a sentence that says what uses a character and how to end this use, or "" if the
// character is not in use.
func (k *Characters) findUse(id string, now time.Time) string {
	for _, r := range k.configured().config.Robots.Each {
		if r.Character == id || r.Persona == id {
			return fmt.Sprintf("robots.each in the configuration file gives it to the robot %s", r.Robot)
		}
	}
	for _, r := range k.robots.List() {
		if k.robots.Settings(r.ID).Persona == id {
			return fmt.Sprintf("the robot %s has it; perch character use %[1]s default gives that robot the household's", r.ID)
		}
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, s := range k.sessions {
		if s.id == id && now.Sub(s.at) < sessionLife {
			return fmt.Sprintf("a skin has talked with the model %s at %s; choose another model there, or wait until %s", id,
				s.at.Format(time.TimeOnly), s.at.Add(sessionLife).Format(time.TimeOnly))
		}
	}
	return ""
}

// errInUse returns the error for a character that cannot be removed.
func errInUse(format string, args ...any) error {
	return &httpserver.Fault{Word: "character_stays", Sentence: fmt.Sprintf(format, args...), HTTP: http.StatusConflict}
}

// errManifest returns the error for a manifest that cannot be imported.
func errManifest(err error) error {
	return &httpserver.Fault{Word: "bad_manifest", Sentence: err.Error(), HTTP: http.StatusBadRequest}
}
