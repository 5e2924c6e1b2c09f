package skill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/language"
	"perch/plain"
	"perch/remote"
)

// Options configure a Library. A library that performs no skills needs only Folder and Trust.
type Options struct {
	Folder string // folder with a subfolder for each bundle; if empty, there are only built-in skills
	Trust  Trust
	// Publish publishes events about skills.
	Publish func(robot device.ID, session string, e event.Event)
	// Remember stores a fact for the skill remember.
	Remember func(c Call, name, fact string) error
	// Sign signs a message with the appliance's key for the skill sign-action.
	Sign func(message string) (event.Signed, error)
	// Server returns the MCP server at an address, which must limit the time of its calls. name is the
	// server's key in Skill.Servers. If nil, tools of MCP servers fail.
	Server func(name, address string) (thinker.ToolSource, error)
	// Skills returns the names of a character's bundles. A nil function or result means all.
	Skills   func(character string) []string
	Language func() string // returns the configured language as a BCP 47 tag
	Within   time.Duration // time limit for a call of an HTTP endpoint; 20 s if 0
	Log      *slog.Logger
}

// Library contains the skills of the appliance.
type Library struct {
	o       Options
	words   language.Catalogue
	skills  map[string]Skill // by name
	order   []string         // names of the skills in bundles, dependencies first, and then names of the built-in skills
	refused []Refusal
	client  *remote.Client                // calls the endpoints of tools
	servers map[string]thinker.ToolSource // MCP servers; key: name of the skill, a slash and the name of the server
	slots   chan struct{}                 // contains a value for each running skill
}

// performTool is the name of the tool with which a model performs a skill.
const performTool = "perform_skill"

// New loads the bundles in o.Folder, which may be missing. An invalid bundle is refused, and
// so are the bundles that depend on it. New returns an error only if it cannot read o.Folder. Close releases the
// resources of the library.
func New(o Options) (*Library, error) {
	o.Within = cmp.Or(o.Within, 20*time.Second)
	l := &Library{o: o, skills: builtins(), servers: map[string]thinker.ToolSource{}, slots: make(chan struct{}, maxRunning)}
	l.client = remote.NewClient(remote.Options{Server: remote.Server{Service: "the skill's endpoint", Check: "the url in its tools.json"},
		First: o.Within, Idle: o.Within})
	builtin := slices.Sorted(maps.Keys(l.skills))
	trusted, err := l.readTrusted()
	if err != nil {
		return nil, err
	}
	sorted, refused := order(trusted, l.skills)
	l.refused = append(l.refused, refused...)
	for _, s := range sorted {
		l.skills[s.Name] = s
		l.order = append(l.order, s.Name)
		l.addServers(s)
	}
	l.order = append(l.order, builtin...)
	return l, nil
}

// readTrusted reads the bundles and returns the first maxSkills trusted ones, in the order of their
// folders' names. It adds the others to l.refused.
func (l *Library) readTrusted() (trusted []Skill, err error) {
	if l.o.Folder == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(l.o.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the skills: %w", err)
	}
	for _, e := range entries {
		folder := filepath.Join(l.o.Folder, e.Name())
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if len(trusted) == maxSkills {
			l.refused = append(l.refused, Refusal{Folder: folder, Err: fmt.Errorf("there are already %d skills", maxSkills)})
			continue
		}
		s, err := Read(folder)
		if err == nil {
			err = l.o.Trust.Check(s)
		}
		if err != nil {
			l.refused = append(l.refused, Refusal{folder, s.Name, err})
			continue
		}
		trusted = append(trusted, s)
	}
	return trusted, nil
}

// addServers adds the MCP servers of a skill to l.servers. It does not wait until they are connected.
func (l *Library) addServers(s Skill) {
	if l.o.Server == nil {
		return
	}
	for name, address := range s.Servers {
		source, err := l.o.Server(name, address)
		if err != nil {
			l.o.Log.Warn("a skill's MCP server cannot be used", "name", s.Name, "server", name, "err", err)
			continue
		}
		l.servers[s.Name+"/"+name] = source
	}
}

// Close cancels the running calls of HTTP endpoints and closes the connections to MCP servers. It
// may be called more than once.
func (l *Library) Close() {
	l.client.Close()
	for _, server := range l.servers {
		if c, ok := server.(io.Closer); ok {
			_ = c.Close() // the library is no longer in use, so errors do not matter
		}
	}
}

// Refused returns the bundles that were not loaded, with the reasons.
func (l *Library) Refused() []Refusal { return l.refused }

// All returns all skills: the bundles, dependencies first, and then the built-in skills.
func (l *Library) All() []Skill {
	skills := make([]Skill, 0, len(l.order))
	for _, name := range l.order {
		skills = append(skills, l.skills[name])
	}
	return skills
}

// skillsOf returns the skills of a character: its bundles and all built-in skills. An empty
// character is the default character.
func (l *Library) skillsOf(character string) []Skill {
	skills := l.All()
	if l.o.Skills == nil {
		return skills
	}
	names := l.o.Skills(cmp.Or(character, agent.DefaultCharacter))
	if names == nil {
		return skills
	}
	return slices.DeleteFunc(skills, func(s Skill) bool { return s.builtin == nil && !slices.Contains(names, s.Name) })
}

// skillOf returns the skill with this name if the character has it.
func (l *Library) skillOf(character, name string) (s Skill, ok bool) {
	skills := l.skillsOf(character)
	i := slices.IndexFunc(skills, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return skills[i], true
}

// Check returns nil if the library has a skill with this name and its version is in the range that
// version describes (see parseRange), and otherwise an error that wraps ErrElsewhere, ErrUnknown or
// ErrVersion. A built-in skill is in every range.
func (l *Library) Check(name, version string) error {
	if s, ok := l.skills[name]; ok {
		if s.builtin != nil || s.hasVersion(version) {
			return nil
		}
		return fmt.Errorf("%w %s", ErrVersion, s.Version)
	}
	if err := checkElsewhere(name); err != nil {
		return err
	}
	return fmt.Errorf("%w: %q", ErrUnknown, plain.Clip(agent.Speakable(name), maxNameLength))
}

// Names returns the names of a character's skills.
func (l *Library) Names(character string) []string {
	names := []string{}
	for _, s := range l.skillsOf(character) {
		names = append(names, s.Name)
	}
	return names
}

// character returns the ID of a turn's character.
func character(t agent.Turn) string {
	if t.Persona == nil {
		return agent.DefaultCharacter
	}
	return cmp.Or(t.Persona.ID, agent.DefaultCharacter)
}

// Block returns the part of a turn's prompt that contains the instructions of bundles, or ""
// for an untrusted turn.
func (l *Library) Block(t agent.Turn) string {
	if t.Untrusted {
		return ""
	}
	var b strings.Builder
	for _, s := range l.skillsOf(character(t)) {
		if s.builtin == nil {
			fmt.Fprintf(&b, "<skill name=%q version=%q>\n%s\n</skill>\n", s.Name, s.Version, cmp.Or(s.Instructions, s.Description))
		}
	}
	return strings.TrimSpace(b.String())
}

// Tools returns the tools that a turn's model may call: the tools of the skills, and
// performTool. An untrusted turn gets none, because tools may act on the home.
func (l *Library) Tools(t agent.Turn) []thinker.Tool {
	if t.Untrusted {
		return nil
	}
	var tools []thinker.Tool
	var names []string
	var descriptions strings.Builder
	for _, s := range l.skillsOf(character(t)) {
		for _, tool := range s.Tools {
			tools = append(tools, tool.Tool)
		}
		// For the skill remember, the model has the memory's own tool.
		if s.Handler != "" || s.Voice != "" || s.builtin != nil && s.Name != "remember" {
			names = append(names, s.Name)
			fmt.Fprintf(&descriptions, " %s: %s", s.Name, s.Description)
		}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "required": []string{"skill"}, "properties": map[string]any{
		"skill": map[string]any{"type": "string", "enum": names},
		"args":  map[string]any{"type": "object", "description": "what the skill is to know"},
	}})
	if err != nil || len(names) == 0 {
		return tools
	}
	return append(tools, thinker.Tool{Name: performTool, Schema: schema,
		Description: plain.Clip("Do something you know how to do."+descriptions.String(), 1000)})
}

// Run calls one of the tools of Tools for a turn. It returns the result for the model. speech is the
// text that people hear: the skill's Voice, filled in. It is empty if the skill has none, or if the tool is not
// the skill's handler.
func (l *Library) Run(ctx context.Context, t agent.Turn, name string, args json.RawMessage) (result, speech string, err error) {
	c := Call{Agent: character(t), Robot: t.Robot, Session: t.Session, Args: args, Now: t.Now, Language: t.Language,
		Untrusted: t.Untrusted}
	if c.Untrusted {
		return "", "", ErrDenied
	}
	if name == performTool {
		var request struct {
			Skill string
			Args  json.RawMessage
		}
		if err := json.Unmarshal(args, &request); err != nil {
			return "", "", fmt.Errorf("%w: %w", ErrArguments, err)
		}
		c.Skill, c.Args = request.Skill, request.Args
		r, err := l.Perform(ctx, c)
		result, err = resultText(r, err)
		return result, r.Speech, err
	}
	for _, s := range l.skillsOf(c.Agent) {
		if i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
			c.Skill = s.Name
			if name != s.Handler {
				s.Voice = "" // the tool is only a part of the skill
			}
			r, err := l.run(ctx, s, c, func(p *performance) (Result, error) { return l.callTool(p, s.Tools[i]) })
			result, err = resultText(r, err)
			return result, r.Speech, err
		}
	}
	return "", "", fmt.Errorf("%w: the tool %.40q", ErrUnknown, name)
}

// Answer performs a skill for a turn and returns the text to speak: the skill's Voice, or
// else its output. The keys of args are names of slots. ok is false if the turn's character
// does not have the skill or the turn is untrusted.
func (l *Library) Answer(ctx context.Context, t agent.Turn, name string, args json.RawMessage) (text string, ok bool, err error) {
	s, ok := l.skillOf(character(t), name)
	if !ok || t.Untrusted {
		return "", false, nil
	}
	renamed, err := s.renameSlots(args)
	if err != nil {
		return "", true, err
	}
	if args, err = json.Marshal(renamed); err != nil {
		return "", true, err
	}
	r, err := l.Perform(ctx, Call{Agent: character(t), Robot: t.Robot, Session: t.Session, Skill: name, Args: args, Now: t.Now,
		Language: t.Language})
	if err != nil {
		return "", true, err
	}
	return r.Spoken(), true, nil
}

// Has reports whether a turn's character has a skill that Answer would perform.
func (l *Library) Has(t agent.Turn, name string) bool {
	_, ok := l.skillOf(character(t), name)
	return ok && !t.Untrusted
}

// renameSlots decodes a JSON object with the values of slots, and renames the slots that
// Skill.Slots maps to arguments.
func (s Skill) renameSlots(slots json.RawMessage) (map[string]any, error) {
	args, err := decodeArguments(slots)
	for slot, argument := range s.Slots {
		if value, ok := args[slot]; ok {
			delete(args, slot)
			args[argument] = value
		}
	}
	return args, err
}

// resultText returns a result as text for a model.
func resultText(r Result, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case r.Output == "" && len(r.Data) > 0:
		return string(r.Data), nil
	}
	return r.Output, nil
}

// Exposed returns a tool for each exposed skill. Other programs call these tools.
func (l *Library) Exposed() (tools []thinker.Tool) {
	for _, s := range l.All() {
		if s.Exposed {
			tools = append(tools, thinker.Tool{Name: exposedName(s), Description: s.Description, Schema: s.input()})
		}
	}
	return tools
}

// exposedName returns the name of an exposed skill's tool.
func exposedName(s Skill) string { return "skill_" + strings.ReplaceAll(s.Name, "-", "_") }

// CallExposed performs the exposed skill whose tool has this name; see Exposed.
func (l *Library) CallExposed(ctx context.Context, name string, args json.RawMessage, now time.Time) (string, error) {
	for _, s := range l.All() {
		if s.Exposed && exposedName(s) == name {
			return resultText(l.Perform(ctx, Call{Agent: agent.DefaultCharacter, Skill: s.Name, Args: args, Now: now, Exposed: true}))
		}
	}
	return "", fmt.Errorf("%w: %.60q", ErrUnknown, name)
}

// input returns the JSON Schema of a skill's arguments: Skill.Input, or else the schema of
// the handler.
func (s Skill) input() json.RawMessage {
	if len(s.Input) > 0 {
		return s.Input
	}
	for _, t := range s.Tools {
		if t.Name == s.Handler {
			return t.Schema
		}
	}
	return json.RawMessage(`{"type":"object","properties":{}}`)
}

// SentencesIn returns the sentences that invoke the skill in a language, given as a BCP 47
// tag. Only the part of the tag before the first hyphen matters.
func (s Skill) SentencesIn(language string) []string {
	base, _, _ := strings.Cut(language, "-")
	return s.Sentences[base]
}
