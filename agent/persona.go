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

// DefaultCharacter is the ID of the character that robots and skins have unless another one
// is assigned to them.
const DefaultCharacter = "default"

// NoBrain is the kind of a brain that never answers. A robot with this brain still moves and
// shows moods.
const NoBrain = "none"

// Persona is the character of a robot or skin.
type Persona struct {
	ID       string // character ID; "" means DefaultCharacter
	Name     string // the robot's name
	Language string // BCP 47 tag; "" means the configured language
	Voice    string // the synthesizer's name of the voice; "" means the synthesizer's default voice
	Mute     bool   // whether answers are shown but not spoken
	Deaf     bool   // whether speech is not recognized
	Brain    BrainOptions
	Text     string // description of the character for the model

	// Clips maps the names of the character's own animations to the names of their clips. The value is "" for a
	// clip whose name is not a valid name of a gesture; only programs that show the character can play this clip.
	Clips        map[string]string
	Tools        []string // names of the built-in tools that the character may use; nil means all, and an empty list none
	MemoryTokens int      // maximum tokens of the memory in the prompt; 0 means the brain's default
	Memory       string   // what the character knows from the beginning, as Markdown; not used in turns of strangers
}

// BrainOptions are the model settings of a persona.
type BrainOptions struct {
	Model       string   // name of the model; "" means the model that is configured for the brain
	Temperature *float64 // 0 to 2; nil means the model's default
	MaxTokens   int      // maximum tokens of an answer; 0 means the model's default
}

// ErrPersona is wrapped by the errors of an invalid persona.
var ErrPersona = errors.New("not a persona")

// DefaultPersona returns the persona that is used if none is configured.
func DefaultPersona() Persona {
	return Persona{Name: "Chan", Text: "You are a small robot that lives with the people of this house. You are kind, curious and brief, " +
		"and you like a little joke. You say so when you do not know something, and you never claim to have done what no tool has done."}
}

// LoadPersona reads the file of a persona and parses it with ParsePersona. An error contains
// the file name.
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

// ParsePersona parses a persona: Markdown, which becomes Persona.Text, optionally preceded by
// YAML between two lines of three hyphens. The YAML has the optional keys name, language,
// voice and brain, and brain has the optional keys model, temperature and max_tokens. A
// missing name or text is taken from DefaultPersona. An error wraps ErrPersona, and contains
// the line number unless data is too large or the YAML parser names no line.
func ParsePersona(data []byte) (Persona, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if len(data) > limit.Instructions {
		return Persona{}, fmt.Errorf("%w: it has more than %d bytes", ErrPersona, limit.Instructions)
	}
	if line := invalidLine(data); line > 0 {
		return Persona{}, fmt.Errorf("%w: line %d: this is not text in UTF-8", ErrPersona, line)
	}
	p := DefaultPersona()
	front, body, closed := FrontMatter(string(data))
	if !closed {
		return Persona{}, fmt.Errorf("%w: line 1: the front matter that begins here is not closed by a line of ---", ErrPersona)
	}
	if err := p.parseFrontMatter(front); err != nil {
		return Persona{}, err
	}
	if body = strings.Trim(body, "\n- \t"); body != "" {
		p.Text = body
	}
	return p, nil
}

// invalidLine returns the number of the first line that is not UTF-8 or has a zero byte, or
// 0 if all lines are valid.
func invalidLine(data []byte) int {
	for i, line := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return i + 1
		}
	}
	return 0
}

// FrontMatter splits a text into its front matter, the YAML between two lines of three
// hyphens at its beginning, and the body after it. A text may have no front matter; then
// front is "". front includes the first line of hyphens, so that its line numbers are also
// line numbers of the text. closed is false if the second line of hyphens is missing.
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

// parseFrontMatter sets the fields that the front matter contains.
func (p *Persona) parseFrontMatter(text string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return fmt.Errorf("%w: %s", ErrPersona, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil
	}
	return decodeKeys(doc.Content[0], errors.New("the front matter"), map[string]func(*yaml.Node) error{
		"name": func(n *yaml.Node) error {
			if err := decodeLine(n, &p.Name); err != nil {
				return err
			}
			if l := utf8.RuneCountInString(p.Name); l < 1 || l > limit.Called {
				return lineError(n, fmt.Errorf("a name has 1 to %d letters", limit.Called))
			}
			return nil
		},
		"language": func(n *yaml.Node) error { return decodeLine(n, &p.Language) },
		"voice":    func(n *yaml.Node) error { return decodeLine(n, &p.Voice) },
		"brain":    p.Brain.decode,
	})
}

// decode sets the fields that a YAML mapping contains.
func (o *BrainOptions) decode(n *yaml.Node) error {
	return decodeKeys(n, "brain", map[string]func(*yaml.Node) error{
		"model": func(n *yaml.Node) error { return decodeLine(n, &o.Model) },
		"temperature": func(n *yaml.Node) error {
			var t float64
			if err := n.Decode(&t); err != nil || !(t >= 0 && t <= 2) {
				return lineError(n, errors.New("temperature is a number from 0 to 2"))
			}
			o.Temperature = &t
			return nil
		},
		"max_tokens": func(n *yaml.Node) error {
			if err := n.Decode(&o.MaxTokens); err != nil || o.MaxTokens < 1 || o.MaxTokens > limit.Tokens {
				return lineError(n, fmt.Errorf("max_tokens is a whole number from 1 to %d", limit.Tokens))
			}
			return nil
		},
	})
}

// decodeKeys decodes a YAML mapping by calling the function of each key that it contains.
// Unknown keys and duplicates are errors. The parameter name is what the errors call the
// mapping.
func decodeKeys(n *yaml.Node, name any, decoders map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return lineError(n, fmt.Errorf("%s must consist of keys with values, such as name: Chan", name))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		decode, ok := decoders[key.Value]
		switch {
		case !ok:
			return lineError(key, fmt.Errorf("%s has no key %.40q", name, key.Value))
		case seen[key.Value]:
			return lineError(key, fmt.Errorf("%s has %s twice", name, key.Value))
		}
		seen[key.Value] = true
		if err := decode(n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// decodeLine sets *dst to a scalar that is one line of text.
func decodeLine(n *yaml.Node, dst *string) error {
	if n.Kind != yaml.ScalarNode || len(n.Value) > limit.Name || Speakable(n.Value) != strings.TrimSpace(n.Value) {
		return lineError(n, fmt.Errorf("this must be one line of at most %d bytes", limit.Name))
	}
	*dst = strings.TrimSpace(n.Value)
	return nil
}

// lineError adds ErrPersona and the line of n to an error.
func lineError(n *yaml.Node, err error) error {
	return fmt.Errorf("%w: line %d: %w", ErrPersona, n.Line, err)
}
