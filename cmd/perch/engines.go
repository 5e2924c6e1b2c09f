package main

import (
	"fmt"
	"log/slog"

	"perch/agent"
	"perch/agent/reflex"
	"perch/voice"
	"perch/voice/espeak"
	"perch/voice/sphinx"
)

// engines are the ears, the mouth and the brains that the configuration
// names.
type engines struct {
	ears   voice.Recognizers
	mouth  voice.Synthesizers
	brains []agent.Brain
	book   *reflex.Book // what the appliance says by itself
	sphinx []*sphinx.Engine
	espeak []*espeak.Engine
}

// newEngines makes them all, and loads none.
func newEngines(c *config, memory *agent.Memory, timers *agent.Timers, log *slog.Logger) (*engines, error) {
	book, err := bookOf(c)
	if err != nil {
		return nil, err
	}
	e := &engines{book: book}
	for _, r := range c.Speech.Recognizers {
		engine := sphinx.New(sphinx.Options{Model: r.Model, Grammar: grammar(book), Log: log})
		e.sphinx = append(e.sphinx, engine)
		e.ears = append(e.ears, engine)
	}
	for _, s := range c.Speech.Synthesizers {
		engine, err := espeak.New(espeak.Options{Voice: s.Voice, Speed: s.Speed})
		if err != nil {
			return nil, err
		}
		e.espeak = append(e.espeak, engine)
		e.mouth = append(e.mouth, engine)
	}
	for _, b := range c.Brains {
		own, err := reflex.Load(c.Language, b.Sentences)
		if err != nil {
			return nil, err
		}
		e.brains = append(e.brains, reflex.New(own, c.Persona.Name, memory, timers))
	}
	return e, nil
}

// bookOf is the reflex brain's book, whose sentences the embedded recognizer
// listens for.
func bookOf(c *config) (*reflex.Book, error) {
	own := ""
	for _, b := range c.Brains {
		if b.Kind == "reflex" {
			own = b.Sentences
		}
	}
	book, err := reflex.Load(c.Language, own)
	if err != nil {
		return nil, fmt.Errorf("read the reflex brain's sentences: %w", err)
	}
	return book, nil
}

// grammar is what a book understands, as the recognizer is told it.
func grammar(book *reflex.Book) sphinx.Grammar {
	var g sphinx.Grammar
	for _, r := range book.Rules() {
		g.Rules = append(g.Rules, sphinx.Rule{Name: r.Name, Body: r.Body, Source: r.Source})
		if r.Top {
			g.Top = append(g.Top, r.Name)
		}
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

func (e *engines) close() {
	for _, s := range e.sphinx {
		s.Close()
	}
}
