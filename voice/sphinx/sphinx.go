// Package sphinx recognizes spoken commands with libpocketsphinx and its US English
// model, in this process. It recognizes the sentences of a grammar and rejects everything
// else.
//
// Two decoders process every utterance. One searches for the sentence of the grammar that
// fits best, and the other for the sequence of phones (speech sounds) that fits best. If the
// sentence fits clearly worse than the phones, the utterance is rejected. A pair of decoders
// takes about 20 MB. Load creates the first pair; further pairs are created when all pairs are
// in use. A pair that was not used for some minutes is closed.
package sphinx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"perch/voice"
)

// Model is the directory of Debian's pocketsphinx-en-us.
const Model = "/usr/share/pocketsphinx/model/en-us"

// Options are the options of an Engine. Only Grammar is required.
type Options struct {
	Model   string // directory of the model; default: Model
	Grammar Grammar
	Pairs   int          // maximum number of utterances decoded at the same time; default: 2
	Log     *slog.Logger // default: discards
}

// Engine is a voice.Recognizer. It is safe for concurrent use.
type Engine struct {
	model     string
	grammar   Grammar
	log       *slog.Logger
	gate      *gate
	closed    chan struct{} // closed by Close
	closeOnce sync.Once

	createMu sync.Mutex     // held while a pair is created; locked before mu
	open     sync.WaitGroup // pairs that are not closed

	mu    sync.Mutex
	idle  []*idlePair // pairs that are not in use, in the order of their last use
	pairs int         // number of pairs
}

// idlePair is a pair that is not in use.
type idlePair struct {
	*pair
	expiry *time.Timer // calls closeIdle; a goroutine that stops it in time may use the pair
}

// idleTime is how long an unused pair stays in memory. People who talk to a robot seldom pause for
// longer; for the next talk, Warm loads the model again before anybody has spoken.
const idleTime = 5 * time.Minute

// New returns an engine. The model is loaded when it is first needed.
func New(o Options) *Engine {
	o.Model = cmp.Or(o.Model, Model)
	o.Pairs = cmp.Or(o.Pairs, 2)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Engine{
		model:   o.Model,
		grammar: o.Grammar,
		log:     o.Log,
		gate:    newGate(o.Pairs),
		closed:  make(chan struct{}),
	}
}

// Name returns "sphinx".
func (e *Engine) Name() string { return "sphinx" }

// Loaded reports whether the model is in memory.
func (e *Engine) Loaded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pairs > 0
}

// Warm is Load. It is called when a robot begins to listen.
func (e *Engine) Warm(ctx context.Context) error { return e.Load(ctx) }

// Load creates the first pair of decoders if none exists, which takes 0.1 s on a PC. The
// error wraps voice.ErrUnavailable if the model is missing or the grammar has a fault that
// Check reports.
func (e *Engine) Load(ctx context.Context) error {
	e.createMu.Lock()
	defer e.createMu.Unlock()
	if e.Loaded() {
		return nil
	}
	p, err := e.newPair(ctx)
	if err != nil {
		return err
	}
	e.putBack(p)
	return nil
}

// newPair creates a pair, which is in use until putBack. The caller holds createMu.
func (e *Engine) newPair(ctx context.Context) (*pair, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-e.closed:
		return nil, errClosed
	default:
	}
	start := time.Now()
	p, err := newPair(e.model, e.grammar, e.log)
	if err != nil {
		if !errors.Is(err, voice.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", voice.ErrUnavailable, err)
		}
		return nil, fmt.Errorf("load the speech recognizer: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pairs++
	e.open.Add(1)
	e.log.Info("speech recognizer loaded", "pairs", e.pairs, "took", time.Since(start))
	return p, nil
}

// Recognize returns the sentence of the grammar that was spoken, or a refused transcript if no
// sentence was spoken. If o.YesNo is set and the grammar has answers, Recognize searches only
// for answers. It loads the model if necessary. If all pairs are in use, it waits while u stores
// the sound, but not for long after the end of u: then the error wraps voice.ErrBusy. With
// o.Stranger it decodes the utterance only when the utterance is finished, and after waiting
// utterances of adopted robots. The error wraps voice.ErrLanguage for languages other than English.
func (e *Engine) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if language := voice.BaseLanguage(o.Language); language != "" && language != "en" {
		return voice.Transcript{}, fmt.Errorf("%w: sphinx only supports English, not %q", voice.ErrLanguage, o.Language)
	}
	if o.Stranger { // a stranger must not occupy a pair while speaking
		if err := u.Wait(ctx); err != nil {
			return voice.Transcript{}, err
		}
	}
	if err := e.gate.enter(ctx, u, o, e.closed); err != nil {
		return voice.Transcript{}, err
	}
	defer e.gate.leave(o.Stranger)
	p, err := e.acquire(ctx)
	if err != nil {
		return voice.Transcript{}, err
	}
	defer e.putBack(p)
	result, err := p.recognize(ctx, u, o.YesNo)
	if err != nil {
		return voice.Transcript{}, fmt.Errorf("recognize speech: %w", err)
	}
	if result.isRefused() {
		e.log.Debug("speech refused", "loss", result.loss, "max_loss", result.maxLoss)
		return voice.Transcript{Refused: true}, nil
	}
	return voice.Transcript{Text: result.text}, nil
}

// acquire returns an idle pair or creates one; the caller must call putBack. The caller has entered
// the gate, so at most Options.Pairs pairs are in use.
func (e *Engine) acquire(ctx context.Context) (*pair, error) {
	if p := e.takeIdle(); p != nil {
		return p, nil
	}
	e.createMu.Lock()
	defer e.createMu.Unlock()
	if p := e.takeIdle(); p != nil {
		return p, nil
	}
	return e.newPair(ctx)
}

// takeIdle returns the idle pair that was used last, or nil if no pair is idle.
func (e *Engine) takeIdle() *pair {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.idle) > 0 {
		last := e.idle[len(e.idle)-1]
		e.idle = e.idle[:len(e.idle)-1]
		if last.expiry.Stop() { // otherwise closeIdle closes it
			return last.pair
		}
	}
	return nil
}

// putBack makes a pair idle, and closes it if it stays idle for idleTime or the engine is closed.
func (e *Engine) putBack(p *pair) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := &idlePair{pair: p}
	after := idleTime
	select {
	case <-e.closed:
		after = 0
	default:
	}
	i.expiry = time.AfterFunc(after, func() { e.closeIdle(i) })
	e.idle = append(e.idle, i)
}

// closeIdle closes a pair whose expiry has fired.
func (e *Engine) closeIdle(i *idlePair) {
	defer e.open.Done()
	e.mu.Lock()
	e.idle = slices.DeleteFunc(e.idle, func(other *idlePair) bool { return other == i })
	e.pairs--
	e.log.Info("speech recognizer unloaded", "pairs", e.pairs)
	e.mu.Unlock()
	i.close()
}

// errClosed is returned after Close.
var errClosed = fmt.Errorf("%w: the speech recognizer is closed", voice.ErrUnavailable)

// Close waits for the end of running recognitions and frees the memory. It may be called
// more than once.
func (e *Engine) Close() {
	e.closeOnce.Do(func() {
		// No pair is created after this. The locks are not held while waiting, so that callers
		// of newPair get errClosed immediately.
		e.createMu.Lock()
		e.mu.Lock()
		close(e.closed)
		for _, i := range e.idle {
			if i.expiry.Stop() {
				i.expiry.Reset(0)
			}
		}
		e.mu.Unlock()
		e.createMu.Unlock()
		e.open.Wait()
	})
}
