// Package config reads, checks and changes the configuration of the appliance. It reads these sources; each
// overrides the sources before it: the defaults, the owner's file, the overlay (a file with the settings
// that were changed on the page and by commands), the options of the Home Assistant app, and environment
// variables. Command-line flags override all of them; the callers apply the flags. Errors name the file,
// line and key.
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
// outside cmd/perch do not use Config; they define Options with the values that they need. The tags other
// than yaml describe a key on the page; see description.
type Config struct {
	Listen         []string  `yaml:"listen" group:"network" label:"Addresses for robots and browsers" words:"port"`
	Local          []string  `yaml:"local" group:"network" label:"Addresses for programs of this machine" words:"port localhost"`
	TLS            TLS       `yaml:"tls" group:"network" label:"Encryption (https)"`
	Name           string    `yaml:"name" group:"network" label:"Name in the network" words:"hostname rename address local"`
	PublicURL      string    `yaml:"public_url" group:"network" label:"Address for robots, if it is another" words:"container docker forwarded port"`
	AllowedHosts   []string  `yaml:"allowed_hosts" group:"network" label:"More host names" words:"domain proxy"`
	AllowedOrigins []string  `yaml:"allowed_origins" group:"network" label:"Web pages that may use Perch" words:"dashboard panel browser cors"`
	Language       Languages `yaml:"language" group:"languages" label:"Languages" words:"speak understand english german translation"`
	Timezone       string    `yaml:"timezone" group:"languages" label:"Time zone" words:"clock time hour wrong" format:"timezone"`
	MDNS           struct {
		Enabled    bool     `yaml:"enabled" label:"Be found in the network"`
		Interfaces []string `yaml:"interfaces" label:"Network cards"`
	} `yaml:"mdns" group:"network" label:"Finding in the network" words:"bonjour zeroconf discovery"`
	MQTT     MQTT   `yaml:"mqtt" group:"home"`
	Adoption string `yaml:"adoption" group:"privacy" label:"New robots" words:"adopt stranger code trust" options:"open=May talk at once;code=Wait until you adopt them"`
	Robots   struct {
		Idle      Duration `yaml:"idle" group:"voice" label:"How long robots listen on after a talk" words:"wake word sleep battery channel open listening"`
		Greeting  bool     `yaml:"greeting" group:"greeting" label:"Answers the wake word" words:"wake word hey reply confirm silent"`
		UserTools bool     `yaml:"user_tools" group:"privacy" label:"Language models may restart and update robots" words:"reboot upgrade tools allow"`
		Framing   int      `yaml:"framing" label:"Framing of sound"`
		KeepTurns int      `yaml:"keep_turns" group:"privacy" label:"Conversations that are kept" words:"stop keeping what was said history record recording delete transcript store save log"`

		Transport string `yaml:"transport" group:"network" label:"How robots connect" words:"websocket mqtt reach" options:"websocket=WebSocket, only while they talk;mqtt=MQTT and UDP, always"`
		MQTT      struct {
			Listen string `yaml:"listen"`
			TLS    string `yaml:"tls" label:"Encrypted address"`
		} `yaml:"mqtt" group:"network" label:"Robots over MQTT"`
		UDP string `yaml:"udp" group:"network" label:"Address for robots' sound over UDP"`

		Each []Robot `yaml:"each" label:"Settings of single robots"`

		AwayAfter        Duration `yaml:"away_after" group:"home" label:"A robot is offline after" words:"unavailable away missing"`
		ShareTranscripts bool     `yaml:"share_transcripts" group:"privacy" label:"Home Assistant gets what was said" words:"transcript words conversation recorder share"`
	} `yaml:"robots"`
	Speech struct {
		Silence      Duration     `yaml:"silence" group:"voice" label:"Silence that ends a sentence" words:"pause cut off interrupt slow faster too early"`
		Recognizers  Recognizers  `yaml:"recognizers" group:"voice" label:"Ears: speech recognition" words:"hear understand whisper microphone stt"`
		Synthesizers Synthesizers `yaml:"synthesizers" group:"voice" label:"Voices: speech synthesis" words:"speak sound piper tts"`
	} `yaml:"speech"`
	Brains    Brains `yaml:"brains" label:"Brains: what answers" words:"language model llm ai ollama openai chatgpt think"`
	BrainDeep Models `yaml:"brain_deep" label:"Brains for hard questions" words:"language model llm think"`
	Persona   struct {
		Name string `yaml:"name" group:"voice" label:"Name that robots call themselves" words:"called who are you rename"`
		File string `yaml:"file" label:"Character of robots" words:"personality prompt instructions persona"`
	} `yaml:"persona"`
	Characters []Character `yaml:"characters" label:"Characters" words:"personality persona"`
	Memory     struct {
		Most          int `yaml:"most" group:"privacy" label:"Facts that are remembered" words:"memory forget remember"`
		MemoryTokens  int `yaml:"memory_tokens" label:"Memories that a language model gets, in tokens"`
		HistoryTokens int `yaml:"history_tokens" label:"Conversation that a language model gets, in tokens" words:"context"`
	} `yaml:"memory"`
	Diary struct {
		Keep int `yaml:"keep" group:"privacy" label:"Diary entries that are kept" words:"stop keeping what was said history record"`
	} `yaml:"diary"`
	Wyoming struct {
		Listen string `yaml:"listen" group:"home" label:"Wyoming: address for Home Assistant's voice" words:"voice assist satellite"`
	} `yaml:"wyoming"`
	Mood       string            `yaml:"mood" group:"behaviour" label:"Moods" words:"feelings emotion happy sad face" options:"on=On;off=Off"`
	Behaviours perception.Tuning `yaml:"behaviours" group:"behaviour"`
	Rules      []Rule            `yaml:"rules" group:"behaviour" label:"Your own reactions" words:"automation when then trigger"`
	Music      []Music           `yaml:"music" group:"behaviour" label:"Music and radio" words:"station stream song folder play"`
	Web        Web               `yaml:"web" group:"network" label:"This page"`
	Skins      Skins             `yaml:"skins" label:"Skins and avatars"`
	Skills     Skills            `yaml:"skills" label:"Skills"`
	Relays     Relays            `yaml:"relays" label:"Avatar programs" words:"vtube studio live2d vrm warudo"`
	Bridge     Bridge            `yaml:"bridge" label:"Bridge for other programs"`
	Firmware   Firmware          `yaml:"firmware"`
	Log        struct {
		Level string `yaml:"level" label:"Detail of the log" words:"debug verbose logging" options:"debug=Everything;info=Usual;warn=Warnings and errors;error=Errors only"`
	} `yaml:"log"`
	Debug struct {
		Listen string `yaml:"listen" label:"Profiles of the program"`
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
	c.Music = []Music{}
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

// Zone returns the configured time zone, or the machine's if none is configured.
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
