package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"perch/cmd/perch-speech/manager"
	"perch/cmd/perch-speech/models"
	"perch/gateway/wyoming"
	"perch/remote"
	"perch/voice"
	"perch/voice/sherpa"
	wire "perch/voice/wyoming"
)

// enginesCommand returns the hidden command that serves the listener it inherits. The supervisor runs it.
func enginesCommand() *cobra.Command {
	var flags modelFlags
	var without []string
	var offersSlow bool
	c := &cobra.Command{
		Use:    enginesName,
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := net.FileListener(os.NewFile(listenerFile, "listener"))
			if err != nil {
				return fmt.Errorf("use the listener: %w", err)
			}
			return serveEngines(c.Context(), flags, without, offersSlow, l, os.NewFile(loadingFile, "loading"), newLog(c))
		},
	}
	c.Flags().BoolVar(&offersSlow, "slow", false, "offer recognizers that are too slow, too")
	c.Flags().StringArrayVar(&without, "without", nil, "`NAME` of a model to leave out")
	return flags.registerAll(c)
}

const (
	lookEvery = 2 * time.Second // time between two looks at the folder of models
	settleFor = 5 * time.Second // time without a change after which a model is taken to be copied completely
)

// serveEngines serves the models in the folder, except those named in without, until ctx ends. It serves at once, loads the
// models in the background, and serves what is put into the folder later, too. Unless offersSlow is set, it offers a recognizer
// when that has been found to be fast enough. loading is described at loader.
func serveEngines(ctx context.Context, flags modelFlags, without []string, offersSlow bool, l net.Listener, loading io.Writer, log *slog.Logger) error {
	list, err := flags.models().List()
	if err != nil {
		return err
	}
	e := engines{without: without, offersSlow: offersSlow, load: &loader{threads: flags.threads, loading: loading, log: log},
		options: wyoming.Options{Listen: l, Name: "perch-speech", Version: version, Log: log, Hold: func() func() { return func() {} },
			Local: manager.New(flags.models(), models.Catalogue(), remote.NewTransport()).Handlers()}}
	e.set(list)
	server, err := wyoming.New(e.options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { e.watch(ctx, flags.models(), list, server) })
	return server.Run(ctx)
}

// A recognizer that is too slow is tried again after a pause, because the machine may have been busy.
const (
	maxPace    = 0.5 // seconds for each second of sound: people wait that long after they have spoken
	maxTrials  = 3
	trialPause = time.Minute
)

// candidate is a recognizer that is offered only if it is fast enough on this machine.
type candidate struct {
	load   func() (*sherpa.Recognizer, error)
	isFast bool
	trials int // number of trials, all too slow
	next   time.Time
}

// engines makes the options of the server from the models in the folder. It keeps the engines of models that stay there.
type engines struct {
	without []string // names of models to leave out
	load    *loader
	options wyoming.Options
	loaded  map[string]any // a *loadedOnce for each model, by name
	all     []func()       // calls the functions in loaded

	offersSlow bool
	candidates map[string]*candidate // by name; the recognizers in the folder
}

// watch loads the models in list, and models that are put into the folder later, until ctx ends. It gives the server new
// options when the models in the folder have changed.
func (e *engines) watch(ctx context.Context, folder models.Folder, list []models.Installed, server *wyoming.Server) {
	stamps := stampsOf(list)
	for {
		for _, load := range e.all {
			if ctx.Err() == nil {
				load()
			}
		}
		if !e.offersSlow && e.tryCandidates(ctx) {
			e.apply(list, server)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return
		}
		now, err := folder.List()
		if err != nil {
			continue // it may be temporary, and the models that are loaded need no files
		}
		stampsNow := stampsOf(now)
		if maps.Equal(stampsNow, stamps) || !settled(stamps, stampsNow) {
			continue
		}
		list, stamps = now, stampsNow
		// A model that was removed may come again, from another place.
		e.without = slices.DeleteFunc(e.without, func(name string) bool {
			return !slices.ContainsFunc(list, func(m models.Installed) bool { return m.Name == name })
		})
		e.apply(list, server)
	}
}

// stampsOf returns the time of the latest change in the folder of each model.
func stampsOf(list []models.Installed) map[models.Installed]time.Time {
	stamps := map[models.Installed]time.Time{}
	for _, m := range list {
		stamps[m] = time.Time{}
		entries, err := os.ReadDir(m.Dir)
		if err != nil {
			continue // it was just removed
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.ModTime().After(stamps[m]) {
				stamps[m] = info.ModTime()
			}
		}
	}
	return stamps
}

// settled reports whether the models that have changed since before did so at least settleFor ago.
func settled(before, now map[models.Installed]time.Time) bool {
	for m, at := range now {
		if !at.Equal(before[m]) && time.Since(at).Abs() < settleFor { // the clock may have been set back
			return false
		}
	}
	return true
}

// apply gives the server the options for the models in list.
func (e *engines) apply(list []models.Installed, server *wyoming.Server) {
	e.set(list)
	if err := server.Apply(e.options); err != nil {
		e.load.log.Error("the models have changed, and cannot be served", "err", err)
	}
}

// set sets the recognizers, synthesizers and the judge in the options.
func (e *engines) set(list []models.Installed) {
	list = slices.DeleteFunc(slices.Clone(list), func(m models.Installed) bool { return slices.Contains(e.without, m.Name) })
	o, old, candidates := &e.options, e.loaded, map[string]*candidate{}
	o.Recognizers, o.Synthesizers, o.Judge, e.loaded, e.all = nil, nil, nil, map[string]any{}, nil
	detects := func() (*sherpa.Detector, error) { return nil, nil }
	for _, m := range list {
		if m.Job == models.Detects {
			detects = once(e, old, m, e.load.detector)
		}
	}
	for _, m := range list {
		model := wire.Model{Name: m.Name, Attribution: attribution(m), Version: version, Description: m.Name, Languages: []string{m.Language}}
		switch m.Job {
		case models.Hears:
			r := recognizer{detects, once(e, old, m, e.load.recognizer)}
			c := e.candidates[m.Name]
			if c == nil {
				c = &candidate{load: r.loaded}
			}
			candidates[m.Name] = c
			if c.isFast || e.offersSlow {
				o.Recognizers = append(o.Recognizers, wyoming.Model[voice.Recognizer]{Model: model, Engine: r})
			}
		case models.Speaks:
			s := synthesizer{once(e, old, m, e.load.synthesizer)}
			o.Synthesizers = append(o.Synthesizers, wyoming.Model[voice.Synthesizer]{Model: model, Engine: s})
		case models.Judges:
			o.Judge = judge{once(e, old, m, e.load.judge)}
		}
	}
	e.candidates = candidates
}

// once adds a function for a model to e.loaded, and returns it: the function in old unless it has failed, or else a new
// function, which loads the model at the first call. Its error is logged by the loader.
func once[E any](e *engines, old map[string]any, m models.Installed, load func(models.Installed) (E, error)) func() (E, error) {
	model, isOld := old[m.Name].(*loadedOnce[E])
	if !isOld || model.failed.Load() {
		model = &loadedOnce[E]{}
		model.loaded = sync.OnceValues(func() (E, error) {
			engine, err := load(m)
			model.failed.Store(err != nil)
			return engine, err
		})
	}
	e.loaded[m.Name] = model
	e.all = append(e.all, func() { _, _ = model.loaded() })
	return model.loaded
}

// loadedOnce is a model that is loaded by the first call of loaded.
type loadedOnce[E any] struct {
	loaded func() (E, error)
	failed atomic.Bool // whether it could not be loaded
}

// tryCandidates tries the recognizers that are not known to be fast, and reports whether the recognizers to offer have changed. A
// recognizer that is too slow in maxTrials trials is left out from then on, and its memory is freed.
func (e *engines) tryCandidates(ctx context.Context) (changed bool) {
	for name, c := range e.candidates {
		model, err := c.load()
		if err != nil || c.isFast || time.Now().Before(c.next) {
			continue
		}
		switch pace, err := measure(ctx, model); {
		case err != nil:
			return changed // ctx has ended
		case pace <= maxPace:
			c.isFast, changed = true, true
			e.load.log.Info("a recognizer is fast enough", "model", name, "seconds_per_second", pace)
		default:
			c.trials, c.next = c.trials+1, time.Now().Add(trialPause)
			e.load.log.Warn("a recognizer is too slow, and is not offered", "model", name, "seconds_per_second", pace,
				"trial", c.trials, "of", maxTrials)
			if c.trials == maxTrials {
				model.Close()
				e.without, changed = append(e.without, name), true
			}
		}
	}
	return changed
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

// judge loads a model that judges.
func (l *loader) judge(m models.Installed) (t *sherpa.Turn, err error) {
	err = l.load(m, func() (err error) {
		t, err = sherpa.NewTurn(m.Judge(), l.threads)
		return err
	})
	return t, err
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

// judge is a model that judges whether a person has finished. It is loaded in the background, or by the first call.
type judge struct {
	loaded func() (*sherpa.Turn, error)
}

// JudgeEnd implements voice.EndJudge.
func (j judge) JudgeEnd(ctx context.Context, u *voice.Utterance) (float64, error) {
	model, err := j.loaded()
	if err != nil {
		return 0, err
	}
	return model.JudgeEnd(ctx, u)
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
