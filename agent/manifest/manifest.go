// Package manifest parses characters in the formats agent-manifest/0.1 and 0.2: a JSON
// file, or a bundle of it with the Markdown file of its instructions. Fields that this
// appliance does not use are preserved unchanged.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"perch/agent"
	"perch/limit"
)

// Most bounds a manifest, its instructions and a zip of both, in bytes each.
const Most = 1 << 20

// mostEntries bounds a list of a manifest.
const mostEntries = 100

// Err is wrapped by the errors for an invalid manifest.
var Err = errors.New("not an agent manifest")

// Manifest is a character.
type Manifest struct {
	Name         string
	Description  string
	Instructions string // the system prompt; empty is the household's text
	Language     string // BCP 47, of the instructions' front matter; empty is the household's
	Brain        Brain
	Voice        Voice
	Skills       []Skill  // the enabled skills of the appliance; nil means all
	Tools        []string // the enabled built-in tools; nil means all
	MemoryTokens int      // of the memory in its prompt; 0 is the brain's default
	// Remarks are sentences about unsupported requests of the manifest.
	Remarks []string

	raw map[string]json.RawMessage // as it was parsed, with inlined instructions
}

// Brain selects and configures the model.
type Brain struct {
	Provider    string // one of Providers; empty is the household's first
	Model       string
	Temperature *float64 // 0 to 2
	MaxTokens   int      // of one answer
}

// Voice selects the synthesizer and its voice.
type Voice struct{ Provider, ID string }

// Skill is a bundle that the manifest requests.
type Skill struct {
	URI     string `json:"uri"`
	Version string `json:"version"`
}

// Name returns the name of the skill: the last part of its URI.
func (s Skill) Name() string { return path.Base(strings.TrimSuffix(s.URI, "/")) }

// The providers of a brain. Local is a server in the household.
const (
	None      = agent.NoBrain
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Local     = "local"
)

// Open reads another file of a bundle, by its slash-separated path below the
// manifest. Its error wraps fs.ErrNotExist for a missing file.
type Open func(name string) ([]byte, error)

// Alone is the Open of a manifest without a bundle.
func Alone(string) ([]byte, error) { return nil, fs.ErrNotExist }

// document is the part of the manifest's JSON that is used here.
type document struct {
	Spec        string `json:"spec"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Body        struct {
		URI string `json:"uri"`
	} `json:"body"`
	Brain struct {
		Provider     string   `json:"provider"`
		Model        string   `json:"model"`
		Instructions string   `json:"instructions"`
		Temperature  *float64 `json:"temperature"`
		MaxTokens    int      `json:"maxTokens"`
	} `json:"brain"`
	Voice struct {
		TTS struct {
			Provider string `json:"provider"`
			VoiceID  string `json:"voiceId"`
		} `json:"tts"`
		STT struct {
			Provider string `json:"provider"`
		} `json:"stt"`
	} `json:"voice"`
	Skills []Skill `json:"skills"`
	Memory struct {
		Mode      string `json:"mode"`
		MaxTokens int    `json:"maxTokens"`
	} `json:"memory"`
	Tools []string `json:"tools"`
}

// Parse parses a manifest, and reads the file of its instructions with open. Errors
// wrap Err and name the field.
func Parse(data []byte, open Open) (Manifest, error) {
	if len(data) > Most {
		return Manifest{}, fault(fmt.Errorf("it has more than %d bytes", Most))
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	m, d := Manifest{}, document{}
	if err := json.Unmarshal(data, &d); err != nil {
		return Manifest{}, fault(why(err))
	}
	if err := json.Unmarshal(data, &m.raw); err != nil || m.raw == nil {
		return Manifest{}, fault(errors.New("it is no JSON object"))
	}
	if d.Spec != "agent-manifest/0.1" && d.Spec != "agent-manifest/0.2" {
		return Manifest{}, fault(fmt.Errorf("spec is agent-manifest/0.1 or agent-manifest/0.2, not %.60q", d.Spec))
	}
	m.Name, m.Description = strings.TrimSpace(d.Name), d.Description
	if n := utf8.RuneCountInString(m.Name); n < 1 || n > limit.Called || agent.Speakable(m.Name) != m.Name {
		return Manifest{}, fault(fmt.Errorf("name is a line of 1 to %d letters", limit.Called))
	}
	m.Brain = Brain{d.Brain.Provider, d.Brain.Model, d.Brain.Temperature, d.Brain.MaxTokens}
	if err := m.instructions(d.Brain.Instructions, open); err != nil {
		return Manifest{}, err
	}
	m.Voice = Voice{d.Voice.TTS.Provider, d.Voice.TTS.VoiceID}
	m.Skills, m.Tools, m.MemoryTokens = d.Skills, d.Tools, d.Memory.MaxTokens
	if err := m.check(); err != nil {
		return Manifest{}, err
	}
	m.remark(d)
	return m, nil
}

// check returns an error for a value that is out of bounds.
func (m *Manifest) check() error {
	b := m.Brain
	switch {
	case b.Provider != "" && !slices.Contains([]string{None, Anthropic, OpenAI, Local}, b.Provider):
		return fault(fmt.Errorf("brain.provider is none, anthropic, openai or local, not %.60q", b.Provider))
	case b.Temperature != nil && !(*b.Temperature >= 0 && *b.Temperature <= 2):
		return fault(errors.New("brain.temperature is a number from 0 to 2"))
	case b.MaxTokens < 0 || b.MaxTokens > limit.Tokens:
		return fault(fmt.Errorf("brain.maxTokens is a whole number from 1 to %d", limit.Tokens))
	case m.MemoryTokens < 0 || m.MemoryTokens > limit.Tokens:
		return fault(fmt.Errorf("memory.maxTokens is a whole number from 1 to %d", limit.Tokens))
	case len(m.Skills) > mostEntries || len(m.Tools) > mostEntries:
		return fault(fmt.Errorf("skills and tools have at most %d entries each", mostEntries))
	}
	words := map[string]string{"brain.model": b.Model, "voice.tts.voiceId": m.Voice.ID, "voice.tts.provider": m.Voice.Provider}
	for i, s := range m.Skills {
		words[fmt.Sprintf("skills.%d.uri", i)], words[fmt.Sprintf("skills.%d.version", i)] = s.URI, s.Version
	}
	for i, name := range m.Tools {
		words[fmt.Sprintf("tools.%d", i)] = name
	}
	for _, field := range slices.Sorted(maps.Keys(words)) {
		if err := checkShort(field, words[field]); err != nil {
			return err
		}
	}
	return checkShort(errors.New("the front matter's language"), m.Language)
}

// checkShort returns an error unless text is short and one line. field is a name, or a sentence.
func checkShort(field any, text string) error {
	if len(text) > limit.Name || agent.Speakable(text) != text {
		return fault(fmt.Errorf("%s is one line of at most %d bytes", field, limit.Name))
	}
	return nil
}

// remark adds remarks on unsupported requests.
func (m *Manifest) remark(d document) {
	if m.Voice.Provider == "browser" || d.Voice.STT.Provider == "browser" {
		m.addRemark("A browser's voice or speech recognition is not here: it hears and speaks with the engines of this appliance.")
	}
	if m.Voice.Provider == "none" {
		m.addRemark("A character that does not speak is not possible: robots speak with the voice of this appliance.")
	}
	if strings.HasPrefix(d.Body.URI, "ipfs://") {
		m.addRemark("body.uri is on IPFS, which is not read here: the body is the robot, or the skin's own model.")
	}
	for _, s := range m.Skills {
		if strings.HasPrefix(s.URI, "ipfs://") {
			m.addRemark("The skill %s is on IPFS, which is not read here: put its folder into the directory of skills.", s.URI)
		}
	}
	if mode := d.Memory.Mode; mode != "" && mode != "local" {
		m.addRemark("memory.mode %.60q is not possible: its memory is on the disk of this appliance, as with local.", mode)
	}
}

func (m *Manifest) addRemark(format string, args ...any) {
	m.Remarks = append(m.Remarks, fmt.Sprintf(format, args...))
}

// file matches instructions that name a file of the bundle.
var file = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\s:]{1,196}\.(md|markdown|txt)$`) })

// instructions sets the instructions from the manifest itself or from a file.
func (m *Manifest) instructions(text string, open Open) error {
	place := strings.TrimSpace(text)
	switch {
	case place == "":
		return nil
	case strings.HasPrefix(place, "ipfs://"):
		m.addRemark("brain.instructions are on IPFS, which is not read here: it has the household's.")
		return nil
	case file().MatchString(place):
		name := path.Clean(place)
		if !fs.ValidPath(name) {
			return fault(fmt.Errorf("brain.instructions: %.200q is outside of the bundle", place))
		}
		data, err := open(name)
		if errors.Is(err, fs.ErrNotExist) {
			m.addRemark("brain.instructions names %s, which is not beside the manifest: it has the household's.", name)
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: read %s: %w", Err, name, err)
		}
		text = string(data)
	}
	return m.setInstructions(text)
}

// setInstructions sets the instructions and applies their front matter.
func (m *Manifest) setInstructions(text string) error {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	switch {
	case len(text) > limit.Instructions:
		return fault(fmt.Errorf("the instructions have more than %d bytes", limit.Instructions))
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fault(errors.New("the instructions are not text in UTF-8"))
	}
	body, err := m.front(text)
	if err != nil {
		return err
	}
	m.Instructions = strings.TrimSpace(body)
	return m.inline(text)
}

// inline puts the instructions into the manifest, so that it is one file. Their front
// matter is included, even without text after it.
func (m *Manifest) inline(text string) error {
	brain := map[string]json.RawMessage{}
	if err := json.Unmarshal(m.raw["brain"], &brain); err != nil {
		return fault(errors.New("brain is no JSON object"))
	}
	var err error
	if brain["instructions"], err = json.Marshal(text); err == nil {
		m.raw["brain"], err = json.Marshal(brain)
	}
	if err != nil {
		return fmt.Errorf("keep the instructions: %w", err)
	}
	return nil
}

// Export returns the manifest as one file, with every field that it was parsed with.
func (m Manifest) Export() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m.raw); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return b.Bytes(), nil
}

// Text returns an otherwise unused field as text: Text("id", "chain"). It is "" if the
// field is missing or neither text nor number.
func (m Manifest) Text(path ...string) string {
	fields := m.raw
	for _, name := range path[:len(path)-1] {
		var inner map[string]json.RawMessage
		if json.Unmarshal(fields[name], &inner) != nil {
			return ""
		}
		fields = inner
	}
	raw := fields[path[len(path)-1]]
	var text string
	var number json.Number
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if json.Unmarshal(raw, &number) == nil {
		return number.String()
	}
	return ""
}

// Of returns the manifest of a persona that was written as Markdown.
func Of(p agent.Persona) (Manifest, error) {
	brain := map[string]any{"instructions": p.Text}
	if p.Language != "" {
		brain["instructions"] = fmt.Sprintf("---\nlanguage: %q\n---\n\n%s", p.Language, p.Text)
	}
	if p.Brain.Model != "" {
		brain["model"] = p.Brain.Model
	}
	if p.Brain.Temperature != nil {
		brain["temperature"] = *p.Brain.Temperature
	}
	if p.Brain.MaxTokens != 0 {
		brain["maxTokens"] = p.Brain.MaxTokens
	}
	all := map[string]any{"spec": "agent-manifest/0.2", "name": p.Name, "brain": brain}
	if p.Voice != "" {
		all["voice"] = map[string]any{"tts": map[string]any{"voiceId": p.Voice}}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return Manifest{}, fmt.Errorf("write the manifest: %w", err)
	}
	return Parse(data, Alone)
}

// ID returns the id of a character by its name: "Coach Leo" is coach-leo. It is
// empty if the name has no usable characters.
func (m Manifest) ID() string {
	words := strings.FieldsFunc(strings.ToLower(m.Name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// why describes a JSON error in few words.
func why(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is no JSON: byte %d: %s", syntax.Offset, syntax)
	case errors.As(err, &kind):
		return fmt.Errorf("%s is no %s", kind.Field, kind.Value)
	}
	return errors.New("it is no JSON")
}

func fault(why error) error { return fmt.Errorf("%w: %w", Err, why) }
