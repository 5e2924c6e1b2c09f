package appliance

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perch/agent"
	"perch/agent/manifest"
	"perch/cmd/perch/config"
	"perch/event"
	"perch/gateway/admin"
	"perch/gateway/door"
)

// casting is what an owner does with characters. It publishes its changes.
type casting struct {
	*characters
	bus *event.Bus
}

// List is every character there is, the household's first.
func (k casting) List() []admin.Character {
	all := []admin.Character{k.shown(castCharacter{Cast: config.Cast{Persona: k.persona}, from: fromHouse})}
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
	for _, one := range k.config.Characters {
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
		Language: own.Language, Voice: own.Voice, Tools: own.Tools, MemoryTokens: own.MemoryTokens, Skills: []string{}, Remarks: own.Remarks,
		Robots: []string{}}
	if shown.ID == "" {
		shown.ID = agent.DefaultCharacter
	}
	if shown.Remarks == nil {
		shown.Remarks = []string{}
	}
	for _, s := range own.manifest.Skills {
		shown.Skills = append(shown.Skills, s.URI)
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
		return admin.Character{}, badManifest(fmt.Errorf("there are %d characters already; remove a file in %s", mostCharacters, k.imports()))
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
	own := castCharacter{Cast: config.Cast{Persona: k.persona}, from: fromHouse}
	if id != agent.DefaultCharacter {
		if !k.Known(id) {
			return nil, &door.Fault{Word: "unknown_character", HTTP: http.StatusNotFound,
				Sentence: fmt.Sprintf("there is no character %.60q; perch character list shows them", id)}
		}
		own, _ = k.named(id)
	}
	m := own.manifest
	if m.Name == "" {
		var err error
		if m, err = manifest.Of(own.Persona); err != nil {
			return nil, err
		}
	}
	return m.Export()
}

func badManifest(err error) error {
	return &door.Fault{Word: "bad_manifest", Sentence: err.Error(), HTTP: http.StatusBadRequest}
}
