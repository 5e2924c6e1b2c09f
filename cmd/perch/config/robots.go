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
	Robot     string `yaml:"robot"` // the robot's MAC address
	Name      string `yaml:"name"`
	Persona   string `yaml:"persona"`   // path of a persona file
	Character string `yaml:"character"` // ID of a configured or imported character
	Voice     string `yaml:"voice"`
	Brain     string `yaml:"brain"`
	Language  string `yaml:"language"`

	Transport string `yaml:"transport"` // websocket or mqtt
}

// Settings returns the settings as the registry of robots stores them.
func (r Robot) Settings() device.Settings {
	return device.Settings{Name: r.Name, Persona: cmp.Or(r.Character, r.Persona), Voice: r.Voice, Brain: r.Brain, Language: r.Language,
		Transport: device.Transport(r.Transport)}
}

// Character is an entry of characters in the configuration.
type Character struct {
	Name     string `yaml:"name"`
	Manifest string `yaml:"manifest"` // path of a file or folder, or an https address
}

// Remote reports whether the manifest has to be fetched.
func (c Character) Remote() bool { return strings.Contains(c.Manifest, "://") }

// CheckCharacter checks the ID of a configured or imported character.
func CheckCharacter(id string) error {
	if !PersonaName().MatchString(id) {
		return fmt.Errorf("%.80q is not the ID of a character: letters, digits, - and _, at most 64", id)
	}
	if id == agent.DefaultCharacter || id == "perch" {
		return fmt.Errorf("%q is the household's own character; choose another", id)
	}
	if id == "me" {
		return errors.New(`"me" stands for the requester's own character; choose another`)
	}
	return nil
}

// checkCharacters checks the characters. It reads the manifests that are files.
func checkCharacters(k *checker, characters []Character) {
	seen := map[string]bool{}
	for i, c := range characters {
		path := fmt.Sprintf("characters.%d", i)
		err := CheckCharacter(c.Name)
		if err == nil && seen[c.Name] {
			err = fmt.Errorf("%s is listed twice", c.Name)
		}
		k.failed(path+".name", err)
		seen[c.Name] = true
		if c.Remote() {
			if !strings.HasPrefix(c.Manifest, "https://") {
				k.fault(path+".manifest", errors.New("the address of a manifest must begin with https://; a file on this machine is better"))
			}
			continue
		}
		_, err = manifest.Read(context.Background(), nil, c.Manifest)
		k.failed(path+".manifest", err)
	}
}
