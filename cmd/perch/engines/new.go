// Package engines makes the recognizers, synthesizers and brains that a configuration names, and
// records the condition of each.
package engines

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/event"
	"perch/language"
	"perch/voice/sphinx"
)

// New makes all engines of a configuration. It loads none and makes no connection. It takes over the
// groups of before, which may be nil, that the configuration leaves as they are. find looks for
// Wyoming servers on the network; publish, which may be nil, publishes what fails.
func New(before *Set, c *config.Config, h drivers.Brain, find func(context.Context) ([]string, error), publish func(event.Event),
	log *slog.Logger) (*Set, error) {
	speech, err := config.Speech(c)
	if err != nil {
		return nil, err
	}
	persona, err := config.Persona(c)
	if err != nil {
		return nil, err
	}
	e := &Set{sentences: config.Sentences(c), language: speech.Language, publish: publish, findWyoming: find}
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
			e.CloseNew(before)
			return nil, err
		}
	}
	return e, nil
}

// addBooks reads the sentences that reflexes and grammars understand.
func (e *Set) addBooks(c *config.Config, h drivers.Brain, log *slog.Logger) (err error) {
	e.words = &language.Catalogue{}
	if e.books, err = config.Books(c); err != nil {
		return err
	}
	e.Book = e.books[0]
	for i, book := range e.books {
		if err := e.prepare(book, h.Skills); err != nil && i == 0 { // in the other books the same are left out
			log.Warn("some sentences of skills are not understood; perch skill list says which", "err", err)
		}
	}
	return nil
}

// form takes over a group of before that was made of the same, or makes it.
func (e *Set) form(i int, madeOf any, make func() error, before *Set) error {
	if before != nil && reflect.DeepEqual(before.groups[i].madeOf, madeOf) {
		e.groups[i] = before.groups[i]
		e.All = append(e.All, e.groups[i].engines...)
		switch i {
		case understanding:
			e.Book, e.books, e.words = before.Book, before.books, before.words
		case hearing:
			e.Recognizers, e.loads = before.Recognizers, before.loads
		case speaking:
			e.Synthesizers = before.Synthesizers
		case thinking:
			e.Brains, e.Deep, e.sources = before.Brains, before.Deep, before.sources
		}
		return nil
	}
	first := len(e.All)
	e.closers = nil
	err := make()
	e.groups[i] = &group{madeOf: madeOf, engines: slices.Clone(e.All[first:]), closers: e.closers}
	return err
}

// CheckRecognizers checks the sentences against the recognizer's dictionary, which takes longer than
// a start should.
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
