// Package skills loads those skills of characters that the configuration allows.
package skills

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"perch/agent"
	"perch/agent/diary"
	"perch/agent/mcp"
	"perch/agent/skill"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/device"
	"perch/event"
)

// Options holds the parts of an appliance that skills use.
type Options struct {
	Config   func() *config.Config // returns the current configuration
	Data     string                // the data directory
	Key      diary.Key             // signs messages
	Memory   *agent.Memory
	SkillsOf func(character string) []string // returns the names of a character's skills; nil means all
	Publish  func(robot device.ID, session string, e event.Event)
	Log      *slog.Logger
}

// New loads the skills. It logs skills that are not trusted or cannot be loaded.
func New(o Options) (*skill.Library, error) {
	c := o.Config()
	trust, err := Trust(c, o.Data)
	if err != nil {
		return nil, err
	}
	l, err := skill.New(skill.Options{
		Folder: Folder(c, o.Data), Trust: trust, Publish: o.Publish, Log: o.Log, Skills: o.SkillsOf,
		Language: func() string { return o.Config().Language.First() },
		Remember: func(c skill.Call, name, fact string) error {
			now := cmp.Or(c.Now, time.Now())
			entry := agent.Entry{Name: cmp.Or(name, fact), Body: fact, Robot: c.Robot, Session: c.Session, Source: "skill"}
			_, err := o.Memory.Of(agent.Turn{Robot: c.Robot, Session: c.Session, Now: now, Untrusted: c.Untrusted}).Remember(entry, now)
			return err
		},
		Sign: func(message string) (event.Signed, error) {
			return event.Signed{Message: message, Address: o.Key.Address(), Signature: o.Key.Sign(message)}, nil
		},
		Server: func(name, address string) (thinker.ToolSource, error) {
			return mcp.New(mcp.Options{Name: name, URL: address, Log: o.Log})
		},
	})
	if err != nil {
		return nil, err
	}
	for _, r := range l.Refused() {
		o.Log.Warn("a skill is not loaded; perch skill check says why", "path", r.Folder, "err", r.Err)
	}
	return l, nil
}

// Folder returns the directory of the skills: the configured one, or a folder of the data directory.
func Folder(c *config.Config, data string) string {
	return cmp.Or(c.Skills.Dir, filepath.Join(data, "skills"))
}

// Trust returns the rules that decide whether skills are trusted. If the appliance has a signing key, the key
// counts as an owner of every character.
func Trust(c *config.Config, data string) (skill.Trust, error) {
	trust, err := skill.ParseTrust(c.Skills.Trust, c.Skills.Allow)
	if err != nil {
		return trust, fmt.Errorf("skills: %w", err)
	}
	key, err := datadir.ReadKey(data)
	if errors.Is(err, fs.ErrNotExist) {
		return trust, nil
	}
	if err != nil {
		return trust, err
	}
	trust.Owners = append(trust.Owners, key.Public())
	return trust, nil
}
