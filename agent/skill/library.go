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

// Options of a Library. All are optional.
type Options struct {
	Folder string // contains a folder for each bundle; if empty, there are only built-in skills
	Trust  Trust
	// Publish publishes events about skills.
	Publish func(robot device.ID, session string, e event.Event)
	// Remember stores a fact for the skill remember, which fails without it.
	Remember func(c Call, name, fact string) error
	// Sign signs a message with the appliance's key for the skill sign-action, which fails without it.
	Sign func(message string) (event.Signed, error)
	// Server returns the MCP server at an address, under the name that the bundle gives it.
	Server func(name, address string) (thinker.ToolSource, error)
	// Skills returns the names of a character's skills; nil means all.
	Skills   func(character string) []string
	Language func() string // of the household, BCP 47; nil is English
	Within   time.Duration // for one tool; 20 s if 0
	Log      *slog.Logger
}

// Library is the skills of the appliance.
type Library struct {
	o       Options
	words   language.Catalogue
	skills  map[string]Skill
	order   []string // the names of bundles, dependencies first; then the built-in skills
	refused []Refusal
	client  *remote.Client
	servers map[string]thinker.ToolSource // by the skill's name, a slash and the server's name
	slots   chan struct{}
}

// performTool is the tool with which a model performs a skill.
const performTool = "perform_skill"

// New loads the bundles of a folder, which may be missing. A faulty bundle is refused
// without affecting others. Close releases the resources.
func New(o Options) (*Library, error) {
	o.Within = cmp.Or(o.Within, 20*time.Second)
	if o.Remember == nil {
		o.Remember = func(Call, string, string) error { return errors.New("there is no memory here") }
	}
	if o.Sign == nil {
		o.Sign = func(string) (event.Signed, error) { return event.Signed{}, errors.New("there is no key here") }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Publish == nil {
		o.Publish = func(device.ID, string, event.Event) {}
	}
	if o.Language == nil {
		o.Language = func() string { return "" }
	}
	l := &Library{o: o, skills: builtins(), servers: map[string]thinker.ToolSource{}, slots: make(chan struct{}, mostAtOnce)}
	l.client = remote.NewClient(remote.Options{Server: remote.Server{Service: "the skill's endpoint", Check: "the url in its tools.json"},
		First: o.Within, Idle: o.Within})
	own := slices.Sorted(maps.Keys(l.skills))
	found, err := l.read()
	if err != nil {
		return nil, err
	}
	sorted, refused := order(found, l.skills)
	l.refused = append(l.refused, refused...)
	for _, s := range sorted {
		l.skills[s.Name] = s
		l.order = append(l.order, s.Name)
		l.connect(s)
	}
	l.order = append(l.order, own...)
	return l, nil
}

// read reads the bundles that are trusted.
func (l *Library) read() (all []Skill, err error) {
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
		if len(all) == mostSkills {
			l.refused = append(l.refused, Refusal{Folder: folder, Err: fmt.Errorf("there are already %d skills", mostSkills)})
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
		all = append(all, s)
	}
	return all, nil
}

// connect prepares the MCP servers of a skill, which connect at their first call.
func (l *Library) connect(s Skill) {
	if l.o.Server == nil {
		return
	}
	for name, at := range s.Servers {
		source, err := l.o.Server(name, at)
		if err != nil {
			l.o.Log.Warn("a skill's MCP server cannot be used", "name", s.Name, "server", name, "err", err)
			continue
		}
		l.servers[s.Name+"/"+name] = source
	}
}

// Close cancels running calls and closes the connections to MCP servers. It may be
// called more than once.
func (l *Library) Close() {
	l.client.Close()
	for _, server := range l.servers {
		if c, ok := server.(io.Closer); ok {
			_ = c.Close() // there is nobody to report the error to
		}
	}
}

// Refused returns the bundles that were not loaded, and why.
func (l *Library) Refused() []Refusal { return l.refused }

// All returns the skills: bundles as they were loaded, and then the built-in ones.
func (l *Library) All() []Skill {
	all := make([]Skill, 0, len(l.order))
	for _, name := range l.order {
		all = append(all, l.skills[name])
	}
	return all
}

// of returns the skills of a character.
func (l *Library) of(character string) []Skill {
	all := l.All()
	if l.o.Skills == nil {
		return all
	}
	names := l.o.Skills(cmp.Or(character, agent.DefaultCharacter))
	if names == nil {
		return all
	}
	return slices.DeleteFunc(all, func(s Skill) bool { return s.builtin == nil && !slices.Contains(names, s.Name) })
}

// skillOf returns a character's skill of that name.
func (l *Library) skillOf(character, name string) (s Skill, has bool) {
	all := l.of(character)
	i := slices.IndexFunc(all, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return all[i], true
}

// Check returns nil for the name of a skill, and otherwise an error that wraps
// ErrElsewhere or ErrUnknown.
func (l *Library) Check(name string) error {
	if _, has := l.skills[name]; has {
		return nil
	}
	if err := elsewhere(name); err != nil {
		return err
	}
	return fmt.Errorf("%w: %q", ErrUnknown, plain.Clip(agent.Speakable(name), mostNameLength))
}

// Names returns the names of a character's skills.
func (l *Library) Names(character string) []string {
	names := []string{}
	for _, s := range l.of(character) {
		names = append(names, s.Name)
	}
	return names
}

// character returns the id of a turn's character.
func character(t agent.Turn) string {
	if t.Persona == nil {
		return agent.DefaultCharacter
	}
	return cmp.Or(t.Persona.ID, agent.DefaultCharacter)
}

// Block returns the part of the prompt about a turn's skills: the instructions of bundles.
func (l *Library) Block(t agent.Turn) string {
	if t.Untrusted {
		return ""
	}
	var b strings.Builder
	for _, s := range l.of(character(t)) {
		if s.builtin == nil {
			fmt.Fprintf(&b, "<skill name=%q version=%q>\n%s\n</skill>\n", s.Name, s.Version, cmp.Or(s.Instructions, s.Description))
		}
	}
	return strings.TrimSpace(b.String())
}

// Tools returns the tools of a turn's skills, and the tool that performs any skill.
func (l *Library) Tools(t agent.Turn) []thinker.Tool {
	if t.Untrusted {
		return nil // a skill's tools may act on the home
	}
	var all []thinker.Tool
	var names []string
	var about strings.Builder
	for _, s := range l.of(character(t)) {
		for _, tool := range s.Tools {
			all = append(all, tool.Tool)
		}
		if s.Handler != "" || s.Voice != "" || s.builtin != nil && s.Name != "remember" { // has its own tool
			names = append(names, s.Name)
			fmt.Fprintf(&about, " %s: %s", s.Name, s.Description)
		}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "required": []string{"skill"}, "properties": map[string]any{
		"skill": map[string]any{"type": "string", "enum": names},
		"args":  map[string]any{"type": "object", "description": "what the skill is to know"},
	}})
	if err != nil || len(names) == 0 {
		return all
	}
	return append(all, thinker.Tool{Name: performTool, Schema: schema,
		Description: plain.Clip("Do something you know how to do."+about.String(), 1000)})
}

// Run runs one of Tools for a turn, and returns the result for the model.
func (l *Library) Run(ctx context.Context, t agent.Turn, name string, args json.RawMessage) (string, error) {
	c := Call{Agent: character(t), Robot: t.Robot, Session: t.Session, Args: args, Now: t.Now, Language: t.Language,
		Untrusted: t.Untrusted}
	if c.Untrusted {
		return "", ErrDenied
	}
	if name == performTool {
		var asked struct {
			Skill string
			Args  json.RawMessage
		}
		if err := json.Unmarshal(args, &asked); err != nil {
			return "", fmt.Errorf("%w: %w", ErrArguments, err)
		}
		c.Skill, c.Args = asked.Skill, asked.Args
		return text(l.Perform(ctx, c))
	}
	for _, s := range l.of(c.Agent) {
		if i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
			c.Skill = s.Name
			return text(l.work(ctx, s, c, func(p *performance) (Result, error) { return l.use(p, s.Tools[i]) }))
		}
	}
	return "", fmt.Errorf("%w: the tool %.40q", ErrUnknown, name)
}

// Answer performs a skill for a turn, and returns the text to say: its
// voicePattern, or else its output. has reports whether the turn's character has the
// skill; a stranger has none.
func (l *Library) Answer(ctx context.Context, t agent.Turn, name string, args json.RawMessage) (said string, has bool, err error) {
	s, has := l.skillOf(character(t), name)
	if !has || t.Untrusted {
		return "", false, nil
	}
	given, err := s.given(args)
	if err != nil {
		return "", true, err
	}
	if args, err = json.Marshal(given); err != nil {
		return "", true, err
	}
	r, err := l.Perform(ctx, Call{Agent: character(t), Robot: t.Robot, Session: t.Session, Skill: name, Args: args, Now: t.Now,
		Language: t.Language})
	if err != nil {
		return "", true, err
	}
	if s.Voice != "" {
		return fill(s.Voice, given, r), true, nil
	}
	return r.Output, true, nil
}

// given returns the values of slots under the names of arguments.
func (s Skill) given(slots json.RawMessage) (map[string]any, error) {
	all, err := arguments(slots)
	for slot, argument := range s.Slots {
		if value, said := all[slot]; said {
			delete(all, slot)
			all[argument] = value
		}
	}
	return all, err
}

// text returns a result as text for a model.
func text(r Result, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case r.Output == "" && len(r.Data) > 0:
		return string(r.Data), nil
	}
	return r.Output, nil
}

// exposedPrefix is the prefix of exposed skills' tool names.
const exposedPrefix = "skill_"

// Exposed returns the tools that other programs may call.
func (l *Library) Exposed() (all []thinker.Tool) {
	for _, s := range l.All() {
		if s.Exposed {
			all = append(all, thinker.Tool{Name: exposedName(s), Description: s.Description, Schema: s.input()})
		}
	}
	return all
}

func exposedName(s Skill) string { return exposedPrefix + strings.ReplaceAll(s.Name, "-", "_") }

// CallExposed performs an exposed skill by the name of its tool.
func (l *Library) CallExposed(ctx context.Context, name string, args json.RawMessage, now time.Time) (string, error) {
	for _, s := range l.All() {
		if s.Exposed && exposedName(s) == name {
			return text(l.Perform(ctx, Call{Agent: agent.DefaultCharacter, Skill: s.Name, Args: args, Now: now, Exposed: true}))
		}
	}
	return "", fmt.Errorf("%w: %.60q", ErrUnknown, name)
}

// input returns the schema of a skill's arguments: its own, or its handler's.
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

// SentencesIn returns the sentences in a language, BCP 47, that invoke the skill.
func (s Skill) SentencesIn(language string) []string {
	base, _, _ := strings.Cut(language, "-")
	return s.Sentences[base]
}
