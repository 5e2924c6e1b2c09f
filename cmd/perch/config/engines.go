package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Engines that run elsewhere have a url, and where they want one a key: as it
// is, or in a file. The kind of an engine determines its keys.

// Recognizer is one entry of speech.recognizers.
type Recognizer struct {
	Kind         string   `yaml:"kind"`
	URL          string   `yaml:"url"`
	Model        string   `yaml:"model"`
	Key          string   `yaml:"key"`
	KeyFile      string   `yaml:"key_file"`
	Token        string   `yaml:"token"`
	TokenFile    string   `yaml:"token_file"`
	Pipeline     string   `yaml:"pipeline"`
	StreamUpload bool     `yaml:"stream_upload"`
	Within       Duration `yaml:"within"`
}

// Synthesizer is one entry of speech.synthesizers.
type Synthesizer struct {
	Kind      string   `yaml:"kind"`
	URL       string   `yaml:"url"`
	Model     string   `yaml:"model"`
	Key       string   `yaml:"key"`
	KeyFile   string   `yaml:"key_file"`
	Token     string   `yaml:"token"`
	TokenFile string   `yaml:"token_file"`
	Pipeline  string   `yaml:"pipeline"`
	Engine    string   `yaml:"engine"`
	Voice     string   `yaml:"voice"`
	Speed     int      `yaml:"speed"`
	Rate      int      `yaml:"rate"`
	Stream    bool     `yaml:"stream"`
	Convert   bool     `yaml:"convert"`
	Within    Duration `yaml:"within"`
}

// Brain is one entry of brains.
type Brain struct {
	Kind            string            `yaml:"kind"`
	URL             string            `yaml:"url"`
	Model           string            `yaml:"model"`
	Key             string            `yaml:"key"`
	KeyFile         string            `yaml:"key_file"`
	Token           string            `yaml:"token"`
	TokenFile       string            `yaml:"token_file"`
	Sentences       string            `yaml:"sentences"`
	Vision          bool              `yaml:"vision"`
	Temperature     *float64          `yaml:"temperature"`
	MaxTokens       int               `yaml:"max_tokens"`
	ReasoningEffort string            `yaml:"reasoning_effort"`
	KeepAlive       string            `yaml:"keep_alive"`
	NumCtx          int               `yaml:"num_ctx"`
	Dialect         string            `yaml:"dialect"`
	Extra           map[string]any    `yaml:"extra"`
	Within          Duration          `yaml:"within"`
	MCP             []MCP             `yaml:"mcp"`
	Command         []string          `yaml:"command"`
	Cwd             string            `yaml:"cwd"`
	Env             map[string]string `yaml:"env"`
	Idle            Duration          `yaml:"idle"`
	Turns           int               `yaml:"turns"`
	Age             Duration          `yaml:"age"`
	Allow           []string          `yaml:"allow"`
	Pipeline        string            `yaml:"pipeline"`
	Agent           string            `yaml:"agent"`
	REST            bool              `yaml:"rest"`
}

// DeepBrain is a language model for hard questions.
type DeepBrain Brain

// MCP is a server of tools: a command, or a url.
type MCP struct {
	Name    string            `yaml:"name"`
	Command []string          `yaml:"command"`
	Cwd     string            `yaml:"cwd"`
	Env     map[string]string `yaml:"env"`
	URL     string            `yaml:"url"`
	Key     string            `yaml:"key"`
	KeyFile string            `yaml:"key_file"`
	Only    []string          `yaml:"only"`
	Except  []string          `yaml:"except"`
}

// kinds are the engines of a list, and the keys each has besides its kind.
func kinds(list string) map[string]string {
	const (
		openai    = "url model key key_file vision temperature max_tokens reasoning_effort keep_alive num_ctx dialect extra within"
		anthropic = "url model key key_file vision temperature max_tokens reasoning_effort extra within"
	)
	return map[string]map[string]string{
		"speech.recognizers": {
			"sphinx":  "model",
			"wyoming": "url model within",
			"openai":  "url model key key_file stream_upload within",
			"assist":  "url token token_file pipeline within",
		},
		"speech.synthesizers": {
			"espeak":     "voice speed",
			"openjtalk":  "voice speed",
			"wyoming":    "url voice within",
			"openai":     "url model voice key key_file rate stream within",
			"elevenlabs": "url model voice key key_file within",
			"assist":     "url token token_file pipeline engine voice convert within",
		},
		"brains": {
			"reflex":    "sentences",
			"openai":    "mcp " + openai,
			"anthropic": "mcp " + anthropic,
			"acp":       "command cwd env idle turns age allow within",
			"assist":    "url token token_file pipeline agent rest within",
			"none":      "",
		},
		"brain_deep": {"openai": openai, "anthropic": anthropic},
	}[list]
}

// engine checks an engine's kind, that it has no keys of another kind, which would
// have no effect, and that it can be made.
func (k *checker) engine(c *Config, list string, place int, kind string, part any) {
	at, all := fmt.Sprintf("%s.%d", list, place), kinds(list)
	own, known := all[kind]
	k.chosen(at+".kind", slices.Sorted(maps.Keys(all)))
	if !known {
		k.fault(at+".kind", fmt.Errorf("it is one of %s, not %q", strings.Join(slices.Sorted(maps.Keys(all)), ", "), kind))
		return
	}
	for _, key := range k.under(at) {
		if key != "kind" && !slices.Contains(strings.Fields(own), key) {
			k.fault(at+"."+key,
				fmt.Errorf("%s has no such key; it has %s", kind, strings.Join(append([]string{"kind"}, strings.Fields(own)...), ", ")))
		}
	}
	k.failed(at, k.Check(c, part))
}

// under are the keys that were set below a path, sorted.
func (k *checker) under(path string) []string {
	set := map[string]bool{}
	for _, key := range slices.AppendSeq(slices.Collect(maps.Keys(k.lines)), maps.Keys(k.env)) {
		if rest, below := strings.CutPrefix(key, path+"."); below {
			first, _, _ := strings.Cut(rest, ".")
			set[first] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (k *checker) engines(c *Config) {
	if len(c.Speech.Recognizers) == 0 {
		k.fault("speech.recognizers", errors.New("at least one is needed"))
	}
	for i, r := range c.Speech.Recognizers {
		k.engine(c, "speech.recognizers", i, r.Kind, r)
	}
	if len(c.Speech.Synthesizers) == 0 {
		k.fault("speech.synthesizers", errors.New("at least one is needed"))
	}
	for i, s := range c.Synthesizers() {
		k.engine(c, "speech.synthesizers", i, s.Kind, s)
	}
	k.brains(c)
	_, err := Persona(c)
	k.failed("persona.file", err)
}

// languageTag is what a language is called by, in part: BCP 47.
var languageTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`) })

func (k *checker) brains(c *Config) {
	if len(c.Brains) == 0 {
		k.fault("brains", errors.New("at least one is needed"))
	}
	k.household(c)
	for i, b := range c.Brains {
		k.engine(c, "brains", i, b.Kind, b)
	}
	for i, b := range c.BrainDeep {
		k.engine(c, "brain_deep", i, b.Kind, DeepBrain(b))
	}
}

// Secret is an engine's key or token, from the configuration or from its
// file, which is named by the key.
func Secret(key, value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("%s and %s_file are two places for one %s", key, key, key)
	}
	text, err := os.ReadFile(credential(file, os.Getenv("CREDENTIALS_DIRECTORY")))
	if err != nil {
		return "", fmt.Errorf("read %s_file: %w", key, err)
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return "", fmt.Errorf("%s_file is empty: %s", key, file)
	}
	return strings.TrimSpace(string(text)), nil
}
