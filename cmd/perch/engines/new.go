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
	"perch/voice/music"
	"perch/voice/sphinx"
)

// New makes all engines of a configuration, but neither loads them nor connects to them. It uses the
// groups of engines in before whose configuration has not changed; before may be nil. h is the setup of
// brains. find searches the network for Wyoming servers. publish, which may be nil, publishes failures of
// engines and changes of their voices.
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
	e := &Set{sentences: config.Sentences(c), music: music.NewLibrary(c.MusicSources()).Names(), language: speech.Language, publish: publish, findWyoming: find}
	if before != nil {
		e.earlier = before.All
		defer func() { e.earlier = nil }()
	}
	sentences := []any{config.ReflexLanguages(c), e.sentences, e.language, e.music}
	for i, g := range [numGroups]struct {
		madeFrom any
		make     func() error
	}{
		sentencesGroup:    {sentences, func() error { return e.addBooks(c, h, log) }},
		recognizersGroup:  {[]any{sentences, c.Speech.Recognizers}, func() error { return e.addRecognizers(c, log) }},
		synthesizersGroup: {[]any{e.language, persona.Voice, c.Speech.Synthesizers}, func() error { return e.addSynthesizers(c, persona.Voice, log) }},
		brainsGroup:       {[]any{sentences, persona, c.Brains, c.BrainDeep, c.Memory.HistoryTokens, c.Memory.MemoryTokens}, func() error { return e.addBrains(c, h, persona, log) }},
	} {
		if err := e.shareOrMake(i, g.madeFrom, g.make, before); err != nil {
			e.CloseNew(before)
			return nil, err
		}
	}
	if before != nil {
		e.keepVoices(before)
	}
	return e, nil
}

// addBooks loads the sentences that the reflex brain and the embedded recognizer understand.
func (e *Set) addBooks(c *config.Config, h drivers.Brain, log *slog.Logger) (err error) {
	e.words = &language.Catalogue{}
	if e.books, err = config.Books(c); err != nil {
		return err
	}
	e.Book = e.books[0]
	for i, book := range e.books {
		if err := e.prepareBook(book, h.Skills); err != nil && i == 0 { // log the error for the first book only
			log.Warn("some sentences of skills are not understood; perch skill list shows them", "err", err)
		}
	}
	return nil
}

// shareOrMake shares group i with before if the group in before was made from the same configuration.
// Otherwise it calls make to make the group.
func (e *Set) shareOrMake(i int, madeFrom any, make func() error, before *Set) error {
	if before != nil && reflect.DeepEqual(before.groups[i].madeFrom, madeFrom) {
		e.groups[i] = before.groups[i]
		e.All = append(e.All, e.groups[i].engines...)
		switch i {
		case sentencesGroup:
			e.Book, e.books, e.words = before.Book, before.books, before.words
		case recognizersGroup:
			e.Recognizers, e.loads = before.Recognizers, before.loads
		case synthesizersGroup:
			e.Synthesizers = before.Synthesizers
		case brainsGroup:
			e.Brains, e.Deep, e.sources = before.Brains, before.Deep, before.sources
		}
		return nil
	}
	first := len(e.All)
	e.closers = nil
	err := make()
	e.groups[i] = &group{madeFrom: madeFrom, engines: slices.Clone(e.All[first:]), closers: e.closers}
	return err
}

// CheckRecognizers checks that the dictionaries of the recognizers contain the words of all sentences.
// New does not check this, because the check takes too long for a start.
func CheckRecognizers(c *config.Config) error {
	var errs []error
	for _, r := range c.Speech.Recognizers {
		options, ok := r.Options.(interface{ CheckGrammar(sphinx.Grammar) error })
		if !ok {
			continue
		}
		book, err := config.Book(c)
		if err == nil {
			err = options.CheckGrammar(drivers.Grammar(book))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
