package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"perch/limit"
)

// DefaultCharacter is the id of the character of robots and skins without one
// assigned to them.
const DefaultCharacter = "default"

// NoBrain is the brain of a character that does not answer but still moves and shows moods.
const NoBrain = "none"

// Persona is the character of a robot.
type Persona struct {
	ID       string // of the character; empty is DefaultCharacter
	Name     string // the robot's name
	Language string // BCP 47; empty is the household's
	Voice    string // the synthesizer's name for it; empty is its default
	Brain    BrainOptions
	Text     string // the model's description of itself

	Tools        []string // names of its built-in tools; nil means all, and an empty list none
	MemoryTokens int      // of the memory in its prompt; 0 is the brain's default
}

// BrainOptions are a persona's model settings.
type BrainOptions struct {
	Model       string
	Temperature *float64 // 0 to 2; nil is the model's default
	MaxTokens   int      // of one answer; 0 is the model's default
}

// ErrPersona is wrapped by the errors of an invalid persona.
var ErrPersona = errors.New("not a persona")

// DefaultPersona is the persona if none is configured.
func DefaultPersona() Persona {
	return Persona{Name: "Chan", Text: "You are a small robot that lives with the people of this house. You are kind, curious and brief, " +
		"and you like a little joke. You say so when you do not know something, and you never claim to have done what no tool has done."}
}

// LoadPersona reads a persona's file. Errors name the file and the line.
func LoadPersona(file string) (Persona, error) {
	f, err := os.Open(file)
	if err != nil {
		return Persona{}, fmt.Errorf("read the persona: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit.Instructions+1))
	if err != nil {
		return Persona{}, fmt.Errorf("read the persona: %w", err)
	}
	p, err := ParsePersona(data)
	if err != nil {
		return Persona{}, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// ParsePersona parses a persona: Markdown that is passed to the model unchanged,
// optionally after YAML between two lines of three hyphens, with name, language,
// voice and brain {model, temperature, max_tokens}, all optional. Errors wrap
// ErrPersona and name the line.
func ParsePersona(data []byte) (Persona, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if len(data) > limit.Instructions {
		return Persona{}, fmt.Errorf("%w: it has more than %d bytes", ErrPersona, limit.Instructions)
	}
	if at := invalid(data); at > 0 {
		return Persona{}, fmt.Errorf("%w: line %d: this is not text in UTF-8", ErrPersona, at)
	}
	p := DefaultPersona()
	front, body, closed := FrontMatter(string(data))
	if !closed {
		return Persona{}, fmt.Errorf("%w: line 1: the front matter that begins here is not closed by a line of ---", ErrPersona)
	}
	if err := p.front(front); err != nil {
		return Persona{}, err
	}
	if body = strings.Trim(body, "\n- \t"); body != "" {
		p.Text = body
	}
	return p, nil
}

// invalid returns the number of the first line that is not UTF-8 or has a zero byte, or 0.
func invalid(data []byte) int {
	for i, line := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return i + 1
		}
	}
	return 0
}

// FrontMatter separates the YAML between two lines of three hyphens, at the beginning of a
// text, from the body after them. The YAML includes the first line, so that line numbers
// stay right; without front matter it is empty. closed is false if the second line is missing.
func FrontMatter(text string) (front, body string, closed bool) {
	first, after, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", text, true
	}
	at := len(text) - len(after)
	for line := range strings.Lines(after) {
		if strings.TrimRight(line, " \t\n") == "---" {
			return text[:at], text[at+len(line):], true
		}
		at += len(line)
	}
	return text, "", false
}

func (p *Persona) front(text string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return fmt.Errorf("%w: %s", ErrPersona, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil
	}
	return eachKey(doc.Content[0], errors.New("the front matter"), map[string]func(*yaml.Node) error{
		"name": func(n *yaml.Node) error {
			if err := word(n, &p.Name); err != nil {
				return err
			}
			if l := utf8.RuneCountInString(p.Name); l < 1 || l > limit.Called {
				return fault(n, fmt.Errorf("a name has 1 to %d letters", limit.Called))
			}
			return nil
		},
		"language": func(n *yaml.Node) error { return word(n, &p.Language) },
		"voice":    func(n *yaml.Node) error { return word(n, &p.Voice) },
		"brain":    p.Brain.read,
	})
}

func (o *BrainOptions) read(n *yaml.Node) error {
	return eachKey(n, "brain", map[string]func(*yaml.Node) error{
		"model": func(n *yaml.Node) error { return word(n, &o.Model) },
		"temperature": func(n *yaml.Node) error {
			var t float64
			if err := n.Decode(&t); err != nil || !(t >= 0 && t <= 2) {
				return fault(n, errors.New("temperature is a number from 0 to 2"))
			}
			o.Temperature = &t
			return nil
		},
		"max_tokens": func(n *yaml.Node) error {
			if err := n.Decode(&o.MaxTokens); err != nil || o.MaxTokens < 1 || o.MaxTokens > limit.Tokens {
				return fault(n, fmt.Errorf("max_tokens is a whole number from 1 to %d", limit.Tokens))
			}
			return nil
		},
	})
}

// eachKey decodes the keys of a map, each at most once. what names the map in errors.
func eachKey(n *yaml.Node, what any, keys map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return fault(n, fmt.Errorf("%s is keys with values, such as name: Chan", what))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		read, known := keys[key.Value]
		switch {
		case !known:
			return fault(key, fmt.Errorf("%s has no key %.40q", what, key.Value))
		case seen[key.Value]:
			return fault(key, fmt.Errorf("%s has %s twice", what, key.Value))
		}
		seen[key.Value] = true
		if err := read(n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func word(n *yaml.Node, into *string) error {
	if n.Kind != yaml.ScalarNode || len(n.Value) > limit.Name || Speakable(n.Value) != strings.TrimSpace(n.Value) {
		return fault(n, fmt.Errorf("this is one line of at most %d bytes", limit.Name))
	}
	*into = strings.TrimSpace(n.Value)
	return nil
}

func fault(n *yaml.Node, why error) error {
	return fmt.Errorf("%w: line %d: %w", ErrPersona, n.Line, why)
}
