// Package manifest parses characters in the formats agent-manifest/0.1 and 0.2: a JSON file,
// or a bundle of the JSON file and a Markdown file with the instructions. Fields that Perch
// does not use are preserved. Package characters of cmd/perch imports and exports characters
// with this package.
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
	"perch/event"
	"perch/limit"
)

// maxBytes is the largest size of a manifest, of a file that it names, and of a zip file.
const maxBytes = 1 << 20

// maxEntries is the largest number of skills, of tools and of clips.
const maxEntries = 100

// Err is wrapped by the errors for an invalid manifest.
var Err = errors.New("not an agent manifest")

// Manifest describes a character.
type Manifest struct {
	Name         string
	Description  string
	Instructions string // the system prompt; if empty, the configured instructions apply
	Language     string // BCP 47 tag from the front matter of the instructions; if empty, the configured language applies
	Brain        Brain
	Voice        Voice
	Recognizer   string            // None means that the character does not hear; other values have no effect
	Skills       []Skill           // the enabled skills; nil means all that are installed
	Tools        []string          // names of the enabled built-in tools; nil means all
	Clips        map[string]string // clips by the name of the animation, from meta.edits.animations; see agent.Persona
	MemoryTokens int               // largest size of the memory in the prompt, in tokens; 0 means the brain's default
	Memory       string            // what the character knows from the beginning, as Markdown; the text of memory.index
	// Remarks are sentences for the owner, mostly about parts of the manifest that Perch does not support.
	Remarks []string

	raw map[string]json.RawMessage // all fields, with the instructions and the memory inlined
}

// Brain selects and configures the model.
type Brain struct {
	Provider    string   // None, Anthropic, OpenAI or Local; empty means the first configured brain
	Model       string   // empty means the brain's default
	Temperature *float64 // from 0 to 2; nil means the brain's default
	MaxTokens   int      // largest size of one reply, in tokens; 0 means the brain's default
}

// Voice selects the synthesizer and its voice. The Provider None means that the character does not speak.
type Voice struct{ Provider, ID string }

// Skill is a bundle that the manifest requests.
type Skill struct {
	URI     string `json:"uri"`
	Version string `json:"version"`
}

// Name returns the name of the skill: the last part of its URI.
func (s Skill) Name() string { return path.Base(strings.TrimSuffix(s.URI, "/")) }

// Values of Brain.Provider. Local is a model server in the local network. None is also a value of
// Voice.Provider and Manifest.Recognizer.
const (
	None      = agent.NoBrain
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Local     = "local"
)

// Open reads another file of a bundle. name is a slash-separated path relative to the
// manifest. If the file is missing, the error wraps fs.ErrNotExist.
type Open func(name string) ([]byte, error)

// Alone is an Open for a manifest without a bundle: there are no other files.
func Alone(string) ([]byte, error) { return nil, fs.ErrNotExist }

// document contains the fields of a manifest that Perch uses.
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
			Rate     any    `json:"rate"`
			Style    any    `json:"style"`
			ProxyURL any    `json:"proxyURL"`
		} `json:"tts"`
		STT struct {
			Provider string `json:"provider"`
		} `json:"stt"`
	} `json:"voice"`
	Skills []Skill `json:"skills"`
	Memory struct {
		Mode      string `json:"mode"`
		Index     string `json:"index"`
		MaxTokens int    `json:"maxTokens"`
	} `json:"memory"`
	Tools []string `json:"tools"`
}

// Parse parses a manifest. If the instructions or the memory are in files, Parse reads these with open. Errors
// wrap Err and name the invalid field.
func Parse(data []byte, open Open) (Manifest, error) {
	if len(data) > maxBytes {
		return Manifest{}, invalid(fmt.Errorf("it has more than %d bytes", maxBytes))
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	m, d := Manifest{}, document{}
	if err := json.Unmarshal(data, &d); err != nil {
		return Manifest{}, invalid(describeJSONError(err))
	}
	if err := json.Unmarshal(data, &m.raw); err != nil || m.raw == nil {
		return Manifest{}, invalid(errors.New("it is no JSON object"))
	}
	if d.Spec != "agent-manifest/0.1" && d.Spec != "agent-manifest/0.2" {
		return Manifest{}, invalid(fmt.Errorf("spec is agent-manifest/0.1 or agent-manifest/0.2, not %.60q", d.Spec))
	}
	m.Name, m.Description = strings.TrimSpace(d.Name), d.Description
	if n := utf8.RuneCountInString(m.Name); n < 1 || n > limit.Called || agent.Speakable(m.Name) != m.Name {
		return Manifest{}, invalid(fmt.Errorf("name is a line of 1 to %d letters", limit.Called))
	}
	m.Brain = Brain{d.Brain.Provider, d.Brain.Model, d.Brain.Temperature, d.Brain.MaxTokens}
	if err := m.loadInstructions(d.Brain.Instructions, open); err != nil {
		return Manifest{}, err
	}
	if err := m.loadMemory(d.Memory.Index, open); err != nil {
		return Manifest{}, err
	}
	m.Voice, m.Recognizer = Voice{d.Voice.TTS.Provider, d.Voice.TTS.VoiceID}, d.Voice.STT.Provider
	m.Skills, m.Tools, m.MemoryTokens = d.Skills, d.Tools, d.Memory.MaxTokens
	m.loadClips()
	if err := m.check(); err != nil {
		return Manifest{}, err
	}
	m.addRemarks(d)
	return m, nil
}

// check returns an error for the first invalid value.
func (m *Manifest) check() error {
	b := m.Brain
	switch {
	case b.Provider != "" && !slices.Contains([]string{None, Anthropic, OpenAI, Local}, b.Provider):
		return invalid(fmt.Errorf("brain.provider is none, anthropic, openai or local, not %.60q", b.Provider))
	case b.Temperature != nil && !(*b.Temperature >= 0 && *b.Temperature <= 2):
		return invalid(errors.New("brain.temperature is a number from 0 to 2"))
	case b.MaxTokens < 0 || b.MaxTokens > limit.Tokens:
		return invalid(fmt.Errorf("brain.maxTokens is a whole number from 1 to %d", limit.Tokens))
	case m.MemoryTokens < 0 || m.MemoryTokens > limit.Tokens:
		return invalid(fmt.Errorf("memory.maxTokens is a whole number from 1 to %d", limit.Tokens))
	case len(m.Skills) > maxEntries || len(m.Tools) > maxEntries || len(m.Clips) > maxEntries:
		return invalid(fmt.Errorf("skills, tools and meta.edits.animations have at most %d entries each", maxEntries))
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

// checkShort checks that a text is one line of at most limit.Name bytes. field is a name, or an
// error with a description of the field.
func checkShort(field any, text string) error {
	if len(text) > limit.Name || agent.Speakable(text) != text {
		return invalid(fmt.Errorf("%s is one line of at most %d bytes", field, limit.Name))
	}
	return nil
}

// addRemarks adds remarks about parts of the manifest that Perch does not support, and about a character
// that does not speak or hear.
func (m *Manifest) addRemarks(d document) {
	if m.Voice.Provider == "browser" || m.Recognizer == "browser" {
		m.addRemark("A browser's voice or speech recognition is not available: the character uses the engines of this appliance.")
	}
	if m.Voice.Provider == None {
		m.addRemark("The character does not speak: its robots only show what it says, and the words of timers and notifications.")
	}
	if m.Recognizer == None {
		m.addRemark("The character does not hear: its robots answer what is written to them, and tell people who speak to them.")
	}
	tts := d.Voice.TTS
	for _, field := range []struct {
		name  string
		value any
	}{{"rate", tts.Rate}, {"style", tts.Style}, {"proxyURL", tts.ProxyURL}} {
		if field.value != nil {
			m.addRemark("voice.tts.%s has no effect: the configuration of the appliance's synthesizer applies.", field.name)
		}
	}
	if strings.HasPrefix(d.Body.URI, "ipfs://") {
		m.addRemark("body.uri is on IPFS, which this appliance does not read: the body is the robot, or the model of the skin.")
	}
	for _, s := range m.Skills {
		if strings.HasPrefix(s.URI, "ipfs://") {
			m.addRemark("The skill %s is on IPFS, which this appliance does not read: put its folder into the directory of skills.", s.URI)
		}
	}
	for _, name := range m.Tools {
		if !slices.Contains([]string{"wave", "lookAt", "play_clip", "setExpression", "speak", "remember"}, name) {
			m.addRemark("The tool %s is not built in, and is left out; a skill brings tools of its own.", name)
		}
	}
	if mode := d.Memory.Mode; mode != "" && mode != "local" {
		m.addRemark("memory.mode %.60q is not possible: the memory is stored on this appliance, as with local.", mode)
	}
}

func (m *Manifest) addRemark(format string, args ...any) {
	m.Remarks = append(m.Remarks, fmt.Sprintf(format, args...))
}

// fileFormat matches a text that is the path of a file in the bundle.
var fileFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\s:]{1,196}\.(md|markdown|txt)$`) })

// loadInstructions sets the instructions. text is brain.instructions: the instructions
// themselves or the path of a file.
func (m *Manifest) loadInstructions(text string, open Open) error {
	text, found, err := m.readText("brain.instructions", text, "the household's instructions apply", open)
	if !found || err != nil {
		return err
	}
	body, err := m.parseFrontMatter(text)
	if err != nil {
		return err
	}
	m.Instructions = strings.TrimSpace(body)
	return m.inline("brain", "instructions", text)
}

// loadMemory sets the memory. text is memory.index: the memory itself or the path of a file.
func (m *Manifest) loadMemory(text string, open Open) error {
	text, found, err := m.readText("memory.index", text, "the character begins without it", open)
	if !found || err != nil {
		return err
	}
	m.Memory = strings.TrimSpace(text)
	return m.inline("memory", "index", text)
}

// loadClips sets the clips. It adds a remark about each animation whose name is not a valid name of a gesture,
// and about a meta field of another form.
func (m *Manifest) loadClips() {
	var meta struct {
		Edits struct{ Animations map[string]string }
	}
	if raw := m.raw["meta"]; len(raw) > 0 && json.Unmarshal(raw, &meta) != nil {
		m.addRemark("meta.edits.animations has no effect: it is not an object of names.")
		return
	}
	m.Clips = map[string]string{}
	for _, slot := range slices.Sorted(maps.Keys(meta.Edits.Animations)) {
		name, ok := event.GestureName(slot)
		if !ok {
			m.addRemark("The animation %.60q is left out: its name has other characters than letters, digits, - and _, or more than 40.", slot)
			continue
		}
		clip, ok := event.GestureName(meta.Edits.Animations[slot])
		if !ok {
			clip = "" // only the program that shows the character can play the clip
		}
		m.Clips[name] = clip
	}
}

// readText returns a text with LF line endings, or the content of the file of the bundle that
// the text names. found is false for an empty text, and for a file that is missing or on IPFS;
// readText adds a remark about such a file. field is the text's field, and otherwise is the part
// of the remark that says what happens without the file.
func (m *Manifest) readText(field, text, otherwise string, open Open) (_ string, found bool, err error) {
	file := strings.TrimSpace(text)
	switch {
	case file == "":
		return "", false, nil
	case strings.HasPrefix(file, "ipfs://"):
		m.addRemark("%s is on IPFS, which this appliance does not read: %s.", field, otherwise)
		return "", false, nil
	case fileFormat().MatchString(file):
		name := path.Clean(file)
		if !fs.ValidPath(name) {
			return "", false, invalid(fmt.Errorf("%s: %.200q is outside of the bundle", field, file))
		}
		data, err := open(name)
		if errors.Is(err, fs.ErrNotExist) {
			m.addRemark("%s names %s, which is missing in the bundle: %s.", field, name, otherwise)
			return "", false, nil
		}
		if err != nil {
			return "", false, fmt.Errorf("%w: read %s: %w", Err, name, err)
		}
		text = string(data)
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	switch {
	case len(text) > limit.Instructions:
		return "", false, invalid(fmt.Errorf("%s has more than %d bytes", field, limit.Instructions))
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", false, invalid(fmt.Errorf("%s is not UTF-8 text", field))
	}
	return text, true, nil
}

// inline replaces a field of an object in m.raw, which may be the path of a file, by a text.
func (m *Manifest) inline(object, field, text string) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(m.raw[object], &fields); err != nil {
		return invalid(fmt.Errorf("%s is not a JSON object", object))
	}
	var err error
	if fields[field], err = json.Marshal(text); err == nil {
		m.raw[object], err = json.Marshal(fields)
	}
	if err != nil {
		return fmt.Errorf("inline %s.%s: %w", object, field, err)
	}
	return nil
}

// Export returns the manifest as one JSON file, with all fields of the parsed manifest.
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

// Text returns a text or number of the parsed manifest as text: Text("id", "chain") returns
// the field chain of the object id. Text returns "" for other fields and missing ones.
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

// Of returns a manifest for a persona that the owner has written as Markdown.
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
	fields := map[string]any{"spec": "agent-manifest/0.2", "name": p.Name, "brain": brain}
	if p.Voice != "" {
		fields["voice"] = map[string]any{"tts": map[string]any{"voiceId": p.Voice}}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return Manifest{}, fmt.Errorf("write the manifest: %w", err)
	}
	return Parse(data, Alone)
}

// ID derives the ID of the character from the name: "coach-leo" for "Coach Leo". It returns ""
// if the name contains no ASCII letters or digits.
func (m Manifest) ID() string {
	words := strings.FieldsFunc(strings.ToLower(m.Name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// describeJSONError returns a short error for people instead of an error of package json.
func describeJSONError(err error) error {
	var syntaxErr *json.SyntaxError
	var typeErr *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntaxErr):
		return fmt.Errorf("it is no JSON: byte %d: %s", syntaxErr.Offset, syntaxErr)
	case errors.As(err, &typeErr):
		return fmt.Errorf("%s may not be a JSON %s", typeErr.Field, typeErr.Value)
	}
	return errors.New("it is no JSON")
}

// invalid returns an error that wraps Err and err.
func invalid(err error) error { return fmt.Errorf("%w: %w", Err, err) }
