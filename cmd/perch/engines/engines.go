// Package engines makes the recognizers, synthesizers and brains that a configuration names, and
// watches how each does.
package engines

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
	"perch/agent/reflex"
	"perch/agent/skill"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/driver"
	"perch/event"
	"perch/language"
	"perch/remote"
	"perch/voice"
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
	loads        []func(context.Context) error // of recognizers that are in this process
	deep         []thinker.Model               // for hard questions
	All          []*Engine
	sources      map[string]thinker.ToolSource // of tools, by their configuration
	closers      []func()                      // of the group that is being made
	groups       [groups]*group

	language string // of the household
	words    *language.Catalogue

	publish     func(event.Event) // of what fails; nil where nobody listens
	findWyoming func(ctx context.Context) ([]string, error)
}

// Engine is an engine with its condition.
type Engine struct {
	*condition
	List  string // "recognizer", "synthesizer", "brain", "deep" or "tools"
	Kind  string // as the configuration spells it
	Where string
	Check func(context.Context) error // whether it would work now, as the doctor asks
	look  func(context.Context) error // the same, as the appliance asks by itself; nil asks nothing
	Warm  func(context.Context) error // makes it ready for a turn that is about to come; may be nil
	note  func() string               // describes an engine that works; Where does if it is nil

	// What it is, one of these four, where it is in one of their lists.
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Brain       agent.Brain
	Deep        thinker.Model
}

// NewEngines makes all engines. It loads none and makes no connection. find looks for
// Wyoming servers on the network.
func NewEngines(c *config.Config, h drivers.Brain, find func(context.Context) ([]string, error), tell func(event.Event), log *slog.Logger) (*engines,
	error) {
	return nextEngines(nil, c, h, find, tell, log)
}

// nextEngines is NewEngines for a running appliance: it takes over the groups of the engines
// before that the configuration leaves as they are. before may be nil.
func nextEngines(before *engines, c *config.Config, h drivers.Brain, find func(context.Context) ([]string, error), tell func(event.Event),
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
		speaking:      {[]any{e.language, persona.Voice, c.Speech.Synthesizers}, func() error { return e.addSynthesizers(c, persona.Voice, log) }},
		thinking:      {[]any{understood, persona, c.Brains, c.BrainDeep, c.Memory.HistoryTokens, c.Memory.MemoryTokens}, func() error { return e.addBrains(c, h, persona, log) }},
	} {
		if err := e.form(i, g.madeOf, g.make, before); err != nil {
			e.without(before).close()
			return nil, err
		}
	}
	return e, nil
}

// addBooks reads what reflexes and grammars understand.
func (e *engines) addBooks(c *config.Config, h drivers.Brain, log *slog.Logger) (err error) {
	e.words = &language.Catalogue{}
	if e.books, err = config.Books(c); err != nil {
		return err
	}
	e.Book = e.books[0]
	for i, book := range e.books {
		book.Share(e.words)
		if err := teachSkills(book, h.Skills); err != nil && i == 0 { // the others lack what they lack in the same way
			log.Warn("some sentences of skills are not understood; perch skill list says which", "err", err)
		}
	}
	return nil
}

// addRecognizers makes the recognizers.
func (e *engines) addRecognizers(c *config.Config, log *slog.Logger) error {
	setup := e.voiceSetup(log)
	for _, r := range c.Speech.Recognizers {
		made, err := drivers.Recognizers().New(r.Kind, r.Options, setup)
		if err != nil {
			return err
		}
		n := e.addMade("recognizer", r, made, log)
		n.Recognizer = made
		e.recognizers = append(e.recognizers, watchedRecognizer{made, n.condition})
	}
	return nil
}

// addSynthesizers makes the synthesizers, the first of them with the persona's voice. The others
// know it by no such name.
func (e *engines) addSynthesizers(c *config.Config, name string, log *slog.Logger) error {
	setup := e.voiceSetup(log)
	setup.Voice = name
	for _, s := range c.Speech.Synthesizers {
		made, err := drivers.Synthesizers().New(s.Kind, s.Options, setup)
		if err != nil {
			return err
		}
		n := e.addMade("synthesizer", s, made, log)
		n.Synthesizer = made
		e.synthesizers = append(e.synthesizers, watchedSynthesizer{made, n.condition})
		setup.Voice = ""
	}
	return nil
}

func (e *engines) voiceSetup(log *slog.Logger) drivers.Voice {
	return drivers.Voice{Setup: voice.Setup{Language: e.language, Log: log}, Book: e.Book, FindWyoming: e.findWyoming}
}

// Phrase returns a sentence of the appliance in a language; an empty tag is the household's language.
// In the language of the household's book it is the owner's sentence, if there is one.
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

// addMade notes an engine that was made of its entry in the configuration.
func (e *engines) addMade(list string, c config.Engine, made any, log *slog.Logger) *Engine {
	where := shownAddress(driver.Value[string](c.Options, "url"))
	if w, is := made.(interface{ Where() string }); is {
		where = w.Where()
	}
	n := e.add(list, c.Kind, where, log)
	e.serve(n, made)
	return n
}

// ofKind returns the first engine of a list that is of a kind, or nil.
func (e *engines) ofKind(list, kind string) *Engine {
	i := slices.IndexFunc(e.All, func(n *Engine) bool { return n.List == list && n.Kind == kind })
	if i < 0 {
		return nil
	}
	return e.All[i]
}

// watched uses the engine's own check for the doctor and for looks at it.
func (n *Engine) watched(check func(context.Context) error) { n.Check, n.look = check, check }

// serve has an engine looked at, made ready and closed, each where it can be.
func (e *engines) serve(n *Engine, engine any) {
	if c, ok := engine.(interface{ Check(context.Context) error }); ok {
		n.watched(c.Check)
	}
	if i, ok := engine.(interface{ Installed() error }); ok { // to check more would start it
		n.look = func(context.Context) error { return i.Installed() }
	}
	if w, ok := engine.(interface{ Warm(context.Context) error }); ok {
		n.Warm = w.Warm
	}
	if l, ok := engine.(interface{ Load(context.Context) error }); ok {
		e.loads = append(e.loads, l.Load)
	}
	if w, ok := engine.(interface{ Note() string }); ok {
		n.note = w.Note
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
	for _, load := range e.loads {
		err = errors.Join(err, load(ctx))
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

// teachSkills adds the sentences of skills to a book. Its error joins the reasons for the sentences
// that it leaves out.
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

// CheckRecognizers is the part of the check that reads the recognizer's
// dictionary, which takes longer than a start should.
func CheckRecognizers(c *config.Config) error {
	var found []error
	for _, r := range c.Speech.Recognizers {
		keys, is := r.Options.(interface{ CheckGrammar(sphinx.Grammar) error })
		if !is {
			continue
		}
		book, err := config.Book(c)
		if err == nil {
			err = keys.CheckGrammar(drivers.Grammar(book))
		}
		found = append(found, err)
	}
	return errors.Join(found...)
}
