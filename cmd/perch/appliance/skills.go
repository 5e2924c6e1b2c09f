package appliance

import (
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
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
	trust, err := SkillTrust(a.Config, a.Data)
	if err != nil {
		return err
	}
	a.Skills.Library, err = skill.New(skill.Options{
		Folder: SkillFolder(a.Config, a.Data), Trust: trust, Publish: a.Bus.Publish, Log: a.Log,
		Remember: func(c skill.Call, name, fact string) error {
			entry := agent.Entry{Name: cmp.Or(name, fact), Body: fact, Robot: c.Robot, Source: "skill"}
			_, err := a.Memory.Of(agent.Turn{Robot: c.Robot, Untrusted: c.Untrusted}).Remember(entry, cmp.Or(c.Now, time.Now()))
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
	if _, err := os.Stat(filepath.Join(data, diaryKey)); errors.Is(err, fs.ErrNotExist) {
		return trust, nil // nothing was signed with it yet
	}
	key, err := SigningKey(data, slog.New(slog.DiscardHandler))
	if err != nil {
		return trust, err
	}
	public, _ := key.Public().(ed25519.PublicKey)
	trust.Owners = append(trust.Owners, public)
	return trust, nil
}

// SigningKey is the appliance's Ed25519 key, which is made where there is none.
func SigningKey(data string, log *slog.Logger) (ed25519.PrivateKey, error) {
	text, err := Secret(data, diaryKey, log)
	if err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is no key of 64 hex digits; restore it from a backup", filepath.Join(data, diaryKey))
	}
	return ed25519.NewKeyFromSeed(seed), nil
}
