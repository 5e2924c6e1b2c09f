// Package config is the configuration: the owner's file, the overlay of settings that the page
// and the commands change, and the environment, read over the defaults and checked as a whole.
// Its errors name file, line and key.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/agent"
	"perch/agent/reflex"
	"perch/agent/skill"
	"perch/device"
	"perch/perception"
	"perch/voice/espeak"
	"perch/voice/sphinx"
)

// Config is the configuration file: this struct, its comments in
// packaging/perch.yaml, and nothing else. Other packages get what concerns
// them as their own small options.
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
	Relays     []Relay           `yaml:"relays"`
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

// Default is what runs with no file at all.
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
	c.Skills.Trust = skill.OwnedOnly
	c.Relays = []Relay{}
	c.Mood = "on"
	c.Behaviours = perception.DefaultTuning()
	c.MQTT = MQTT{Broker: EmbeddedBroker, Listen: ":1883", BaseTopic: "perch", DiscoveryPrefix: "homeassistant"}
	c.Bridge = Bridge{TimeoutShort: Duration(5 * time.Second), TimeoutLong: Duration(30 * time.Second)}
	c.Log.Level = "info"
	return c
}

// Duration is a time.Duration written as "60s" or "24h".
type Duration time.Duration

// UnmarshalYAML reads a duration, and refuses a bare number, which has no unit.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := time.ParseDuration(n.Value)
	if err != nil || parsed < 0 {
		// As the library says it of a time.Duration; syntax rewords both.
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: cannot unmarshal %s `%s` into time.Duration", n.Line, n.Tag, n.Value)}}
	}
	*d = Duration(parsed)
	return nil
}

// Faults are all that is wrong with a configuration, one sentence each, with
// file, line and key.
type Faults []Fault

func (f Faults) Error() string {
	var all []string
	for _, one := range f {
		all = append(all, one.String())
	}
	return strings.Join(all, "\n")
}

// ExitCode is the program's: 2, as of a wrong usage.
func (Faults) ExitCode() int { return 2 }

// mostConfig bounds the file, in bytes.
const mostConfig = 1 << 20

// Source is where a configuration is read from.
type Source struct {
	File    string   // the owner's, which is never written; empty where there is none
	Overlay string   // a file of the same schema whose keys come before those of File; empty is none
	Environ []string // of the process, "NAME=value"
	// Options is a file of keys that take the place of those in File: the options of
	// Home Assistant's app. Empty is none.
	Options string
	// Service is the account that has to read what the configuration names, where
	// that is another than ours: then its rights are checked, and ours are not.
	Service *Account
	Check   PartCheck
}

// PartCheck finds out whether a part of the appliance can be made of its own
// section of the configuration. It makes no connection. part is a Relay, a Live2DModel or an
// MQTT. Errors of the last have a line for each fault, which begins with its key.
type PartCheck func(c *Config, part any) error

// Load reads the files and the environment over the defaults, and checks the
// whole. Its error is faults, or that a file cannot be read.
func (s Source) Load() (Config, error) {
	text, overlay, err := s.texts()
	if err != nil {
		return Default(), err
	}
	return (&checker{Source: s}).load(text, overlay)
}

// texts are what the owner's file and the overlay hold. An overlay that does not exist is empty.
func (s Source) texts() (text, overlay []byte, err error) {
	if s.File != "" {
		if text, err = readConfig(s.File); err != nil {
			return nil, nil, err
		}
	}
	if s.Overlay != "" {
		if overlay, err = readConfig(s.Overlay); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return text, overlay, err
}

// load reads the texts and the environment over the defaults, and checks the whole.
func (k *checker) load(text, overlay []byte) (Config, error) {
	c := k.defaults()
	k.read(&c, text)
	if len(k.found) > 0 && len(k.unread) == 0 {
		return c, k.found // it is no YAML
	}
	if o := k.over(&c, k.Overlay, overlay); len(o.found) > 0 && len(o.unread) == 0 {
		return c, k.found
	}
	if err := k.options(&c); err != nil {
		return c, err
	}
	k.environment(&c)
	k.app(&c)
	k.languages(&c)
	return c, k.check(&c)
}

// Recheck checks a configuration that was changed after it was read.
func (s Source) Recheck(c *Config) error { return (&checker{Source: s}).check(c) }

func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", explainDenied(err, ourselves()))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostConfig+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(text) > mostConfig {
		return nil, fmt.Errorf("read the configuration: %s is larger than %d bytes", path, mostConfig)
	}
	return text, nil
}

// checker collects faults. It remembers where each key was set, so that a fault
// can say so.
type checker struct {
	Source
	found Faults
	lines map[string]line   // by key path, "speech.recognizers.0.kind"
	env   map[string]string // by key path, the variable
	// unread are the sections in which something could not be read. What was
	// left of them is not complained of as well.
	unread []string
	// choices are what a key may be, as far as it was looked at.
	choices map[string][]string
	// hidden is what keys and faults do not show, once it is known.
	hidden secretTexts
}

// line is a line of a file, from 1.
type line struct {
	file   string
	number int
}

// section is the part of the configuration that a key belongs to: one at the
// top, or one entry of a list there.
func section(path string) string {
	key, below, _ := strings.Cut(path, ".")
	place, _, _ := strings.Cut(below, ".")
	if _, err := strconv.Atoi(place); err == nil {
		return key + "." + place
	}
	return key
}

// at is a fault of a key, in its place: file and line, a variable, or the defaults.
func (k *checker) at(path string, why error) Fault {
	if name, ok := k.env[path]; ok {
		return fault(fmt.Errorf("%s: %w", name, why))
	}
	f := fault(why)
	f.Key = path
	for key := path; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		if at, ok := k.lines[key]; ok {
			return k.placed(f, at)
		}
	}
	return f
}

// read decodes the file's text over c.
func (k *checker) read(c *Config, text []byte) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		k.found = Faults{k.syntax(err.Error())}
		return
	}
	k.lines = map[string]line{}
	if crowded(&root) {
		k.found = Faults{k.ofFile(0, errTooMany)}
		return
	}
	if len(root.Content) > 0 {
		k.note("", root.Content[0])
	}
	eachKey("", reflect.ValueOf(c).Elem(), func(key string, v reflect.Value) {
		if _, set := k.lines[key]; set && v.Kind() == reflect.Map {
			v.SetZero() // it is replaced whole, as lists are
		}
	})
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(c)
	var wrong *yaml.TypeError
	switch {
	case errors.As(err, &wrong):
		for _, e := range wrong.Errors {
			k.found = append(k.found, k.syntax(e))
			if m := linePrefix().FindStringSubmatch(e); m != nil {
				line, _ := strconv.Atoi(m[1]) // digits, by the pattern
				k.unread = append(k.unread, section(k.keyAt(line, "")))
			}
		}
	case err != nil && !errors.Is(err, io.EOF): // an empty file is all defaults
		k.found = Faults{k.syntax(err.Error())}
	}
}

// over reads a file of the same schema over c. Its keys come before those that were read
// before it, and a list or a mapping takes the place of the whole that was there. It returns what
// was read.
func (k *checker) over(c *Config, file string, text []byte) *checker {
	o := &checker{Source: Source{File: file}}
	o.read(c, text)
	o.found = o.found.in(k.Overlay)
	k.found, k.unread = append(k.found, o.found...), append(k.unread, o.unread...)
	if k.lines == nil {
		k.lines = map[string]line{}
	}
	eachKey("", reflect.ValueOf(c).Elem(), func(key string, _ reflect.Value) {
		if _, set := o.lines[key]; set {
			maps.DeleteFunc(k.lines, func(other string, _ line) bool { return strings.HasPrefix(other, key+".") })
		}
	})
	maps.Copy(k.lines, o.lines)
	return o
}

// mostNodes bounds a document. The library compares each key of a mapping with
// every other, which takes minutes for a megabyte of them.
const mostNodes = 20_000

var errTooMany = fmt.Errorf("it has more than %d entries", mostNodes)

// crowded reports whether a document has too many entries to be looked at.
func crowded(root *yaml.Node) bool {
	left := mostNodes
	var count func(n *yaml.Node)
	count = func(n *yaml.Node) {
		left--
		for _, c := range n.Content {
			if left >= 0 {
				count(c)
			}
		}
	}
	count(root)
	return left < 0
}

// note walks the document and notes the line of every key.
func (k *checker) note(path string, n *yaml.Node) {
	under := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := under(n.Content[i].Value)
			k.lines[key] = line{k.File, n.Content[i].Line}
			k.note(key, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			key := under(strconv.Itoa(i))
			k.lines[key] = line{k.File, item.Line}
			k.note(key, item)
		}
	}
}

var (
	unknownField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^field (\S+) not found in type .*$`) })
	wrongType    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?s)^cannot unmarshal \\S* ?(?:`(.*)` )?into (.*)$") })
	// What stands where keys belong may be one.
	quotable     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(bool|u?int\d*|float\d*|time\.Duration)$`) })
	linePrefix   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^(?:yaml: )?line (\d+): (.*)$`) })
	unknownBelow = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^there is no key (".*") here; there are (.*)$`) })
)

// syntax rewords an error of the YAML library: file, line, key, and what is
// wrong in words that do not name Go types.
func (k *checker) syntax(text string) Fault {
	line, what := 0, strings.TrimPrefix(text, "yaml: ")
	if m := linePrefix().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits, by the pattern
		what = m[2]
	}
	f := k.ofFile(line, errors.New(what))
	f.Key = k.keyAt(line, "")
	if m := unknownField().FindStringSubmatch(what); m != nil {
		f.Key = k.keyAt(line, m[1])
		return f.says(errors.New("there is no such key"))
	}
	if m := unknownBelow().FindStringSubmatch(what); m != nil {
		return f.says(fmt.Errorf("there is no key %s here; there are %s", m[1], m[2]))
	}
	m := wrongType().FindStringSubmatch(what)
	switch {
	case m == nil:
		return f
	case m[2] == "time.Duration":
		return f.says(fmt.Errorf("%q is no duration such as 60s, 5m or 24h", m[1]))
	case m[2] == "Languages":
		return f.says(errors.New("language is one such as de, or a list such as [en, de]"))
	case m[1] != "" && quotable().MatchString(m[2]):
		return f.says(fmt.Errorf("`%s` is not what belongs here", m[1]))
	}
	return f.says(errors.New("this is not what belongs here"))
}

// keyAt is the longest key path on a line that ends in name.
func (k *checker) keyAt(number int, name string) string {
	best := name
	for key, at := range k.lines {
		if at.number == number && len(key) > len(best) && (name == "" || strings.HasSuffix("."+key, "."+name)) {
			best = key
		}
	}
	return best
}
