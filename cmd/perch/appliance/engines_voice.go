package appliance

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"perch/agent/reflex"
	"perch/cmd/perch/config"
	"perch/language"
	"perch/voice"
	"perch/voice/assist"
	"perch/voice/elevenlabs"
	"perch/voice/espeak"
	"perch/voice/openai"
	"perch/voice/openjtalk"
	"perch/voice/sphinx"
	"perch/voice/wyoming"
)

// addRecognizer makes one recognizer.
func (e *engines) addRecognizer(r config.Recognizer, log *slog.Logger) error {
	key, err := config.Secret("key", r.Key, r.KeyFile)
	if err != nil {
		return err
	}
	token, err := config.Token(r.URL, r.Token, r.TokenFile)
	if err != nil {
		return err
	}
	n := e.add("recognizer", r.Kind, shownAddress(r.URL), log)
	within := time.Duration(r.Within)
	switch r.Kind {
	case "wyoming":
		n.Recognizer, err = made(e, wyoming.Options{Address: r.URL, Find: e.findWyoming, Model: r.Model, AnswerWithin: within, Log: log},
			wyoming.New)
	case "openai":
		n.Recognizer, err = made(e, openai.Options{URL: r.URL, Key: key, Model: r.Model, StreamUpload: r.StreamUpload, FirstByte: within},
			openai.NewRecognizer)
	case "assist":
		n.Recognizer, err = made(e, assist.Options{URL: r.URL, Token: token, Pipeline: r.Pipeline, AnswerWithin: within}, assist.NewRecognizer)
	case "sphinx":
		if e.checks { // it needs the whole book; see CheckRecognizers
			return nil
		}
		warnUnheard(e.Book, e.language, log)
		n.Recognizer = sphinx.New(sphinx.Options{Model: r.Model, Grammar: grammar(e.Book), Log: log})
	}
	if err != nil || e.checks {
		return err
	}
	e.serve(n, n.Recognizer)
	switch engine := n.Recognizer.(type) {
	case *wyoming.Engine:
		n.watched(func(ctx context.Context) error { return engine.CheckRecognize(ctx, voice.Options{}) })
	case *sphinx.Engine:
		n.note = func() string {
			if engine.Loaded() {
				return "loaded"
			}
			return "loaded when the first robot comes"
		}
		e.sphinx = append(e.sphinx, engine)
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
	token, err := config.Token(s.URL, s.Token, s.TokenFile)
	if err != nil {
		return err
	}
	n := e.add("synthesizer", s.Kind, shownAddress(s.URL), log)
	within := time.Duration(s.Within)
	switch s.Kind {
	case "wyoming":
		n.Synthesizer, err = made(e, wyoming.Options{Address: s.URL, Find: e.findWyoming, Voice: s.Voice, AnswerWithin: within, Log: log},
			wyoming.New)
	case "openai":
		n.Synthesizer, err = made(e, openai.Options{URL: s.URL, Key: key, Model: s.Model, Voice: s.Voice, Rate: s.Rate, Stream: s.Stream,
			FirstByte: within}, openai.NewSynthesizer)
	case "elevenlabs":
		n.Synthesizer, err = made(e, elevenlabs.Options{URL: s.URL, Key: key, Model: s.Model, Voice: s.Voice, FirstByte: within}, elevenlabs.New)
	case "assist":
		n.Synthesizer, err = made(e, assist.Options{URL: s.URL, Token: token, Pipeline: s.Pipeline, Engine: s.Engine, Voice: s.Voice,
			Convert: s.Convert, AnswerWithin: within}, assist.NewSynthesizer)
	case "openjtalk":
		n.Synthesizer, err = made(e, openjtalk.Options{Voice: s.Voice, Language: e.language, Speed: s.Speed}, openjtalk.New)
	case "espeak":
		n.Synthesizer, err = made(e, espeak.Options{Command: speaker(), Voice: s.Voice, Language: e.language, Speed: s.Speed},
			espeak.New)
	}
	if err != nil || e.checks {
		return err
	}
	e.serve(n, n.Synthesizer)
	switch engine := n.Synthesizer.(type) {
	case *wyoming.Engine:
		n.watched(func(ctx context.Context) error { return engine.CheckSynthesize(ctx, voice.Options{}) })
	case *openjtalk.Engine:
		n.watched(func(context.Context) error { return engine.Check() })
		n.Where, n.note = "open_jtalk is installed", func() string { return n.Where }
	case *espeak.Engine:
		n.watched(func(context.Context) error { return engine.Check() })
		n.Where, n.note = "espeak-ng is installed", func() string { return n.Where }
		e.espeak = append(e.espeak, engine)
	}
	e.synthesizers = append(e.synthesizers, watchedSynthesizer{n.Synthesizer, n.condition})
	return nil
}

// SpeakerCommand is how this program is started as the process in which espeak-ng speaks. It
// is for itself alone, and in no list of commands.
const SpeakerCommand = "espeak"

// RunSpeaker is that process, until its standard input ends.
func RunSpeaker(in io.Reader, out *os.File) error { return espeak.Serve(in, out) }

// speaker is this very program, also where an upgrade has put another in its place.
func speaker() []string { return []string{"/proc/self/exe", SpeakerCommand} }

// warnUnheard says which sentences of a household's book a recognizer of English grammars
// does not listen for.
func warnUnheard(book *reflex.Book, spoken string, log *slog.Logger) {
	const mostNamed = 10
	tag, _ := language.Match(spoken)
	switch left := book.Unheard(); {
	case tag != language.English:
		log.Warn("the recognizer sphinx knows English alone and listens for the English sentences; add another to speech.recognizers",
			"language", spoken)
	case len(left) > 0:
		log.Warn("the recognizer sphinx knows English alone and does not listen for sentences in other letters",
			"names", left[:min(len(left), mostNamed)], "count", len(left))
	}
}
