package characters

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/passport"
	"perch/cmd/perch/config"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/store"
)

// Passports holds the passports of the characters. A passport is the identity of a character in the
// three.ws agent system, such as a name and a home page. Its fields come from the character's
// own data (persona, manifest and skills), unless the owner has written them; the owner's fields are stored.
type Passports struct {
	characters *Characters
	skills     func(character string) []string // returns the names of a character's skills
	table      *store.Table[passport.Passport] // key: character ID
	bus        *event.Bus
	installed  time.Time // when the appliance was installed: the creation time of characters that are not imported and have none

	mu sync.Mutex // held during changes
}

// NewPassports returns the passports of a database. skills returns the names of a character's skills;
// installed is used as the creation time of characters that are not imported and have none.
func NewPassports(c *Characters, skills func(character string) []string, db *store.DB, bus *event.Bus, installed time.Time) *Passports {
	p := &Passports{characters: c, skills: skills, table: store.NewTable[passport.Passport](db, "passports"), bus: bus, installed: installed}
	for id, written := range p.table.All() {
		c.rename(id, written.Name())
	}
	return p
}

// Passport returns the complete passport of a character.
func (p *Passports) Passport(id string) (map[string]any, error) {
	own, err := p.own(id)
	if err != nil {
		return nil, err
	}
	written, _, err := p.table.Get(own.ID)
	if err != nil {
		return nil, err
	}
	return written.Shown(own), nil
}

// Change stores the fields of body, a JSON object, and returns the complete passport. For an invalid body
// it returns the error of [passport.Passport.Change].
func (p *Passports) Change(id string, body []byte) (map[string]any, error) {
	own, err := p.own(id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, _, err := p.table.Get(own.ID)
	if err != nil {
		return nil, err
	}
	next, err := before.Change(own.ID, body)
	if err != nil {
		return nil, err
	}
	if err := p.table.Put(own.ID, next); err != nil {
		return nil, err
	}
	p.characters.rename(own.ID, next.Name())
	p.bus.Publish("", "", event.Changed{What: "characters", ID: own.ID})
	return next.Shown(own), nil
}

// remove deletes the owner's fields of a character's passport.
func (p *Passports) remove(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.table.Delete(id); err != nil {
		return err
	}
	p.characters.rename(id, "")
	return nil
}

// own returns the values that the passport of a character has without the owner's changes.
func (p *Passports) own(id string) (passport.Own, error) {
	c, err := p.characters.byID(id)
	if err != nil {
		return passport.Own{}, err
	}
	m := c.manifest
	own := passport.Own{ID: id, Name: cmp.Or(c.ownName, c.Name), Description: m.Description, Avatar: m.Text("body", "uri"), Image: passport.Picture(m.Text("image")),
		Skills: p.skills(id), Created: p.installed,
		Registration: passport.NewRegistration(m.Text("id", "chain"), m.Text("id", "registry"), m.Text("id", "agentId"))}
	if c.from == fromImport {
		if f, err := os.Stat(filepath.Join(ImportDir(p.characters.data), id+".json")); err == nil {
			own.Created = f.ModTime()
		}
	}
	if at, err := time.Parse(time.RFC3339, m.Text("created")); err == nil {
		own.Created = at
	}
	return own, nil
}

// byID returns the character with an ID, which may be the default character.
func (k *Characters) byID(id string) (character, error) {
	if id == agent.DefaultCharacter {
		return k.defaultCharacter(), nil
	}
	if !config.PersonaName().MatchString(id) {
		return character{}, &httpserver.Fault{Word: "bad_character_id", Sentence: config.CheckCharacter(id).Error(), HTTP: http.StatusBadRequest}
	}
	if k.Exists(id) {
		char, _ := k.lookup(id)
		return char, nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, char := range k.characters { // lookup does not find personas from the configuration by ID: their keys are paths
		if char.ID == id {
			return char, nil
		}
	}
	return character{}, errUnknown(id)
}

// errUnknown returns the error for an ID that no character has.
func errUnknown(id string) error {
	return &httpserver.Fault{Word: "unknown_character", Sentence: fmt.Sprintf("there is no character %.60q; perch character list shows them", id),
		HTTP: http.StatusNotFound}
}
