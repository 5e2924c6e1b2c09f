package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"perch/cmd/perch-speech/models"
	"perch/gateway/wyoming"
	"perch/voice"
	"perch/voice/sherpa"
	wire "perch/voice/wyoming"
)

// enginesCommand returns the hidden command that serves the listener it inherits. The supervisor runs it.
func enginesCommand() *cobra.Command {
	var flags modelFlags
	var without []string
	c := &cobra.Command{
		Use:    enginesName,
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := net.FileListener(os.NewFile(listenerFile, "listener"))
			if err != nil {
				return fmt.Errorf("use the listener: %w", err)
			}
			return serveEngines(c.Context(), flags, without, l, os.NewFile(loadingFile, "loading"), newLog(c))
		},
	}
	c.Flags().StringArrayVar(&without, "without", nil, "`NAME` of a model to leave out")
	return flags.registerAll(c)
}

// serveEngines serves the models in the folder, except those named in without, until ctx ends. It serves at once, and
// loads the models in the background. loading is described at loader.
func serveEngines(ctx context.Context, flags modelFlags, without []string, l net.Listener, loading io.Writer, log *slog.Logger) error {
	list, err := flags.models().List()
	if err != nil {
		return err
	}
	o := wyoming.Options{Listen: l, Name: "perch-speech", Version: version, Log: log, Hold: func() func() { return func() {} }}
	load := loader{threads: flags.threads, loading: loading, log: log}
	var all []func() error
	detects := func() (*sherpa.Detector, error) { return nil, nil }
	for _, m := range list {
		if m.Job == models.Detects && !slices.Contains(without, m.Name) {
			detects = sync.OnceValues(func() (*sherpa.Detector, error) { return load.detector(m) })
			all = append(all, func() error { _, err := detects(); return err })
		}
	}
	for _, m := range list {
		if slices.Contains(without, m.Name) {
			continue
		}
		model := wire.Model{Name: m.Name, Attribution: attribution(m), Version: version, Description: m.Name, Languages: []string{m.Language}}
		switch m.Job {
		case models.Hears:
			r := recognizer{detects, sync.OnceValues(func() (*sherpa.Recognizer, error) { return load.recognizer(m) })}
			o.Recognizers = append(o.Recognizers, wyoming.Model[voice.Recognizer]{Model: model, Engine: r})
			all = append(all, func() error { _, err := r.loaded(); return err })
		case models.Speaks:
			s := synthesizer{sync.OnceValues(func() (*sherpa.Synthesizer, error) { return load.synthesizer(m) })}
			o.Synthesizers = append(o.Synthesizers, wyoming.Model[voice.Synthesizer]{Model: model, Engine: s})
			all = append(all, func() error { _, err := s.loaded(); return err })
		}
	}
	server, err := wyoming.New(o)
	if err != nil {
		return err
	}
	var preloading sync.WaitGroup
	defer preloading.Wait()
	preloading.Go(func() {
		for _, load := range all {
			if ctx.Err() == nil {
				_ = load() // logged by the loader, and returned by the calls of the engine
			}
		}
	})
	return server.Run(ctx)
}

// attribution returns the licence and the source of a model of the catalogue.
func attribution(m models.Installed) wire.Attribution {
	if known, ok := models.Find(m.Name); ok {
		return wire.Attribution{Name: known.Licence, URL: known.Source}
	}
	return wire.Attribution{Name: "unknown"}
}

// loader loads models, one at a time. It is safe for concurrent use.
type loader struct {
	threads int
	// loading receives a line with the name of a model before it is loaded, and an empty line afterwards. The last line tells the
	// supervisor which model has ended this process.
	loading io.Writer
	log     *slog.Logger

	mu sync.Mutex
}

// recognizer loads a model that hears.
func (l *loader) recognizer(m models.Installed) (r *sherpa.Recognizer, err error) {
	err = l.load(m, func() error {
		files, err := m.Recognizer()
		if err == nil {
			r, err = sherpa.NewRecognizer(files.Encoder, files.Decoder, files.Tokens, l.threads)
		}
		return err
	})
	return r, err
}

// detector loads a model that detects.
func (l *loader) detector(m models.Installed) (d *sherpa.Detector, err error) {
	err = l.load(m, func() (err error) {
		d, err = sherpa.NewDetector(m.Detector())
		return err
	})
	return d, err
}

// synthesizer loads a model that speaks.
func (l *loader) synthesizer(m models.Installed) (s *sherpa.Synthesizer, err error) {
	err = l.load(m, func() error {
		data, err := espeakData()
		if err != nil {
			return err
		}
		v, err := m.Voice()
		if err == nil {
			s, err = sherpa.NewSynthesizer(sherpa.VoiceFiles{Model: v.Model, Tokens: v.Tokens, Espeak: data, Noise: v.Noise, NoiseW: v.NoiseW,
				Length: v.Length}, l.threads)
		}
		return err
	})
	return s, err
}

// load calls do, which loads a model, and reports the model to the supervisor. The error for a model that cannot be
// loaded wraps voice.ErrUnavailable.
func (l *loader) load(m models.Installed, do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintln(l.loading, m.Name); err != nil {
		return fmt.Errorf("tell the supervisor: %w", err)
	}
	err := do()
	fmt.Fprintln(l.loading) // an error has no consequence: the supervisor has ended, and so will this process
	if err != nil {
		l.log.Error("a model cannot be loaded", "model", m.Name, "err", err)
		return fmt.Errorf("%w: the model %s: %w", voice.ErrUnavailable, m.Name, err)
	}
	l.log.Info("a model is loaded", "model", m.Name)
	return nil
}

// espeakData returns the folder with the data of espeak-ng, which Piper's voices need to read text.
func espeakData() (string, error) {
	for _, pattern := range []string{"/usr/lib/*/espeak-ng-data/phontab", "/usr/share/espeak-ng-data/phontab"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // Glob fails only for a bad pattern
			return filepath.Dir(found[0]), nil
		}
	}
	return "", errors.New("the data of espeak-ng is missing, by which Piper's voices read; install espeak-ng-data")
}

// recognizer is a model for speech recognition. It is loaded by serveEngines in the background, or by the first call.
type recognizer struct {
	detects func() (*sherpa.Detector, error) // returns nil if no detector is installed
	loaded  func() (*sherpa.Recognizer, error)
}

// Name implements voice.Recognizer.
func (recognizer) Name() string { return "sherpa" }

// Recognize implements voice.Recognizer. It refuses an utterance without speech.
func (r recognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if d, err := r.detects(); err == nil && d != nil { // without the detector, every utterance is recognized
		if speaks, err := d.HasSpeech(ctx, u); err != nil || !speaks {
			return voice.Transcript{Refused: true}, err
		}
	}
	model, err := r.loaded()
	if err != nil {
		return voice.Transcript{}, err
	}
	return model.Recognize(ctx, u, o)
}

// synthesizer is a voice. It is loaded by serveEngines in the background, or by the first call.
type synthesizer struct {
	loaded func() (*sherpa.Synthesizer, error)
}

// Name implements voice.Synthesizer.
func (synthesizer) Name() string { return "sherpa" }

// Synthesize implements voice.Synthesizer.
func (s synthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	model, err := s.loaded()
	if err != nil {
		return err
	}
	return model.Synthesize(ctx, text, o, out)
}
