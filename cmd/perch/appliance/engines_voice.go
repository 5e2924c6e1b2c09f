package appliance

import (
	"context"
	"log/slog"
	"time"

	"perch/cmd/perch/config"
	"perch/voice"
	"perch/voice/assist"
	"perch/voice/elevenlabs"
	"perch/voice/espeak"
	"perch/voice/openai"
	"perch/voice/sphinx"
	"perch/voice/wyoming"
)

// served is an engine that a server does the work of, over connections that it keeps.
type served interface {
	Check(context.Context) error
	Close()
}

// serve has an engine's server looked at, and its connections closed in the end.
func (e *engines) serve(n *Engine, engine served) {
	n.watched(engine.Check)
	e.closers = append(e.closers, engine.Close)
}

// addRecognizer makes one recognizer.
func (e *engines) addRecognizer(r config.Recognizer, log *slog.Logger) error {
	key, err := config.Secret("key", r.Key, r.KeyFile)
	if err != nil {
		return err
	}
	token, err := config.Secret("token", r.Token, r.TokenFile)
	if err != nil {
		return err
	}
	n := e.add("recognizer", r.Kind, shownAddress(r.URL), log)
	within := time.Duration(r.Within)
	switch r.Kind {
	case "wyoming":
		engine, err := made(e, wyoming.Options{Address: r.URL, Find: e.findWyoming, Model: r.Model, AnswerWithin: within, Log: log}, wyoming.New)
		if err != nil || e.checks {
			return err
		}
		n.watched(func(ctx context.Context) error { return engine.CheckRecognize(ctx, voice.Options{}) })
		n.Recognizer, n.Warm = engine, engine.Warm
	case "openai":
		engine, err := made(e, openai.Options{URL: r.URL, Key: key, Model: r.Model, StreamUpload: r.StreamUpload, FirstByte: within},
			openai.NewRecognizer)
		if err != nil || e.checks {
			return err
		}
		n.Recognizer = engine
		e.serve(n, engine)
	case "assist":
		engine, err := made(e, assist.Options{URL: r.URL, Token: token, Pipeline: r.Pipeline, AnswerWithin: within}, assist.NewRecognizer)
		if err != nil || e.checks {
			return err
		}
		n.Recognizer = engine
		e.serve(n, engine)
	case "sphinx":
		if e.checks {
			return nil // it needs the whole book; see CheckRecognizers
		}
		engine := sphinx.New(sphinx.Options{Model: r.Model, Grammar: grammar(e.Book), Log: log})
		n.Recognizer = engine
		n.note = func() string {
			if engine.Loaded() {
				return "loaded"
			}
			return "loaded when the first robot comes"
		}
		e.sphinx = append(e.sphinx, engine)
		e.closers = append(e.closers, engine.Close)
	}
	e.recognizers = append(e.recognizers, watchedRecognizer{n.Recognizer, n.condition})
	return nil
}

// addSynthesizer makes one synthesizer.
func (e *engines) addSynthesizer(s config.Synthesizer, log *slog.Logger) error {
	key, err := config.Secret("key", s.Key, s.KeyFile)
	if err != nil {
		return err
	}
	token, err := config.Secret("token", s.Token, s.TokenFile)
	if err != nil {
		return err
	}
	n := e.add("synthesizer", s.Kind, shownAddress(s.URL), log)
	within := time.Duration(s.Within)
	switch s.Kind {
	case "wyoming":
		engine, err := made(e, wyoming.Options{Address: s.URL, Find: e.findWyoming, Voice: s.Voice, AnswerWithin: within, Log: log}, wyoming.New)
		if err != nil || e.checks {
			return err
		}
		n.watched(func(ctx context.Context) error { return engine.CheckSynthesize(ctx, voice.Options{}) })
		n.Synthesizer, n.Warm = engine, engine.Warm
	case "openai":
		engine, err := made(e, openai.Options{URL: s.URL, Key: key, Model: s.Model, Voice: s.Voice, Rate: s.Rate, Stream: s.Stream,
			FirstByte: within}, openai.NewSynthesizer)
		if err != nil || e.checks {
			return err
		}
		n.Synthesizer = engine
		e.serve(n, engine)
	case "elevenlabs":
		engine, err := made(e, elevenlabs.Options{URL: s.URL, Key: key, Model: s.Model, Voice: s.Voice, FirstByte: within}, elevenlabs.New)
		if err != nil || e.checks {
			return err
		}
		n.Synthesizer = engine
		e.serve(n, engine)
	case "assist":
		engine, err := made(e, assist.Options{URL: s.URL, Token: token, Pipeline: s.Pipeline, Engine: s.Engine, Voice: s.Voice,
			Convert: s.Convert, AnswerWithin: within}, assist.NewSynthesizer)
		if err != nil || e.checks {
			return err
		}
		n.Synthesizer = engine
		e.serve(n, engine)
	case "espeak":
		engine, err := made(e, espeak.Options{Voice: s.Voice, Language: e.language, Speed: s.Speed}, espeak.New)
		if err != nil || e.checks {
			return err
		}
		n.watched(func(context.Context) error { return engine.Check() })
		n.Synthesizer, n.Where = engine, "espeak-ng is installed"
		e.espeak = append(e.espeak, engine)
	}
	e.synthesizers = append(e.synthesizers, watchedSynthesizer{n.Synthesizer, n.condition})
	return nil
}
