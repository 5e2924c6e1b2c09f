package config

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
	"perch/secret"
)

// Web is the page, and the proxies that let in owners only.
type Web struct {
	Enabled       bool     `yaml:"enabled"`
	Ingress       []string `yaml:"ingress"`
	IngressListen string   `yaml:"ingress_listen"`
}

// Proxies are those of web.ingress.
func (w Web) Proxies() (all []netip.Addr, err error) {
	for i, text := range w.Ingress {
		at, e := netip.ParseAddr(text)
		if e != nil || at.IsUnspecified() || at.IsMulticast() {
			err = errors.Join(err, fmt.Errorf("proxy %d: %q is no address of a machine, such as 172.30.32.2", i+1, text))
		}
		all = append(all, at.Unmap())
	}
	return all, err
}

// Skins is who may show what the agent is doing, and talk with it.
type Skins struct {
	Key        string           `yaml:"key"`
	KeyFile    string           `yaml:"key_file"`
	QueryToken bool             `yaml:"query_token"`
	System     bool             `yaml:"system"` // a skin's system message is heard
	Vocabulary agent.Vocabulary `yaml:"vocabulary"`
	// Vocabularies are more, or other words of those there are.
	Vocabularies map[agent.Vocabulary]map[string]string `yaml:"vocabularies"`
	Model        Live2DModel                            `yaml:"live2d_model"`
	Hooks        struct {
		Robots []string `yaml:"robots"`
	} `yaml:"hooks"`
	OpenClaw string `yaml:"openclaw"` // where programs made for OpenClaw's gateway connect
}

// Live2DModel is a file that describes the Live2D model of avatar programs.
type Live2DModel string

// DrivenRobots are those that coding agents drive.
func (c *Config) DrivenRobots() (all []device.ID, err error) {
	for i, name := range c.Skins.Hooks.Robots {
		id, e := c.FindRobot(name)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("robot %d: %w", i+1, e))
		}
		all = append(all, id)
	}
	return all, err
}

func (k *checker) skins(c *Config) {
	s := c.Skins
	k.key("skins", s.Key, s.KeyFile)
	words, err := agent.NewWords(s.Vocabularies)
	if err == nil {
		k.chosen("skins.vocabulary", namesOf(words.Vocabularies()))
	}
	switch {
	case err != nil:
		k.fault("skins.vocabularies", err)
	case !words.Knows(s.Vocabulary):
		k.fault("skins.vocabulary", fmt.Errorf("there is no vocabulary %q; there are %v", s.Vocabulary, words.Vocabularies()))
	}
	_, err = c.DrivenRobots()
	k.each("skins.hooks.robots", err)
	if s.Model != "" {
		k.failed("skins.live2d_model", k.Check(c, s.Model))
	}
	if s.OpenClaw == "" {
		return
	}
	k.listen("skins.openclaw", s.OpenClaw)
	if key, err := secret.Read("key", s.Key, s.KeyFile); err == nil && key == "" && !Loopback(s.OpenClaw) {
		k.fault("skins.openclaw", fmt.Errorf("%q is no loopback address, so that whoever connects needs a token: set skins.key, or use 127.0.0.1:18789", s.OpenClaw))
	}
}

func namesOf[T ~string](all []T) (names []string) {
	for _, one := range all {
		names = append(names, string(one))
	}
	return names
}

// Bridge is who may use the bridge API, and how long its tools may take.
type Bridge struct {
	Key          string   `yaml:"key"`
	KeyFile      string   `yaml:"key_file"`
	TimeoutShort Duration `yaml:"timeout_short"`
	TimeoutLong  Duration `yaml:"timeout_long"`
}

func (k *checker) bridge(b Bridge) {
	k.key("bridge", b.Key, b.KeyFile)
	for path, d := range map[string]Duration{"bridge.timeout_short": b.TimeoutShort, "bridge.timeout_long": b.TimeoutLong} {
		if t := time.Duration(d); t < time.Second || t > 5*time.Minute {
			k.fault(path, fmt.Errorf("a tool may take 1s to 5m, not %s", t))
		}
	}
}

// key finds what is wrong with the key of a door.
func (k *checker) key(path, value, file string) {
	key, err := secret.Read("key", value, file)
	switch {
	case err != nil:
		k.failed(path, err)
	case key != "" && len(key) < leastKey:
		k.fault(path+".key", fmt.Errorf("it has %d characters; a key has %d or more", len(key), leastKey))
	}
}

// leastKey is how short a key may be that is kept from guessing by the limit
// on tries.
const leastKey = 8

// MQTT is the connection to Home Assistant.
type MQTT struct {
	Broker          string `yaml:"broker"`
	Listen          string `yaml:"listen"` // the embedded broker
	User            string `yaml:"user"`
	Password        string `yaml:"password"`
	PasswordFile    string `yaml:"password_file"`
	CA              string `yaml:"ca"` // a file
	BaseTopic       string `yaml:"base_topic"`
	DiscoveryPrefix string `yaml:"discovery_prefix"`
}

// Values of mqtt.broker for a broker of the appliance's own, and for the one that Home
// Assistant's Supervisor knows, or our own where it knows none.
const (
	EmbeddedBroker   = "embedded"
	SupervisorBroker = "supervisor"
)

// Own reports whether the broker is our own, or may be.
func (m MQTT) Own() bool { return m.Broker == EmbeddedBroker || m.Broker == SupervisorBroker }

// Generated reports whether the broker's password is one we make.
func (m MQTT) Generated() bool { return m.Own() && m.Password == "" && m.PasswordFile == "" }

// mqtt finds what the mirror could not work with.
func (k *checker) mqtt(c *Config) {
	m := c.MQTT
	k.listen("mqtt.listen", m.Listen)
	if m.Broker == SupervisorBroker && !isApp(k.Environ) {
		k.fault("mqtt.broker", errors.New("there is no Supervisor here, for Home Assistant has not started this program as its app; "+
			"it is embedded, none or the address of a broker"))
		return
	}
	if _, _, err := m.Files(); err != nil {
		k.failed("mqtt", err)
		return
	}
	k.named("mqtt", "", k.Check(c, m))
}

// Files are what the files that it names hold: the password, where it has one,
// and the certificate authority.
func (m MQTT) Files() (password string, ca []byte, err error) {
	if password, err = secret.Read("password", m.Password, m.PasswordFile); err != nil {
		return "", nil, err
	}
	if m.CA != "" {
		if ca, err = os.ReadFile(m.CA); err != nil {
			return "", nil, fmt.Errorf("read ca: %w", err)
		}
	}
	return password, ca, nil
}

// Firmware is the key that images for robots have to be signed with.
type Firmware struct {
	PublicKey string `yaml:"public_key"` // ed25519, base64; empty is anybody's
}

// Signer is the key that images have to be signed with; nil takes any image.
func (f Firmware) Signer() (ed25519.PublicKey, error) {
	if f.PublicKey == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(f.PublicKey))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("it is no ed25519 public key: 32 bytes in base64")
	}
	return key, nil
}
