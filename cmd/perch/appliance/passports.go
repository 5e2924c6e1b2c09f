package appliance

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/passport"
	"perch/cmd/perch/config"
	"perch/event"
	"perch/store"
)

// passports are those of the characters: what an owner wrote, over what a character
// itself says.
type passports struct {
	characters *characters
	skills     func(character string) []string // by their names
	table      *store.Table[passport.Passport]
	bus        *event.Bus
	installed  time.Time

	mu sync.Mutex // while one is changed
}

// newPassports reads nothing yet.
func (a *Appliance) newPassports() (*passports, error) {
	text, _, err := a.identity.Get("installed")
	if err != nil {
		return nil, err
	}
	installed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		installed = a.Started
	}
	return &passports{characters: a.Characters, skills: a.Skills.Names, table: store.NewTable[passport.Passport](a.DB, "passports"), bus: a.Bus,
		installed: installed}, nil
}

// Passport is a character's, whole.
func (p *passports) Passport(id string) (map[string]any, error) {
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

// Change writes the fields that body, a JSON object, names.
func (p *passports) Change(id string, body []byte) (map[string]any, error) {
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
	p.bus.Publish("", "", event.Changed{What: "characters", ID: own.ID})
	return next.Shown(own), nil
}

// forget removes the passport of a character that is removed.
func (p *passports) forget(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.table.Delete(id)
}

// own is what a character says of itself.
func (p *passports) own(id string) (passport.Own, error) {
	c, err := p.characters.byID(id)
	if err != nil {
		return passport.Own{}, err
	}
	m := c.manifest
	own := passport.Own{ID: id, Name: c.Name, Description: m.Description, Avatar: m.Text("body", "uri"), Image: passport.Picture(m.Text("image")),
		Skills: p.skills(id), Created: p.installed,
		Registration: passport.NewRegistration(m.Text("id", "chain"), m.Text("id", "registry"), m.Text("id", "agentId"))}
	if c.from == fromImport {
		if f, err := os.Stat(filepath.Join(p.characters.imports(), id+".json")); err == nil {
			own.Created = f.ModTime()
		}
	}
	if at, err := time.Parse(time.RFC3339, m.Text("created")); err == nil {
		own.Created = at
	}
	return own, nil
}

// byID is a character by its id, the household's among them.
func (k *characters) byID(id string) (castCharacter, error) {
	if id == agent.DefaultCharacter {
		return castCharacter{Cast: config.Cast{Persona: k.now().persona}, from: fromHousehold}, nil
	}
	if !config.PersonaName().MatchString(id) {
		return castCharacter{}, badID(config.CheckCharacter(id))
	}
	if k.Known(id) {
		own, _ := k.named(id)
		return own, nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, own := range k.known { // a persona of the configuration is known by its path
		if own.ID == id {
			return own, nil
		}
	}
	return castCharacter{}, unknownCharacter(id)
}
