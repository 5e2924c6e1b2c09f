package config

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/avatar/llmvtuber"
	"perch/gateway/avatar/relay"
	"perch/gateway/homeassistant"
	"perch/secret"
)

// Web holds the settings of the page, and of proxies that have authenticated the owner.
type Web struct {
	Enabled       bool     `yaml:"enabled" label:"Page for browsers"`
	Ingress       []string `yaml:"ingress" label:"Proxies that let in owners"`       // IP addresses of the proxies
	IngressListen string   `yaml:"ingress_listen" label:"Address for these proxies"` // the address to listen on for the proxies
}

// Proxies returns the addresses of web.ingress. Its error joins one error for each invalid address.
func (w Web) Proxies() (proxies []netip.Addr, err error) {
	for i, text := range w.Ingress {
		proxy, e := netip.ParseAddr(text)
		if e != nil || proxy.IsUnspecified() || proxy.IsMulticast() {
			err = errors.Join(err, fmt.Errorf("proxy %d: %q is not the address of a machine, such as 172.30.32.2", i+1, text))
		}
		proxies = append(proxies, proxy.Unmap())
	}
	return proxies, err
}

// checkWeb checks the settings of the page.
func checkWeb(k *checker, w Web) {
	_, err := w.Proxies()
	k.failedEach("web.ingress", err)
	if w.IngressListen != "" {
		k.listen("web.ingress_listen", w.IngressListen)
		if len(w.Ingress) == 0 {
			k.fault("web.ingress_listen", errors.New("nobody may connect to it while web.ingress is empty; add the proxy's address to web.ingress"))
		}
	}
}

// Skins holds the settings of skins: programs that show what the agent is doing and talk with it.
type Skins struct {
	Key        string           `yaml:"key" label:"Key for other machines" words:"password token"`
	KeyFile    string           `yaml:"key_file"`
	QueryToken bool             `yaml:"query_token" label:"Key may be in the address"`
	System     bool             `yaml:"system" label:"Skins may instruct the character"` // whether a skin may add a system message to the prompt
	Vocabulary agent.Vocabulary `yaml:"vocabulary" label:"Words for faces"`
	// Vocabularies adds vocabularies (sets of words for faces), and replaces words in the built-in
	// ones.
	Vocabularies map[agent.Vocabulary]map[string]string `yaml:"vocabularies" label:"Your own words for faces"`
	Model        Live2DModel                            `yaml:"live2d_model" label:"Live2D model"`
	Hooks        struct {
		Robots []string `yaml:"robots" label:"Robots that show coding agents"`
	} `yaml:"hooks"`
	OpenClaw string `yaml:"openclaw" label:"Address for OpenClaw"` // the address for clients of OpenClaw's gateway
	VCCP     string `yaml:"vccp" label:"Address for VCCP"`         // a loopback address for clients of VCCP that expect the protocol's own port
}

// NamesProgramAt reports whether the configuration names another program on this machine with the port
// of an address: a page in allowed_origins, or an avatar program in relays.
func (c *Config) NamesProgramAt(address string) bool {
	_, port, _ := net.SplitHostPort(address)
	urls := slices.Clone(c.AllowedOrigins)
	for _, r := range c.Relays {
		defaultURL := ""
		for _, k := range relay.Kinds() {
			if k.Name == r.Kind {
				defaultURL = k.URL
			}
		}
		urls = append(urls, cmp.Or(r.URL, defaultURL))
	}
	return slices.ContainsFunc(urls, func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && u.Port() == port && port != "" && Loopback(u.Host)
	})
}

// Live2DModel is the path of a file that describes the Live2D model of avatar programs.
type Live2DModel string

// Read reads the file of the model.
func (m Live2DModel) Read() (*llmvtuber.Model, error) {
	text, err := os.ReadFile(string(m))
	if err != nil {
		return nil, err
	}
	model, err := llmvtuber.ReadModel(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m, err)
	}
	return model, nil
}

// Bridge holds the settings of the bridge API, which programs of the Stack-chan community use.
type Bridge struct {
	Key          string   `yaml:"key" label:"Key for other machines" words:"password token"`
	KeyFile      string   `yaml:"key_file"`
	TimeoutShort Duration `yaml:"timeout_short" label:"Longest wait for a command"`
	TimeoutLong  Duration `yaml:"timeout_long" label:"Longest wait for photos and hard questions"`
}

// checkBridge checks the settings of the bridge API.
func checkBridge(k *checker, b Bridge) {
	k.key("bridge", b.Key, b.KeyFile)
	for path, d := range map[string]Duration{"bridge.timeout_short": b.TimeoutShort, "bridge.timeout_long": b.TimeoutLong} {
		if t := time.Duration(d); t < time.Second || t > 5*time.Minute {
			k.fault(path, fmt.Errorf("a tool may take 1s to 5m, not %s", t))
		}
	}
}

// MQTT holds the settings of the connection to Home Assistant.
type MQTT struct {
	Broker          string `yaml:"broker" label:"MQTT broker" words:"connect home assistant mosquitto" options:"embedded=Perch's own;supervisor=Home Assistant's;none=None"`
	Listen          string `yaml:"listen" label:"Address of Perch's own broker" words:"port 1883"` // the address of the embedded broker
	User            string `yaml:"user" label:"User of the broker" words:"connect login"`
	Password        string `yaml:"password" label:"Password of the broker" words:"connect login secret"`
	PasswordFile    string `yaml:"password_file" label:"File with the password"`
	CA              string `yaml:"ca" label:"Certificate of the broker's authority"` // path of a PEM file
	BaseTopic       string `yaml:"base_topic" label:"First part of topics"`
	DiscoveryPrefix string `yaml:"discovery_prefix" label:"Discovery prefix"`
}

// Values of mqtt.broker with which the embedded broker may be used. The others are none and addresses.
const (
	EmbeddedBroker   = "embedded"
	SupervisorBroker = "supervisor" // Home Assistant's broker, or the embedded one if Home Assistant has none
)

// MayEmbed reports whether the embedded broker may be used.
func (m MQTT) MayEmbed() bool { return m.Broker == EmbeddedBroker || m.Broker == SupervisorBroker }

// GeneratesPassword reports whether the appliance generates the embedded broker's password.
func (m MQTT) GeneratesPassword() bool {
	return m.MayEmbed() && m.Password == "" && m.PasswordFile == ""
}

// Files returns the broker's password, from the configuration or a file, and the content of the PEM file of the
// authority that has signed the broker's certificate. ca is nil if no such file is configured.
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

// MQTTUser is the user name for the embedded broker if none is configured.
const MQTTUser = "perch"

// MirrorOptions returns the options of the connection to Home Assistant. The password is empty if
// GeneratesPassword reports true.
func (m MQTT) MirrorOptions() (homeassistant.Options, error) {
	var o homeassistant.Options
	o.Broker, o.Listen, o.User, o.Base, o.Prefix = m.Broker, m.Listen, m.User, m.BaseTopic, m.DiscoveryPrefix
	o.Log = slog.New(slog.DiscardHandler)
	var err error
	if o.Password, o.CA, err = m.Files(); err != nil {
		return o, err
	}
	if m.MayEmbed() {
		o.User = cmp.Or(o.User, MQTTUser)
	}
	return o, nil
}

// checkMQTT checks the connection to Home Assistant.
func checkMQTT(k *checker, m MQTT, inApp bool) {
	k.listen("mqtt.listen", m.Listen)
	if m.Broker == SupervisorBroker && !inApp {
		k.fault("mqtt.broker", errors.New("there is no Supervisor, because Home Assistant has not started this program as its app; "+
			"use embedded, none or the address of a broker"))
		return
	}
	o, err := m.MirrorOptions()
	if err != nil {
		k.failed("mqtt", err)
		return
	}
	o.ID, o.Password = "00000000", cmp.Or(o.Password, "generated at the first start")
	k.keyErrors("mqtt", "", o.Check())
}

// Firmware holds the public key for the signatures of robots' firmware images.
type Firmware struct {
	PublicKey string `yaml:"public_key" label:"Key that signs firmware" words:"update upgrade signature"` // ed25519, base64; empty if images need no signature
}

// VerificationKey returns the public key, or nil if images need no signature.
func (f Firmware) VerificationKey() (ed25519.PublicKey, error) {
	if f.PublicKey == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(f.PublicKey))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("it is not an ed25519 public key: 32 bytes in base64")
	}
	return key, nil
}
