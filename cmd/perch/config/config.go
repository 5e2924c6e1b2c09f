// Package config reads and checks the configuration. Its sources, each overriding those before, are: the
// defaults, the owner's file, the overlay (a file with the settings that were changed on the page and by
// commands), the options of the Home Assistant app, and environment variables. Callers apply flags last.
// Errors name the file, line and key.
package config

import (
	"log/slog"
	"time"

	"perch/agent"
	"perch/agent/reflex"
	"perch/agent/skill"
	"perch/device"
	"perch/perception"
	"perch/voice/espeak"
	"perch/voice/sphinx"
)

// Config is the configuration. The file perch.yaml in this folder documents its keys. Packages
// outside cmd/perch do not use Config; they define Options with the values that they need.
type Config struct {
	Listen         []string  `yaml:"listen"`
	Local          []string  `yaml:"local"`
	TLS            TLS       `yaml:"tls"`
	Name           string    `yaml:"name"`
	PublicURL      string    `yaml:"public_url"`
	AllowedHosts   []string  `yaml:"allowed_hosts"`
	AllowedOrigins []string  `yaml:"allowed_origins"`
	Timezone       string    `yaml:"timezone"`
	Language       Languages `yaml:"language"`
	MDNS           struct {
		Enabled    bool     `yaml:"enabled"`
		Interfaces []string `yaml:"interfaces"`
	} `yaml:"mdns"`
	Adoption string `yaml:"adoption"`
	Robots   struct {
		Idle      Duration `yaml:"idle"`
		Greeting  bool     `yaml:"greeting"`
		UserTools bool     `yaml:"user_tools"`
		Framing   int      `yaml:"framing"`
		KeepTurns int      `yaml:"keep_turns"`

		Transport string `yaml:"transport"`
		MQTT      struct {
			Listen string `yaml:"listen"`
			TLS    string `yaml:"tls"`
		} `yaml:"mqtt"`
		UDP string `yaml:"udp"`

		Each []Robot `yaml:"each"`

		AwayAfter        Duration `yaml:"away_after"`
		ShareTranscripts bool     `yaml:"share_transcripts"`
	} `yaml:"robots"`
	Speech struct {
		Silence      Duration     `yaml:"silence"`
		Recognizers  Recognizers  `yaml:"recognizers"`
		Synthesizers Synthesizers `yaml:"synthesizers"`
	} `yaml:"speech"`
	Brains    Brains `yaml:"brains"`
	BrainDeep Models `yaml:"brain_deep"`
	Persona   struct {
		Name string `yaml:"name"`
		File string `yaml:"file"`
	} `yaml:"persona"`
	Characters []Character `yaml:"characters"`
	Memory     struct {
		Most          int `yaml:"most"`
		MemoryTokens  int `yaml:"memory_tokens"`
		HistoryTokens int `yaml:"history_tokens"`
	} `yaml:"memory"`
	Diary struct {
		Keep int `yaml:"keep"`
	} `yaml:"diary"`
	Wyoming struct {
		Listen string `yaml:"listen"`
	} `yaml:"wyoming"`
	Mood       string            `yaml:"mood"`
	Behaviours perception.Tuning `yaml:"behaviours"`
	Rules      []Rule            `yaml:"rules"`
	Web        Web               `yaml:"web"`
	Skins      Skins             `yaml:"skins"`
	Skills     Skills            `yaml:"skills"`
	Relays     Relays            `yaml:"relays"`
	MQTT       MQTT              `yaml:"mqtt"`
	Bridge     Bridge            `yaml:"bridge"`
	Firmware   Firmware          `yaml:"firmware"`
	Log        struct {
		Level string `yaml:"level"`
	} `yaml:"log"`
	Debug struct {
		Listen string `yaml:"listen"`
	} `yaml:"debug"`
}

// Default returns the defaults outside Home Assistant; see Source.defaults.
func Default() Config {
	c := Config{
		Listen: []string{":8003"}, Local: []string{"127.0.0.1:8004"}, Name: "perch", Language: "en", Adoption: "open",
	}
	c.MDNS.Enabled = true
	c.Robots.Idle = Duration(time.Minute)
	c.Robots.Greeting = true
	c.Robots.Framing = 1
	c.Robots.KeepTurns = 200
	c.Robots.Transport = string(device.WebSocket)
	c.Robots.MQTT.Listen, c.Robots.UDP = ":1884", ":8003"
	c.Robots.AwayAfter = Duration(24 * time.Hour)
	c.Speech.Silence = Duration(600 * time.Millisecond)
	c.Speech.Recognizers = Recognizers{{"sphinx", &sphinx.Keys{}}}
	c.Speech.Synthesizers = Synthesizers{{"espeak", &espeak.Options{Voice: "en-us"}}}
	c.Brains = Brains{{"reflex", &reflex.Keys{}}}
	c.Persona.Name = "Chan"
	c.Characters = []Character{}
	c.Memory.Most = 2000
	c.Memory.MemoryTokens = 2048
	c.Memory.HistoryTokens = 3000
	c.Diary.Keep = 5000
	c.Web.Enabled = true
	c.Skins.Vocabulary = agent.VocabularyRFC
	c.Skins.VCCP = "localhost:3000"
	c.Skills.Trust = skill.OwnedOnly
	c.Relays = Relays{}
	c.Mood = "on"
	c.Behaviours = perception.DefaultTuning()
	c.MQTT = MQTT{Broker: EmbeddedBroker, Listen: ":1883", BaseTopic: "perch", DiscoveryPrefix: "homeassistant"}
	c.Bridge = Bridge{TimeoutShort: Duration(5 * time.Second), TimeoutLong: Duration(30 * time.Second)}
	c.Log.Level = "info"
	return c
}

// Zone returns the household's time zone: the configured one, or else the machine's.
func (c *Config) Zone() (*time.Location, error) {
	if c.Timezone == "" {
		return time.Local, nil
	}
	return time.LoadLocation(c.Timezone)
}

// Level returns the log level.
func (c *Config) Level() slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(c.Log.Level)) // check has accepted the level
	return l
}
