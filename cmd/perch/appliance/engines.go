package appliance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/reflex"
	"perch/agent/skill"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/cmd/perch/viewers"
	"perch/device"
	"perch/event"
	"perch/language"
	"perch/remote"
	"perch/voice"
	"perch/voice/espeak"
	"perch/voice/sphinx"
)

// engines are the recognizers, the synthesizers and the brains that a configuration
// names.
type engines struct {
	recognizers  voice.Recognizers
	synthesizers voice.Synthesizers
	brains       []agent.Brain
	Book         *reflex.Book   // of the household's first language
	books        []*reflex.Book // of all its languages, with the sentences of the owner's file
	sentences    string
	sphinx       []*sphinx.Engine
	espeak       []*espeak.Engine
	deep         []thinker.Model // for hard questions
	All          []*Engine
	sources      map[string]thinker.ToolSource // of tools, by their configuration
	closers      []func()                      // of the group that is being made
	groups       [groups]*group

	language string // of the household
	words    *language.Catalogue
	checks   bool // their options are checked, and nothing is made

	publish     func(event.Event) // of what fails; nil where nobody listens
	findWyoming func(ctx context.Context) ([]string, error)
}

// Engine is one of them, and how it does.
type Engine struct {
	*condition
	List  string // "recognizer", "synthesizer", "brain", "deep" or "tools"
	Kind  string // as the configuration spells it
	Where string
	Check func(context.Context) error // whether it would work now, as the doctor asks
	look  func(context.Context) error // the same, as the appliance asks by itself; nil asks nothing
	Warm  func(context.Context) error // makes it ready for a turn that is about to come; may be nil
	note  func() string               // of one that works; nil is where it is

	// What it is, one of these four, where it is in one of their lists.
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Brain       agent.Brain
	Deep        thinker.Model
}

// BrainOptions is what brains know, act on, and may.
type BrainOptions struct {
	Own    thinker.Options         // memory, timers, notifications and senses
	trusts func(device.ID) bool    // with the answer to a permission
	lend   func() acp.ToolEndpoint // where a coding agent finds tools
	skills *skill.Library          // whose sentences are understood without a model; nil is none
}

// NewEngines makes all engines. It loads none and makes no connection. find looks for
// Wyoming servers on the network.
func NewEngines(c *config.Config, h BrainOptions, find func(context.Context) ([]string, error), tell func(event.Event), log *slog.Logger) (*engines,
	error) {
	return nextEngines(nil, c, h, find, tell, log)
}

// nextEngines is NewEngines after those before, of which the groups go on that the
// configuration leaves as they are. nil is none.
func nextEngines(before *engines, c *config.Config, h BrainOptions, find func(context.Context) ([]string, error), tell func(event.Event),
	log *slog.Logger) (*engines, error) {
	speech, err := config.Speech(c)
	if err != nil {
		return nil, err
	}
	persona, err := config.Persona(c)
	if err != nil {
		return nil, err
	}
	e := &engines{sentences: config.Sentences(c), language: speech.Language, publish: tell, findWyoming: find}
	understood := []any{config.ReflexLanguages(c), e.sentences, e.language}
	for i, g := range [groups]struct {
		madeOf any
		make   func() error
	}{
		understanding: {understood, func() error { return e.addBooks(c, h, log) }},
		hearing:       {[]any{understood, c.Speech.Recognizers}, func() error { return e.addRecognizers(c, log) }},
		speaking:      {[]any{e.language, c.Synthesizers()}, func() error { return e.addSynthesizers(c, log) }},
		thinking:      {[]any{understood, persona, c.Brains, c.BrainDeep, c.Memory.HistoryTokens, c.Memory.MemoryTokens}, func() error { return e.addBrains(c, h, log) }},
	} {
		if err := e.form(i, g.madeOf, g.make, before); err != nil {
			e.without(before).close()
			return nil, err
		}
	}
	return e, nil
}

// addBooks reads what reflexes and grammars understand.
func (e *engines) addBooks(c *config.Config, h BrainOptions, log *slog.Logger) (err error) {
	e.words = &language.Catalogue{}
	if e.books, err = config.Books(c); err != nil {
		return err
	}
	e.Book = e.books[0]
	for i, book := range e.books {
		book.Share(e.words)
		if err := teachSkills(book, h.skills); err != nil && i == 0 { // the others lack what they lack in the same way
			log.Warn("some sentences of skills are not understood; perch skill list says which", "err", err)
		}
	}
	return nil
}

// addRecognizers makes the recognizers.
func (e *engines) addRecognizers(c *config.Config, log *slog.Logger) error {
	for _, r := range c.Speech.Recognizers {
		if err := e.addRecognizer(r, log); err != nil {
			return err
		}
	}
	return nil
}

// addSynthesizers makes the synthesizers.
func (e *engines) addSynthesizers(c *config.Config, log *slog.Logger) error {
	for _, s := range c.Synthesizers() {
		if err := e.addSynthesizer(s, log); err != nil {
			return err
		}
	}
	return nil
}

// addBrains makes the brains, and the models for hard questions.
func (e *engines) addBrains(c *config.Config, h BrainOptions, log *slog.Logger) error {
	e.sources = map[string]thinker.ToolSource{}
	for i, b := range c.BrainDeep {
		b.Within = brainWithin(c.BrainDeep, i)
		if err := e.addDeep(b, log); err != nil {
			return fmt.Errorf("brain_deep: %w", err)
		}
	}
	for i, b := range c.Brains {
		b.Within = brainWithin(c.Brains, i)
		if err := e.addBrain(c, b, h, log); err != nil {
			return err
		}
	}
	return nil
}

// Phrase is a sentence of the appliance in a language: the owner's own in that of the
// household's book. An empty tag is the household's.
func (e *engines) Phrase(tag, name string) string {
	words := e.words.In(cmp.Or(tag, e.language))
	if own := e.Book.OwnPhrase(name); own != "" && string(words.Tag) == string(e.Book.Language()) {
		return own
	}
	return words.Say("phrases." + name)
}

// shownAddress is where an engine is, without what in its address may be a secret.
func shownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return remote.Address(u)
}

// add notes an engine, whose part is made of its list and its kind. The last of a
// list is always tried.
func (e *engines) add(list, kind, where string, log *slog.Logger) *Engine {
	tell := e.publish
	if tell == nil {
		tell = func(event.Event) {}
	}
	part := list + " " + kind
	for i := 2; slices.ContainsFunc(e.All, func(n *Engine) bool { return n.Part == part }); i++ {
		part = fmt.Sprintf("%s %s %d", list, kind, i)
	}
	n := &Engine{condition: newCondition(part, log, tell, time.Now), List: list, Kind: kind, Where: where}
	n.language, n.Last = e.language, true
	for _, before := range e.All {
		if before.List == list { // the others may be in use already
			before.Last = false
		}
	}
	e.All = append(e.All, n)
	return n
}

// watched uses the engine's own check for the doctor and for looks at it.
func (n *Engine) watched(check func(context.Context) error) { n.Check, n.look = check, check }

// serve has an engine looked at, made ready and closed, each where it can be.
func (e *engines) serve(n *Engine, engine any) {
	if c, ok := engine.(interface{ Check(context.Context) error }); ok {
		n.watched(c.Check)
	}
	if w, ok := engine.(interface{ Warm(context.Context) error }); ok {
		n.Warm = w.Warm
	}
	switch c := engine.(type) {
	case interface{ Close() }:
		e.closers = append(e.closers, c.Close)
	case interface{ Close() error }:
		e.closers = append(e.closers, func() { _ = c.Close() }) // which says so in the log itself
	}
}

// warmEvery is how often engines are made ready, at most, and warmWithin how
// long that may take.
const (
	warmEvery  = 20 * time.Second
	warmWithin = 2 * time.Minute
)

// load loads the recognizers that are in this process, unless they are.
func (e *engines) load(ctx context.Context) error {
	var err error
	for _, engine := range e.sphinx {
		err = errors.Join(err, engine.Load(ctx))
	}
	return err
}

// warm makes ready what the next turn will use: of each list the first that
// works. What fails here will say so when it is used.
func (e *engines) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	var wg sync.WaitGroup
	chosen := map[string]bool{}
	for _, n := range e.All {
		if n.List == "deep" || n.List != "tools" && chosen[n.List] || n.Resting() != nil {
			continue
		}
		chosen[n.List] = true
		if n.Warm != nil {
			wg.Go(func() { _ = n.Warm(ctx) })
		}
	}
	wg.Wait()
}

// teachSkills adds the sentences of skills to a book. Its error is of those that are
// left out, joined by errors.Join.
func teachSkills(book *reflex.Book, skills *skill.Library) error {
	if skills == nil {
		return nil
	}
	var faults []error
	for _, s := range skills.All() {
		faults = append(faults, TeachSkill(book, s))
	}
	return errors.Join(faults...)
}

// TeachSkill adds those of one.
func TeachSkill(book *reflex.Book, s skill.Skill) error {
	return book.AddSkill(s.Name, s.SentencesIn(book.Language()))
}

// settled says of what a recognizer supposes whether anything can follow it.
func settled(book *reflex.Book) func(text string, answer bool) bool {
	return func(text string, answer bool) bool {
		if answer {
			return book.SettledAnswer(text)
		}
		return book.Settled(text)
	}
}

// grammar is what a book understands, in the recognizer's form. Of a book in another
// language it is what the English one understands, as the recognizer knows no other.
func grammar(book *reflex.Book) sphinx.Grammar {
	rules := book.Rules()
	if len(rules) == 0 {
		if english, err := reflex.Load("en", ""); err == nil {
			book, rules = english, english.Rules()
		}
	}
	var g sphinx.Grammar
	for _, r := range rules {
		g.Rules = append(g.Rules, sphinx.Rule{Name: r.Name, Body: r.Body, Source: r.Source})
		if r.Optional {
			g.Optional = append(g.Optional, r.Name)
		}
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

// CheckRecognizers is the part of the check that reads the recognizer's
// dictionary, which takes longer than a start should.
func CheckRecognizers(c *config.Config) error {
	var found []error
	for _, r := range c.Speech.Recognizers {
		if r.Kind != "sphinx" {
			continue
		}
		book, err := config.Book(c)
		if err == nil {
			err = sphinx.Check(grammar(book), cmp.Or(r.Model, sphinx.Model))
		}
		found = append(found, err)
	}
	return errors.Join(found...)
}

// CheckPart is the error of making a part of its configuration. It makes none; see
// config.PartCheck.
func CheckPart(c *config.Config, part any) error {
	nobody := func(context.Context) ([]string, error) { return nil, nil }
	e, quiet := &engines{Book: new(reflex.Book), words: new(language.Catalogue), findWyoming: nobody, checks: true}, slog.New(slog.DiscardHandler)
	switch part := part.(type) {
	case config.Recognizer:
		return e.addRecognizer(part, quiet)
	case config.Synthesizer:
		return e.addSynthesizer(part, quiet)
	case config.Brain:
		return e.addBrain(c, part, BrainOptions{}, quiet)
	case config.DeepBrain:
		return e.addDeep(config.Brain(part), quiet)
	case config.MQTT:
		return checkMirror(part)
	case config.Relay:
		return viewers.CheckRelay(part)
	case config.Live2DModel:
		_, err := viewers.ReadModel(part)
		return err
	}
	return fmt.Errorf("there is no part of type %T", part)
}

// made is what a driver makes of its options, or nothing where these are only
// checked.
func made[O interface{ Check() error }, E any](e *engines, o O, make func(O) (E, error)) (made E, err error) {
	if e.checks {
		return made, o.Check()
	}
	return make(o)
}
