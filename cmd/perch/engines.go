package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/reflex"
	"perch/device"
	"perch/event"
	"perch/remote"
	"perch/voice"
	"perch/voice/espeak"
	"perch/voice/sphinx"
)

// engines are the ears, the mouth and the brains that the configuration
// names.
type engines struct {
	ears    voice.Recognizers
	mouth   voice.Synthesizers
	brains  []agent.Brain
	book    *reflex.Book // what the appliance says by itself
	sphinx  []*sphinx.Engine
	espeak  []*espeak.Engine
	deep    []agent.Model // for hard questions
	all     []*engine
	sources map[string]agent.ToolSource // of tools, by their configuration
	closers []func()

	language string // of the house

	tell func(event.Event) // of what fails; nil where nobody listens
	find func(ctx context.Context) ([]string, error)
}

// engine is one of them, and how it does.
type engine struct {
	*condition
	list  string // "recognizer", "synthesizer", "brain", "deep" or "tools"
	where string
	check func(context.Context) error // whether it would work now, as the doctor asks
	look  func(context.Context) error // the same, as the appliance asks by itself; nil asks nothing
	warm  func(context.Context) error // makes it ready for a turn that is about to come; may be nil
	note  func() string               // of one that works; nil is where it is

	// What it is, one of these four, where it is no source of tools.
	ear   voice.Recognizer
	mouth voice.Synthesizer
	brain agent.Brain
	deep  agent.Model
}

// mindOf is what brains know, act on, and may.
type mindOf struct {
	memory *agent.Memory
	timers *agent.Timers
	herald *agent.Herald
	senses senses
	trusts func(device.ID) bool    // with the answer to a permission
	lend   func() acp.ToolEndpoint // where a coding agent finds tools
}

// newEngines makes them all, loads none and calls nobody. find looks for
// Wyoming servers on the network.
func newEngines(c *config, h mindOf, find func(context.Context) ([]string, error), tell func(event.Event), log *slog.Logger) (*engines, error) {
	book, err := bookOf(c)
	if err != nil {
		return nil, err
	}
	speech, err := speechOf(c)
	if err != nil {
		return nil, err
	}
	e := &engines{book: book, language: speech.Language, tell: tell, find: find}
	for _, r := range c.Speech.Recognizers {
		if err := e.addEars(r, log); err != nil {
			return nil, err
		}
	}
	for _, s := range c.synthesizers() {
		if err := e.addMouth(s, log); err != nil {
			return nil, err
		}
	}
	for _, b := range c.BrainDeep {
		if err := e.addDeep(b, log); err != nil {
			return nil, fmt.Errorf("brain_deep: %w", err)
		}
	}
	for _, b := range c.Brains {
		if err := e.addBrain(c, b, h, log); err != nil {
			return nil, err
		}
	}
	e.lastOfAll()
	return e, nil
}

// place is where an engine is, without what in its address may be a secret.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return remote.Address(u)
}

// add notes an engine, whose part is made of its list and its kind.
func (e *engines) add(list, kind, where string, log *slog.Logger) *engine {
	tell := e.tell
	if tell == nil {
		tell = func(event.Event) {}
	}
	part := list + " " + kind
	for i := 2; slices.ContainsFunc(e.all, func(n *engine) bool { return n.Part == part }); i++ {
		part = fmt.Sprintf("%s %s %d", list, kind, i)
	}
	n := &engine{condition: newCondition(part, log, tell, time.Now), list: list, where: where}
	n.language = e.language
	e.all = append(e.all, n)
	return n
}

// asked has an engine looked after by what it says of itself.
func (n *engine) asked(check func(context.Context) error) { n.check, n.look = check, check }

// lastOfAll marks the last of each list, which is always tried.
func (e *engines) lastOfAll() {
	latest := map[string]*engine{}
	for _, n := range e.all {
		latest[n.list] = n
	}
	for _, n := range latest {
		n.Last = true
	}
}

// tend looks after the engines until ctx ends.
func (e *engines) tend(ctx context.Context) {
	var wg sync.WaitGroup
	for _, n := range e.all {
		if n.look != nil {
			wg.Go(func() { n.condition.Watch(ctx, n.look) })
		}
	}
	wg.Wait()
}

// warmEvery is how often engines are made ready, at most, and warmWithin how
// long that may take.
const (
	warmEvery  = 20 * time.Second
	warmWithin = 2 * time.Minute
)

// warm makes ready what the next turn will use: of each list the first that
// works. What fails here will say so when it is used.
func (e *engines) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	var wg sync.WaitGroup
	chosen := map[string]bool{}
	for _, n := range e.all {
		if n.list == "deep" || n.list != "tools" && chosen[n.list] || n.Resting() != nil {
			continue
		}
		chosen[n.list] = true
		if n.warm != nil {
			wg.Go(func() { _ = n.warm(ctx) })
		}
	}
	wg.Wait()
}

func (e *engines) close() {
	for _, end := range e.closers {
		end()
	}
}

// personaOf is who the robot is: a file, or a name alone.
func personaOf(c *config) (agent.Persona, error) {
	persona := agent.DefaultPersona()
	if c.Persona.File != "" {
		read, err := agent.LoadPersona(c.Persona.File)
		if err != nil {
			return persona, err
		}
		persona = read
	}
	if persona.Name == "" || c.Persona.File == "" {
		persona.Name = c.Persona.Name
	}
	return persona, nil
}

// synthesizers are those configured, the first of them with the persona's
// voice. The others know it by no such name.
func (c *config) synthesizers() []synthesizerConfig {
	all := slices.Clone(c.Speech.Synthesizers)
	// A persona that cannot be read is a fault of its own.
	if persona, err := personaOf(c); err == nil && persona.Voice != "" && len(all) > 0 {
		all[0].Voice = persona.Voice
	}
	return all
}

// bookOf is the reflex brain's book, whose sentences the embedded recognizer
// listens for. In a language that it does not speak, what the appliance says by
// itself is English where other brains answer.
func bookOf(c *config) (*reflex.Book, error) {
	own := ""
	for _, b := range c.Brains {
		if b.Kind == "reflex" {
			own = b.Sentences
		}
	}
	book, err := reflex.Load(c.Language, own)
	if err != nil && !c.reflexes() {
		book, err = reflex.Load(ownLanguage, own)
	}
	if err != nil {
		return nil, fmt.Errorf("read the reflex brain's sentences: %w", err)
	}
	return book, nil
}

// ownLanguage is that of the appliance's own sentences, where they are in no other.
const ownLanguage = "en"

// grammar is what a book understands, as the recognizer is told it.
func grammar(book *reflex.Book) sphinx.Grammar {
	var g sphinx.Grammar
	for _, r := range book.Rules() {
		g.Rules = append(g.Rules, sphinx.Rule{Name: r.Name, Body: r.Body, Source: r.Source})
		if r.Top {
			g.Top = append(g.Top, r.Name)
		}
	}
	for _, r := range book.Answers() {
		g.Rules = append(g.Rules, sphinx.Rule{Name: r.Name, Body: r.Body, Source: r.Source})
		g.Answer = append(g.Answer, r.Name)
	}
	return g
}

func checkGrammar(c *config, r recognizerConfig) error {
	book, err := bookOf(c)
	if err != nil {
		return err
	}
	if r.Model == "" {
		r.Model = sphinx.Model
	}
	return sphinx.Check(grammar(book), r.Model)
}
