package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
)

// skinsConfig is who may show what the agent is doing, and talk with it.
type skinsConfig struct {
	Key          string                       `yaml:"key"`
	KeyFile      string                       `yaml:"key_file"`
	QueryToken   bool                         `yaml:"query_token"`
	Vocabulary   string                       `yaml:"vocabulary"`
	Vocabularies map[string]map[string]string `yaml:"vocabularies"` // more, or other words of those there are
	Hooks        struct {
		Robots []string `yaml:"robots"`
	} `yaml:"hooks"`
}

// words is the table of faces, with the owner's own.
func (s skinsConfig) words() (*agent.Words, error) {
	added := map[agent.Vocabulary]map[string]string{}
	for name, words := range s.Vocabularies {
		added[agent.Vocabulary(name)] = words
	}
	return agent.NewWords(added)
}

// robots are those that coding agents drive.
func (s skinsConfig) robots(find func(string) (device.ID, error)) (all []device.ID, err error) {
	for i, name := range s.Hooks.Robots {
		id, e := find(name)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("robot %d: %w", i+1, e))
		}
		all = append(all, id)
	}
	return all, err
}

func (k *checker) skins(s skinsConfig, find func(string) (device.ID, error)) {
	k.key("skins", s.Key, s.KeyFile)
	words, err := s.words()
	switch {
	case err != nil:
		k.fault("skins.vocabularies", "%s", err)
	case !words.Knows(agent.Vocabulary(s.Vocabulary)):
		k.fault("skins.vocabulary", "there is no vocabulary %q; there are %v", s.Vocabulary, words.Vocabularies())
	}
	if _, err := s.robots(find); err != nil {
		k.fault("skins.hooks.robots", "%s", err)
	}
}

// bridgeConfig is who may use the bridge API, and how long its tools may take.
type bridgeConfig struct {
	Key          string   `yaml:"key"`
	KeyFile      string   `yaml:"key_file"`
	TimeoutShort duration `yaml:"timeout_short"`
	TimeoutLong  duration `yaml:"timeout_long"`
}

func (k *checker) bridge(b bridgeConfig) {
	k.key("bridge", b.Key, b.KeyFile)
	for path, d := range map[string]duration{"bridge.timeout_short": b.TimeoutShort, "bridge.timeout_long": b.TimeoutLong} {
		if t := time.Duration(d); t < time.Second || t > 5*time.Minute {
			k.fault(path, "a tool may take 1s to 5m, not %s", t)
		}
	}
}

// key finds what is wrong with the key of a door.
func (k *checker) key(path, value, file string) {
	key, err := secretOf("key", value, file)
	switch {
	case err != nil:
		k.failed(path, err)
	case key != "" && len(key) < leastKey:
		k.fault(path+".key", "it has %d characters; a key has %d or more", len(key), leastKey)
	}
}

// leastKey is how short a key may be that is kept from guessing by the limit
// on tries.
const leastKey = 8

// mqttConfig is how Home Assistant hears of the house.
type mqttConfig struct {
	Broker          string `yaml:"broker"`
	Listen          string `yaml:"listen"` // the embedded broker
	User            string `yaml:"user"`
	Password        string `yaml:"password"`
	PasswordFile    string `yaml:"password_file"`
	CA              string `yaml:"ca"` // a file
	BaseTopic       string `yaml:"base_topic"`
	DiscoveryPrefix string `yaml:"discovery_prefix"`
}

const embedded = "embedded"

// generated reports whether the broker's password is one we make.
func (m mqttConfig) generated() bool {
	return m.Broker == embedded && m.Password == "" && m.PasswordFile == ""
}

// mqtt finds what the mirror could not work with.
func (k *checker) mqtt(c *config) {
	m := c.MQTT
	if _, err := splitAddress(m.Listen); err != nil {
		k.fault("mqtt.listen", "%s", err)
	}
	if _, _, err := m.files(); err != nil {
		k.failed("mqtt", err)
		return
	}
	err := k.try(c, m)
	if err == nil {
		return
	}
	for fault := range strings.Lines(err.Error()) {
		fault = strings.TrimSpace(fault)
		if key, what, _ := strings.Cut(fault, " "); strings.HasPrefix(key, "mqtt.") {
			k.fault(key, "%s", what)
			continue
		}
		k.fault("mqtt", "%s", fault)
	}
}

// files are what the files that it names hold: the password, where it has one,
// and the certificate authority.
func (m mqttConfig) files() (password string, ca []byte, err error) {
	if password, err = secretOf("password", m.Password, m.PasswordFile); err != nil {
		return "", nil, err
	}
	if m.CA != "" {
		if ca, err = os.ReadFile(m.CA); err != nil {
			return "", nil, fmt.Errorf("read ca: %w", err)
		}
	}
	return password, ca, nil
}

// firmwareConfig is whose images robots may be given.
type firmwareConfig struct {
	PublicKey string `yaml:"public_key"` // ed25519, base64; empty is anybody's
}

func (f firmwareConfig) signer() (ed25519.PublicKey, error) {
	if f.PublicKey == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(f.PublicKey))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("it is no ed25519 public key: 32 bytes in base64")
	}
	return key, nil
}

func (k *checker) firmware(f firmwareConfig) {
	if _, err := f.signer(); err != nil {
		k.fault("firmware.public_key", "%s", err)
	}
}
