package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/agent"
	"perch/perception"
)

// config is the configuration file: this struct, its comments in
// packaging/perch.yaml, and nothing else. Other packages get what concerns
// them as their own small options.
type config struct {
	Listen         []string  `yaml:"listen"`
	Local          []string  `yaml:"local"`
	TLS            tlsConfig `yaml:"tls"`
	Name           string    `yaml:"name"`
	PublicURL      string    `yaml:"public_url"`
	AllowedHosts   []string  `yaml:"allowed_hosts"`
	AllowedOrigins []string  `yaml:"allowed_origins"`
	Timezone       string    `yaml:"timezone"`
	Language       string    `yaml:"language"`
	MDNS           struct {
		Enabled    bool     `yaml:"enabled"`
		Interfaces []string `yaml:"interfaces"`
	} `yaml:"mdns"`
	Adoption string `yaml:"adoption"`
	Robots   struct {
		Idle      duration `yaml:"idle"`
		Greeting  bool     `yaml:"greeting"`
		UserTools bool     `yaml:"user_tools"`
		Framing   int      `yaml:"framing"`
		KeepTurns int      `yaml:"keep_turns"`

		Each []robotConfig `yaml:"each"`

		AwayAfter        duration `yaml:"away_after"`
		ShareTranscripts bool     `yaml:"share_transcripts"`
	} `yaml:"robots"`
	Speech struct {
		Silence      duration            `yaml:"silence"`
		Recognizers  []recognizerConfig  `yaml:"recognizers"`
		Synthesizers []synthesizerConfig `yaml:"synthesizers"`
	} `yaml:"speech"`
	Brains    []brainConfig `yaml:"brains"`
	BrainDeep []brainConfig `yaml:"brain_deep"`
	Persona   struct {
		Name string `yaml:"name"`
		File string `yaml:"file"`
	} `yaml:"persona"`
	Memory struct {
		MemoryTokens  int `yaml:"memory_tokens"`
		HistoryTokens int `yaml:"history_tokens"`
	} `yaml:"memory"`
	Wyoming struct {
		Listen string `yaml:"listen"`
	} `yaml:"wyoming"`
	Behaviours perception.Tuning `yaml:"behaviours"`
	Rules      []ruleConfig      `yaml:"rules"`
	Skins      skinsConfig       `yaml:"skins"`
	MQTT       mqttConfig        `yaml:"mqtt"`
	Bridge     bridgeConfig      `yaml:"bridge"`
	Firmware   firmwareConfig    `yaml:"firmware"`
	Log        struct {
		Level string `yaml:"level"`
	} `yaml:"log"`
}

// defaultConfig is what runs with no file at all.
func defaultConfig() config {
	c := config{
		Listen: []string{":8003"}, Local: []string{"127.0.0.1:8004"}, Name: "perch", Language: "en", Adoption: "open",
	}
	c.MDNS.Enabled = true
	c.Robots.Idle = duration(time.Minute)
	c.Robots.Greeting = true
	c.Robots.Framing = 1
	c.Robots.KeepTurns = 200
	c.Robots.AwayAfter = duration(24 * time.Hour)
	c.Speech.Silence = duration(600 * time.Millisecond)
	c.Speech.Recognizers = []recognizerConfig{{Kind: "sphinx"}}
	c.Speech.Synthesizers = []synthesizerConfig{{Kind: "espeak", Voice: "en-us"}}
	c.Brains = []brainConfig{{Kind: "reflex"}}
	c.Persona.Name = "Chan"
	c.Memory.MemoryTokens = 2048
	c.Memory.HistoryTokens = 3000
	c.Skins.Vocabulary = string(agent.VocabularyRFC)
	c.Behaviours = perception.DefaultTuning()
	c.MQTT = mqttConfig{Broker: embedded, Listen: ":1883", BaseTopic: "perch", DiscoveryPrefix: "homeassistant"}
	c.Bridge = bridgeConfig{TimeoutShort: duration(5 * time.Second), TimeoutLong: duration(30 * time.Second)}
	c.Log.Level = "info"
	return c
}

// duration is a time.Duration written as "60s" or "24h".
type duration time.Duration

// UnmarshalYAML reads a duration, and refuses a bare number: nobody knows of
// what.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := time.ParseDuration(n.Value)
	if err != nil || parsed < 0 {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %q is "+noDuration, n.Line, n.Value)}}
	}
	*d = duration(parsed)
	return nil
}

const noDuration = "no duration such as 60s, 5m or 24h"

// faults are all that is wrong with a configuration, one sentence each, with
// file, line and key.
type faults []string

func (f faults) Error() string { return strings.Join(f, "\n") }

// mostConfig bounds the file.
const mostConfig = 1 << 20

// source is where a configuration is read from.
type source struct {
	file    string   // empty where there is none
	environ []string // of the process, "NAME=value"
	// service is the account that has to read what the configuration names, where
	// that is another than ours; else nil.
	service *account
	check   partCheck
}

// partCheck finds out whether a part of the appliance can be made of its own
// section of the configuration. It calls nobody. part is a recognizerConfig, a
// synthesizerConfig, a brainConfig, a deepConfig or an mqttConfig. Errors of
// the last have a line for each fault, which begins with its key.
type partCheck func(c *config, part any) error

// load reads the file and the environment over the defaults, and checks the
// whole. Its error is faults, or that the file cannot be read.
func (s source) load() (config, error) {
	c := defaultConfig()
	places := places{file: s.file, service: s.service, try: s.check}
	var found faults
	if s.file != "" {
		text, err := readConfig(s.file)
		if err != nil {
			return c, err
		}
		found = places.read(&c, text)
		if len(found) > 0 && len(places.unread) == 0 {
			return c, found // it is no YAML
		}
	}
	found = append(found, applyEnvironment(&c, s.environ, &places)...)
	found = append(found, c.check(&places)...)
	if len(found) > 0 {
		return c, found
	}
	return c, nil
}

// recheck checks a configuration that was changed after it was read.
func (s source) recheck(c *config) error {
	if found := c.check(&places{service: s.service, try: s.check}); len(found) > 0 {
		return found
	}
	return nil
}

func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", denied(err, ourselves()))
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

// places remember where each key was set, so that a fault can say so.
type places struct {
	file  string
	lines map[string]int    // by key path, "speech.recognizers.0.kind"
	env   map[string]string // by key path, the variable
	// unread are the sections in which something could not be read. What was
	// left of them is not complained of as well.
	unread []string
	// service is whose files they have to be, where that is not us: then what
	// we may not read is no fault, and what it may not is.
	service *account
	try     partCheck
}

// section is the part of the configuration that a key belongs to: one at the
// top, or one entry of a list there.
func section(path string) string {
	words := strings.SplitN(path, ".", 3)
	if len(words) > 1 {
		if _, err := strconv.Atoi(words[1]); err == nil {
			return words[0] + "." + words[1]
		}
	}
	return words[0]
}

// at names the place of a key: file and line, a variable, or the defaults.
func (p *places) at(path string) string {
	if name, ok := p.env[path]; ok {
		return name + ": "
	}
	for key := path; key != ""; key = parent(key) {
		if line, ok := p.lines[key]; ok {
			return fmt.Sprintf("%s:%d: %s: ", p.file, line, path)
		}
	}
	return path + ": "
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i]
	}
	return ""
}

// read decodes the file's text over c.
func (p *places) read(c *config, text []byte) faults {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return faults{p.syntax(err.Error())}
	}
	p.lines = map[string]int{}
	if len(root.Content) > 0 {
		p.note("", root.Content[0])
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(c)
	var wrong *yaml.TypeError
	switch {
	case errors.As(err, &wrong):
		var found faults
		for _, e := range wrong.Errors {
			found = append(found, p.syntax(e))
			if m := linePrefix.FindStringSubmatch(e); m != nil {
				line, _ := strconv.Atoi(m[1]) // digits, by the pattern
				p.unread = append(p.unread, section(p.keyAt(line, "")))
			}
		}
		return found
	case err != nil && !errors.Is(err, io.EOF): // an empty file is all defaults
		return faults{p.syntax(err.Error())}
	}
	return nil
}

// note walks the document and notes the line of every key.
func (p *places) note(path string, n *yaml.Node) {
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
			p.lines[key] = n.Content[i].Line
			p.note(key, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			key := under(strconv.Itoa(i))
			p.lines[key] = item.Line
			p.note(key, item)
		}
	}
}

var (
	unknownField = regexp.MustCompile(`^field (\S+) not found in type .*$`)
	wrongType    = regexp.MustCompile("^cannot unmarshal \\S+ (?:`(.*)` )?into (.*)$")
	quotable     = regexp.MustCompile(`^(bool|u?int\d*|float\d*|time\.Duration)$`) // what stands where keys belong may be one
	linePrefix   = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
)

// syntax rewords an error of the YAML library: file, line, key, and what is
// wrong in words that do not name Go types.
func (p *places) syntax(text string) string {
	line, what := 0, strings.TrimPrefix(text, "yaml: ")
	if m := linePrefix.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits, by the pattern
		what = m[2]
	}
	if m := unknownField.FindStringSubmatch(what); m != nil {
		return fmt.Sprintf("%s:%d: %s: there is no such key", p.file, line, p.keyAt(line, m[1]))
	}
	if m := wrongType.FindStringSubmatch(what); m != nil {
		what = "this is not what belongs here"
		if m[1] != "" && quotable.MatchString(m[2]) {
			what = "`" + m[1] + "` is not what belongs here"
		}
		if m[2] == "time.Duration" {
			what = fmt.Sprintf("%q is "+noDuration, m[1])
		}
	}
	if line == 0 {
		return fmt.Sprintf("%s: %s", p.file, what)
	}
	if key := p.keyAt(line, ""); key != "" {
		what = key + ": " + what
	}
	return fmt.Sprintf("%s:%d: %s", p.file, line, what)
}

// keyAt is the longest key path on a line that ends in name.
func (p *places) keyAt(line int, name string) string {
	best := name
	for key, at := range p.lines {
		if at == line && len(key) > len(best) && strings.HasSuffix("."+key, "."+name) {
			best = key
		}
	}
	if name == "" {
		for key, at := range p.lines {
			if at == line && len(key) > len(best) {
				best = key
			}
		}
	}
	return best
}
