package appliance

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"perch/agent"
	"perch/agent/mcp"
	"perch/agent/skill"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/event"
)

// skills are what the characters know how to do, with the servers that they use.
type skills struct {
	*skill.Library
	servers []*mcp.Server
}

// newSkills loads the skills of the characters. One that is not trusted or at
// fault is logged.
func (a *Appliance) newSkills() (err error) {
	a.Skills = &skills{}
	trust, err := SkillTrust(a.Config(), a.Data)
	if err != nil {
		return err
	}
	a.Skills.Library, err = skill.New(skill.Options{
		Folder: SkillFolder(a.Config(), a.Data), Trust: trust, Publish: a.Bus.Publish, Log: a.Log,
		Language: a.firstLanguage,
		Skills:   func(character string) []string { return a.Characters.SkillsOf(character) }, // which are made later, and before a turn
		Remember: func(c skill.Call, name, fact string) error {
			now := cmp.Or(c.Now, time.Now())
			entry := agent.Entry{Name: cmp.Or(name, fact), Body: fact, Robot: c.Robot, Session: c.Session, Source: "skill"}
			_, err := a.Memory.Of(agent.Turn{Robot: c.Robot, Session: c.Session, Now: now, Untrusted: c.Untrusted}).Remember(entry, now)
			return err
		},
		Sign: func(message string) (event.Signed, error) {
			return event.Signed{Message: message, Address: a.Signer.Address(), Signature: a.Signer.Sign(message)}, nil
		},
		Server: func(name, address string) (thinker.ToolSource, error) {
			server, err := mcp.New(mcp.Options{Name: name, URL: address, Log: a.Log})
			if err == nil {
				a.Skills.servers = append(a.Skills.servers, server)
			}
			return server, err
		},
	})
	if err != nil {
		return err
	}
	for _, r := range a.Skills.Refused() {
		a.Log.Warn("a skill is not loaded; perch skill check says why", "path", r.Folder, "err", r.Err)
	}
	return nil
}

// close ends what the skills have opened.
func (s *skills) close() {
	if s.Library != nil {
		s.Library.Close()
	}
	for _, server := range s.servers {
		_ = server.Close() // its end is all that is wanted
	}
}

// SkillFolder is where the skills are.
func SkillFolder(c *config.Config, data string) string {
	return cmp.Or(c.Skills.Dir, filepath.Join(data, "skills"))
}

// SkillTrust is which skills are loaded. This appliance's owner is an owner of all
// characters, once there is a key.
func SkillTrust(c *config.Config, data string) (skill.Trust, error) {
	trust, err := skill.ParseTrust(c.Skills.Trust, c.Skills.Allow)
	if err != nil {
		return trust, fmt.Errorf("skills: %w", err)
	}
	key, err := ReadKey(data)
	if errors.Is(err, fs.ErrNotExist) {
		return trust, nil // nothing was signed with it yet
	}
	if err != nil {
		return trust, err
	}
	trust.Owners = append(trust.Owners, key.Public())
	return trust, nil
}
