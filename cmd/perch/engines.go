package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"perch/agent"
	"perch/agent/openai"
	"perch/agent/reflex"
	"perch/voice"
	"perch/voice/elevenlabs"
	"perch/voice/espeak"
	voiceopenai "perch/voice/openai"
	"perch/voice/sphinx"
	"perch/voice/wyoming"
)

// engines are the ears, the mouth and the brains that the configuration
// names.
type engines struct {
	ears    voice.Recognizers
	mouth   voice.Synthesizers
	brains  []agent.Brain
	book    *reflex.Book // what the appliance says by itself
	sphinx  []*sphinx.Engine
	remote  []remote // those that run elsewhere
	espeak  []*espeak.Engine
	closers []func()
}

// remote is an engine that runs elsewhere, and whether it would work now.
type remote struct {
	part, where string
	check       func(context.Context) error
}

// household is what brains know and act on.
type household struct {
	memory *agent.Memory
	timers *agent.Timers
	herald *agent.Herald
}

// newEngines makes them all, loads none and calls nobody.
func newEngines(c *config, h household, log *slog.Logger) (*engines, error) {
	book, err := bookOf(c)
	if err != nil {
		return nil, err
	}
	e := &engines{book: book}
	for _, r := range c.Speech.Recognizers {
		if err := e.addEars(r, log); err != nil {
			return nil, err
		}
	}
	for _, s := range c.Speech.Synthesizers {
		if err := e.addMouth(s, log); err != nil {
			return nil, err
		}
	}
	return e, e.addBrains(c, h, log)
}

func (e *engines) addEars(r recognizerConfig, log *slog.Logger) error {
	key, err := keyOfEngine(r.Key, r.KeyFile)
	if err != nil {
		return err
	}
	switch r.Kind {
	case "wyoming":
		engine, err := wyoming.New(wyoming.Options{Address: r.URL, Model: r.Model, Log: log})
		if err != nil {
			return err
		}
		e.ears = append(e.ears, engine)
		e.reach("recognizer wyoming", r.URL, func(ctx context.Context) error { return engine.CheckRecognize(ctx, voice.Options{}) }, nil)
	case "openai":
		engine, err := voiceopenai.NewRecognizer(voiceopenai.Options{URL: r.URL, Key: key, Model: r.Model, StreamUpload: r.StreamUpload})
		if err != nil {
			return err
		}
		e.ears = append(e.ears, engine)
		e.reach("recognizer openai", r.URL, engine.Check, engine.Close)
	default:
		engine := sphinx.New(sphinx.Options{Model: r.Model, Grammar: grammar(e.book), Log: log})
		e.sphinx = append(e.sphinx, engine)
		e.ears = append(e.ears, engine)
		e.closers = append(e.closers, engine.Close)
	}
	return nil
}

func (e *engines) addMouth(s synthesizerConfig, log *slog.Logger) error {
	key, err := keyOfEngine(s.Key, s.KeyFile)
	if err != nil {
		return err
	}
	switch s.Kind {
	case "wyoming":
		engine, err := wyoming.New(wyoming.Options{Address: s.URL, Voice: s.Voice, Log: log})
		if err != nil {
			return err
		}
		e.mouth = append(e.mouth, engine)
		e.reach("synthesizer wyoming", s.URL, func(ctx context.Context) error { return engine.CheckSynthesize(ctx, voice.Options{}) }, nil)
	case "openai":
		engine, err := voiceopenai.NewSynthesizer(voiceopenai.Options{URL: s.URL, Key: key, Model: s.Model, Voice: s.Voice, Rate: s.Rate, Stream: s.Stream})
		if err != nil {
			return err
		}
		e.mouth = append(e.mouth, engine)
		e.reach("synthesizer openai", s.URL, engine.Check, engine.Close)
	case "elevenlabs":
		engine, err := elevenlabs.New(elevenlabs.Options{URL: s.URL, Key: key, Model: s.Model, Voice: s.Voice})
		if err != nil {
			return err
		}
		e.mouth = append(e.mouth, engine)
		e.reach("synthesizer elevenlabs", s.URL, engine.Check, engine.Close)
	default:
		engine, err := espeak.New(espeak.Options{Voice: s.Voice, Speed: s.Speed})
		if err != nil {
			return err
		}
		e.espeak = append(e.espeak, engine)
		e.mouth = append(e.mouth, engine)
	}
	return nil
}

// reach notes an engine that runs elsewhere.
func (e *engines) reach(part, where string, check func(context.Context) error, end func()) {
	e.remote = append(e.remote, remote{part, where, check})
	if end != nil {
		e.closers = append(e.closers, end)
	}
}

func (e *engines) addBrains(c *config, h household, log *slog.Logger) error {
	persona, err := personaOf(c)
	if err != nil {
		return err
	}
	var deep []agent.Model
	for _, b := range c.BrainDeep {
		model, err := e.model(b, log)
		if err != nil {
			return err
		}
		deep = append(deep, model)
	}
	for _, b := range c.Brains {
		switch b.Kind {
		case "reflex":
			own, err := reflex.Load(c.Language, b.Sentences)
			if err != nil {
				return err
			}
			e.brains = append(e.brains, reflex.New(own, persona.Name, h.memory, h.timers))
		case "none":
			e.brains = append(e.brains, mute{})
		default:
			model, err := e.model(b, log)
			if err != nil {
				return err
			}
			e.brains = append(e.brains, agent.NewThinker(agent.ThinkerOptions{
				Model: model, Deep: deep, Persona: persona, Memory: h.memory, Timers: h.timers, Herald: h.herald,
				CutOff: e.book.Phrase("cut_off"), Refused: e.book.Phrase("refused"), Log: log,
			}))
		}
	}
	return nil
}

// model makes the driver of a language model.
func (e *engines) model(b brainConfig, log *slog.Logger) (agent.Model, error) {
	key, err := keyOfEngine(b.Key, b.KeyFile)
	if err != nil {
		return nil, err
	}
	engine, err := openai.New(openai.Options{URL: b.URL, Key: key, Model: b.Model, Temperature: b.Temperature,
		MaxTokens: b.MaxTokens, KeepAlive: b.KeepAlive, NumCtx: b.NumCtx, Vision: b.Vision, Log: log})
	if err != nil {
		return nil, err
	}
	e.reach("brain openai", b.Model+" at "+b.URL, engine.Check, func() { _ = engine.Close() }) // it was only idle connections
	return engine, nil
}

// mute is the brain of kind none: everything works but to think of an answer.
type mute struct{}

func (mute) Name() string { return "none" }

func (mute) Think(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
	return out(agent.Done{End: agent.Continue})
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

// keyOfEngine is an engine's key, from the configuration or from its file.
func keyOfEngine(key, file string) (string, error) {
	if file == "" {
		return key, nil
	}
	if key != "" {
		return "", errors.New("key and key_file are two places for one key")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read key_file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
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
	for _, end := range e.closers {
		end()
	}
}
