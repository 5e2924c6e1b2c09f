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
	hear := func(engine voice.Recognizer) {
		n.Recognizer = engine
		e.recognizers = append(e.recognizers, watchedRecognizer{engine, n.condition})
	}
	within := time.Duration(r.Within)
	switch r.Kind {
	case "wyoming":
		engine, err := wyoming.New(wyoming.Options{Address: r.URL, Find: e.findWyoming, Model: r.Model, AnswerWithin: within, Log: log})
		if err != nil {
			return err
		}
		n.watched(func(ctx context.Context) error { return engine.CheckRecognize(ctx, voice.Options{}) })
		n.Warm = engine.Warm
		hear(engine)
	case "openai":
		engine, err := openai.NewRecognizer(openai.Options{URL: r.URL, Key: key, Model: r.Model, StreamUpload: r.StreamUpload, FirstByte: within})
		if err != nil {
			return err
		}
		n.watched(engine.Check)
		e.closers = append(e.closers, engine.Close)
		hear(engine)
	case "assist":
		engine, err := assist.NewRecognizer(assist.Options{URL: r.URL, Token: token, Pipeline: r.Pipeline, AnswerWithin: within})
		if err != nil {
			return err
		}
		n.watched(engine.Check)
		e.closers = append(e.closers, engine.Close)
		hear(engine)
	default:
		engine := sphinx.New(sphinx.Options{Model: r.Model, Grammar: grammar(e.Book), Log: log})
		n.note = func() string {
			if engine.Loaded() {
				return "loaded"
			}
			return "loaded when the first robot comes"
		}
		e.sphinx = append(e.sphinx, engine)
		e.closers = append(e.closers, engine.Close)
		hear(engine)
	}
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
	speak := func(engine voice.Synthesizer) {
		n.Synthesizer = engine
		e.synthesizers = append(e.synthesizers, watchedSynthesizer{engine, n.condition})
	}
	within := time.Duration(s.Within)
	switch s.Kind {
	case "wyoming":
		engine, err := wyoming.New(wyoming.Options{Address: s.URL, Find: e.findWyoming, Voice: s.Voice, AnswerWithin: within, Log: log})
		if err != nil {
			return err
		}
		n.watched(func(ctx context.Context) error { return engine.CheckSynthesize(ctx, voice.Options{}) })
		n.Warm = engine.Warm
		speak(engine)
	case "openai":
		engine, err := openai.NewSynthesizer(openai.Options{URL: s.URL, Key: key, Model: s.Model, Voice: s.Voice, Rate: s.Rate, Stream: s.Stream,
			FirstByte: within})
		if err != nil {
			return err
		}
		n.watched(engine.Check)
		e.closers = append(e.closers, engine.Close)
		speak(engine)
	case "elevenlabs":
		engine, err := elevenlabs.New(elevenlabs.Options{URL: s.URL, Key: key, Model: s.Model, Voice: s.Voice, FirstByte: within})
		if err != nil {
			return err
		}
		n.watched(engine.Check)
		e.closers = append(e.closers, engine.Close)
		speak(engine)
	case "assist":
		engine, err := assist.NewSynthesizer(assist.Options{URL: s.URL, Token: token, Pipeline: s.Pipeline, Engine: s.Engine, Voice: s.Voice,
			Convert: s.Convert, AnswerWithin: within})
		if err != nil {
			return err
		}
		n.watched(engine.Check)
		e.closers = append(e.closers, engine.Close)
		speak(engine)
	default:
		engine, err := espeak.New(espeak.Options{Voice: s.Voice, Language: e.language, Speed: s.Speed})
		if err != nil {
			return err
		}
		n.watched(func(context.Context) error { return engine.Check() })
		n.Where = "espeak-ng is installed"
		e.espeak = append(e.espeak, engine)
		speak(engine)
	}
	return nil
}
