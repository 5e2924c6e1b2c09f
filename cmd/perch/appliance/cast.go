package appliance

import (
	"errors"
	"fmt"
	"io/fs"
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
	"perch/gateway/admin"
	"perch/gateway/door"
)

// casting is what an owner does with characters. It publishes its changes.
type casting struct {
	*characters
	passports *passports
	skills    *skill.Library
	bus       *event.Bus
}

// List is every character there is, the household's first.
func (k casting) List() []admin.Character {
	all := []admin.Character{k.shown(castCharacter{Cast: config.Cast{Persona: k.now().persona}, from: fromHousehold})}
	for _, name := range k.Names() {
		if own, known := k.named(name); known {
			all = append(all, k.shown(own))
		}
	}
	return all
}

// Names are the ids of all characters but the household's, in order. One that cannot
// be read is none.
func (k *characters) Names() []string {
	names := map[string]bool{}
	for _, one := range k.now().config.Characters {
		names[one.Name] = true
	}
	for dir, ext := range map[string]string{k.imports(): ".json", k.directory(): ".md"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // there is none yet
		}
		for _, e := range entries[:min(len(entries), 2*mostCharacters)] {
			if name, is := strings.CutSuffix(e.Name(), ext); is {
				names[name] = true
			}
		}
	}
	var all []string
	for name := range names {
		if k.Known(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func (k casting) shown(own castCharacter) admin.Character {
	shown := admin.Character{ID: own.ID, Name: own.Name, Description: own.manifest.Description, From: own.from, Brain: own.First,
		Language: own.Language, Voice: own.Voice, Tools: own.Tools, MemoryTokens: own.MemoryTokens, Skills: []string{}, Robots: []string{}}
	if shown.ID == "" {
		shown.ID = agent.DefaultCharacter
	}
	shown.Remarks = append([]string{}, own.Remarks...)
	for _, s := range own.manifest.Skills {
		shown.Skills = append(shown.Skills, s.URI)
		switch err := k.skills.Find(s.Name()); {
		case errors.Is(err, skill.ErrElsewhere):
			shown.Remarks = append(shown.Remarks, fmt.Sprintf("The skill %s is a viewer's, which shows the character's model.", s.Name()))
		case err != nil && !strings.HasPrefix(s.URI, "ipfs://"): // of which the manifest's own remark speaks
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

// Import keeps a character of one file, under an id or else that of its name.
func (k casting) Import(id string, data []byte) (admin.Character, error) {
	m, err := manifest.Parse(data, manifest.Alone)
	if err != nil {
		return admin.Character{}, badManifest(err)
	}
	if id == "" {
		id = m.ID()
	}
	if err := config.CheckCharacter(id); err != nil {
		return admin.Character{}, badManifest(fmt.Errorf("%w; name it with --name", err))
	}
	if own, known := k.named(id); known && own.from == fromFile {
		return admin.Character{}, badManifest(fmt.Errorf("the configuration file has a character %s; name it with --name, or change the file", id))
	}
	path := filepath.Join(k.imports(), id+".json")
	if _, err := os.Stat(path); err != nil && len(k.Names()) >= mostCharacters {
		return admin.Character{}, badManifest(fmt.Errorf("there are %d characters already; perch character remove removes one", mostCharacters))
	}
	if err := keepManifest(path, m); err != nil {
		return admin.Character{}, err
	}
	own := k.cast(id, m, fromImport)
	k.mu.Lock()
	k.known[id] = own
	k.mu.Unlock()
	k.bus.Publish("", "", event.Changed{What: "characters", ID: id})
	return k.shown(own), nil
}

// Export is a character as a manifest of one file.
func (k casting) Export(id string) ([]byte, error) {
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
func (k casting) Remove(id string) error {
	if id == agent.DefaultCharacter || id == "perch" {
		return stays("default is the household's own character, and stays; persona in the configuration changes it")
	}
	if !k.Known(id) {
		return unknownCharacter(id)
	}
	switch own, _ := k.named(id); own.from {
	case fromFile:
		return stays("the character %s is in the configuration file; remove it from characters there, and restart Perch", id)
	case fromPersonas:
		return stays("the character %s is the file %s; remove that file", id, filepath.Join(k.directory(), id+".md"))
	}
	if by := k.usedBy(id, time.Now()); by != "" {
		return stays("the character %s is in use: %s", id, by)
	}
	if err := os.Remove(filepath.Join(k.imports(), id+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a character: %w", err)
	}
	if err := k.passports.forget(id); err != nil {
		return err
	}
	k.mu.Lock()
	delete(k.known, id)
	k.mu.Unlock()
	k.bus.Publish("", "", event.Changed{What: "characters", ID: id})
	return nil
}

// Card is the registration file of a character.
func (k casting) Card(id string) (card admin.Card, err error) {
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

// usedBy says who has a character, and the cure; empty is nobody.
func (k *characters) usedBy(id string, now time.Time) string {
	for _, r := range k.now().config.Robots.Each {
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
		if one.id == id && now.Sub(one.at) < talksFor {
			return fmt.Sprintf("a skin has talked with the model %s at %s; choose another model there, or wait until %s", id,
				one.at.Format(time.TimeOnly), one.at.Add(talksFor).Format(time.TimeOnly))
		}
	}
	return ""
}

// stays is why a character cannot be removed.
func stays(format string, args ...any) error {
	return &door.Fault{Word: "character_stays", Sentence: fmt.Sprintf(format, args...), HTTP: http.StatusConflict}
}

func badID(err error) error {
	return &door.Fault{Word: "bad_character_id", Sentence: err.Error(), HTTP: http.StatusBadRequest}
}

func unknownCharacter(id string) error {
	return &door.Fault{Word: "unknown_character", Sentence: fmt.Sprintf("there is no character %.60q; perch character list shows them", id),
		HTTP: http.StatusNotFound}
}

func badManifest(err error) error {
	return &door.Fault{Word: "bad_manifest", Sentence: err.Error(), HTTP: http.StatusBadRequest}
}
