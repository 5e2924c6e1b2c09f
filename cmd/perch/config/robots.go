package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"perch/agent"
	"perch/agent/manifest"
	"perch/device"
)

// Robot holds the settings of one robot.
type Robot struct {
	Robot   string `yaml:"robot"` // its MAC address
	Name    string `yaml:"name"`
	Persona string `yaml:"persona"` // a file
	// Character is the id of a character, in the configuration or imported.
	Character string `yaml:"character"`
	Voice     string `yaml:"voice"`
	Brain     string `yaml:"brain"`
	Language  string `yaml:"language"`

	Transport string `yaml:"transport"` // websocket or mqtt
}

// Settings returns the settings in the form of the registry.
func (r Robot) Settings() device.Settings {
	return device.Settings{Name: r.Name, Persona: cmp.Or(r.Character, r.Persona), Voice: r.Voice, Brain: r.Brain, Language: r.Language,
		Transport: device.Transport(r.Transport)}
}

// Character is a character that the file names, by its manifest.
type Character struct {
	Name     string `yaml:"name"`
	Manifest string `yaml:"manifest"` // a file, a folder or an https address
}

// Remote reports whether the manifest has to be fetched.
func (c Character) Remote() bool { return strings.Contains(c.Manifest, "://") }

// CheckCharacter checks the id of a character.
func CheckCharacter(id string) error {
	if !PersonaName().MatchString(id) {
		return fmt.Errorf("%.80q is no id of a character: letters, digits, - and _, at most 64", id)
	}
	if id == agent.DefaultCharacter || id == "perch" {
		return fmt.Errorf("%q is the household's own character; choose another", id)
	}
	if id == "me" {
		return errors.New(`"me" is the character of whoever asks; choose another`)
	}
	return nil
}

// checkCharacters checks the characters, and reads the manifests of this machine.
func checkCharacters(k *checker, all []Character) {
	seen := map[string]bool{}
	for i, c := range all {
		at := fmt.Sprintf("characters.%d", i)
		err := CheckCharacter(c.Name)
		if err == nil && seen[c.Name] {
			err = fmt.Errorf("%s stands here twice", c.Name)
		}
		k.failed(at+".name", err)
		seen[c.Name] = true
		if c.Remote() {
			if !strings.HasPrefix(c.Manifest, "https://") {
				k.fault(at+".manifest", errors.New("an address of a manifest begins with https://; a file of this machine is better yet"))
			}
			continue
		}
		_, err = manifest.Read(context.Background(), nil, c.Manifest)
		k.failed(at+".manifest", err)
	}
}
