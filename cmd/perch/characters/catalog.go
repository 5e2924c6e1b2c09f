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

// Catalog lists, imports, exports and removes characters for their owner. It publishes its changes.
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

// List returns all characters, the household's first.
func (k Catalog) List() []admin.Character {
	all := []admin.Character{k.shown(k.householdCharacter())}
	for _, name := range k.Names() {
		if own, known := k.named(name); known {
			all = append(all, k.shown(own))
		}
	}
	return all
}

// Names returns the ids of all characters but the household's, in order. A character that
// cannot be read is left out.
func (k *Characters) Names() []string {
	names := map[string]bool{}
	for _, c := range k.configured().config.Characters {
		names[c.Name] = true
	}
	for dir, ext := range map[string]string{ImportDir(k.data): ".json", PersonaDir(k.data): ".md"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // there are no files yet
		}
		for _, e := range entries[:min(len(entries), MaxFiles)] {
			if name, is := strings.CutSuffix(e.Name(), ext); is {
				names[name] = true
			}
		}
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return !k.Exists(name) })
	return slices.Sorted(maps.Keys(names))
}

func (k Catalog) shown(own character) admin.Character {
	shown := admin.Character{ID: cmp.Or(own.ID, agent.DefaultCharacter), Name: own.Name, Description: own.manifest.Description, From: own.from, Brain: own.First,
		Language: own.Language, Voice: own.Voice, Tools: own.Tools, MemoryTokens: own.MemoryTokens, Skills: []string{}, Robots: []string{}}
	shown.Remarks = append([]string{}, own.Remarks...)
	for _, s := range own.manifest.Skills {
		shown.Skills = append(shown.Skills, s.URI)
		switch err := k.skills.Check(s.Name()); {
		case errors.Is(err, skill.ErrElsewhere):
			shown.Remarks = append(shown.Remarks, fmt.Sprintf("The skill %s is a viewer's, which shows the character's model.", s.Name()))
		case err != nil && !strings.HasPrefix(s.URI, "ipfs://"): // the manifest has a remark about these
			shown.Remarks = append(shown.Remarks, fmt.Sprintf("The skill %s is not on this appliance: put its folder into the directory of skills, "+
				"and restart. perch skill check says whether it is trusted.", s.Name()))
		}
	}
	for _, r := range k.robots.List() {
		if k.robots.Trusts(r.ID) && k.Who(r.ID, "") == shown.ID {
			shown.Robots = append(shown.Robots, string(r.ID))
		}
	}
	return shown
}

// Import stores a character of one file under an id, or under its name if that is empty.
func (k Catalog) Import(id string, data []byte) (admin.Character, error) {
	m, err := manifest.Parse(data, manifest.Alone)
	if err != nil {
		return admin.Character{}, errManifest(err)
	}
	id = cmp.Or(id, m.ID())
	if err := config.CheckCharacter(id); err != nil {
		return admin.Character{}, errManifest(fmt.Errorf("%w; name it with --name", err))
	}
	if own, known := k.named(id); known && own.from == fromFile {
		return admin.Character{}, errManifest(fmt.Errorf("the configuration file has a character %s; name it with --name, or change the file", id))
	}
	path := filepath.Join(ImportDir(k.data), id+".json")
	if _, err := os.Stat(path); err != nil && len(k.Names()) >= maxImported {
		return admin.Character{}, errManifest(fmt.Errorf("there are %d characters already; perch character remove removes one", maxImported))
	}
	if err := writeManifest(path, m); err != nil {
		return admin.Character{}, err
	}
	own := k.cast(id, m, fromImport)
	k.store(id, own)
	k.bus.Publish("", "", event.Changed{What: "characters", ID: id})
	return k.shown(own), nil
}

// Export returns a character as a manifest of one file.
func (k Catalog) Export(id string) ([]byte, error) {
	own, err := k.byID(id)
	if err != nil {
		return nil, err
	}
	m := own.manifest
	if m.Name == "" {
		if m, err = manifest.Of(own.Persona); err != nil {
			return nil, err
		}
	}
	return m.Export()
}

// Remove removes a character that was imported, and its passport.
func (k Catalog) Remove(id string) error {
	if id == agent.DefaultCharacter || id == "perch" {
		return errInUse("default is the household's own character, and stays; persona in the configuration changes it")
	}
	if !k.Exists(id) {
		return errUnknown(id)
	}
	switch own, _ := k.named(id); own.from {
	case fromFile:
		return errInUse("the character %s is in the configuration file; remove it from characters there, and restart Perch", id)
	case fromPersonas:
		return errInUse("the character %s is the file %s; remove that file", id, filepath.Join(PersonaDir(k.data), id+".md"))
	}
	if by := k.usedBy(id, time.Now()); by != "" {
		return errInUse("the character %s is in use: %s", id, by)
	}
	if err := os.Remove(filepath.Join(ImportDir(k.data), id+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a character: %w", err)
	}
	if err := k.passports.remove(id); err != nil {
		return err
	}
	k.mu.Lock()
	delete(k.known, id)
	k.mu.Unlock()
	k.bus.Publish("", "", event.Changed{What: "characters", ID: id})
	return nil
}

// Card returns the registration file of a character.
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

// usedBy says who uses a character, and the cure, or "".
func (k *Characters) usedBy(id string, now time.Time) string {
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
	for _, one := range k.sessions {
		if one.id == id && now.Sub(one.at) < sessionLife {
			return fmt.Sprintf("a skin has talked with the model %s at %s; choose another model there, or wait until %s", id,
				one.at.Format(time.TimeOnly), one.at.Add(sessionLife).Format(time.TimeOnly))
		}
	}
	return ""
}

func errInUse(format string, args ...any) error {
	return &httpserver.Fault{Word: "character_stays", Sentence: fmt.Sprintf(format, args...), HTTP: http.StatusConflict}
}

func errManifest(err error) error {
	return &httpserver.Fault{Word: "bad_manifest", Sentence: err.Error(), HTTP: http.StatusBadRequest}
}
