// Package sphinx recognizes spoken commands with libpocketsphinx and its US English
// model, in this process: no key, no download, no second service. It recognizes the
// sentences of a grammar and rejects everything else.
//
// Two decoders hear every utterance. One knows the grammar, the other any sequence of
// phones; if the best sentence fits clearly worse than phones do, it was not said. A pair
// takes about 20 MB and is made when needed: the first by Load, the second when the first
// is busy.
package sphinx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"perch/voice"
)

// Model is the directory of Debian's pocketsphinx-en-us.
const Model = "/usr/share/pocketsphinx/model/en-us"

// Options of an Engine.
type Options struct {
	Model   string // directory of the model; default Model
	Grammar Grammar
	Pairs   int // the most utterances decoded at once; default 2
	Log     *slog.Logger
}

// Engine is a voice.Recognizer. It is safe for concurrent use.
type Engine struct {
	model   string
	grammar Grammar
	log     *slog.Logger
	gate    *gate
	idle    chan *pair    // pairs that are not in use
	closed  chan struct{} // closed by Close
	closing sync.Once

	making sync.Mutex // held while a pair is made
	made   atomic.Int32
}

// New returns an engine. It loads nothing yet.
func New(o Options) *Engine {
	o.Model = cmp.Or(o.Model, Model)
	o.Pairs = cmp.Or(o.Pairs, 2)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Engine{
		model:   o.Model,
		grammar: o.Grammar,
		log:     o.Log,
		gate:    newGate(o.Pairs),
		idle:    make(chan *pair, o.Pairs),
		closed:  make(chan struct{}),
	}
}

// Name returns "sphinx".
func (e *Engine) Name() string { return "sphinx" }

// Loaded reports whether the model is in memory.
func (e *Engine) Loaded() bool { return e.made.Load() > 0 }

// Load makes the first pair of decoders, unless it exists; that takes 0.1 s on a PC. Its
// error wraps voice.ErrUnavailable if the model is missing or Check rejects the
// grammar.
func (e *Engine) Load(ctx context.Context) error {
	e.making.Lock()
	defer e.making.Unlock()
	if e.Loaded() {
		return nil
	}
	p, err := e.newPair(ctx)
	if err != nil {
		return err
	}
	e.idle <- p
	return nil
}

// newPair makes a pair. e.making is held.
func (e *Engine) newPair(ctx context.Context) (*pair, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-e.closed:
		return nil, errClosed
	default:
	}
	began := time.Now()
	p, err := newPair(e.model, e.grammar, e.log)
	if err != nil {
		if !errors.Is(err, voice.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", voice.ErrUnavailable, err)
		}
		return nil, fmt.Errorf("load the speech recognizer: %w", err)
	}
	e.made.Add(1)
	e.log.Info("speech recognizer loaded", "pairs", e.made.Load(), "took", time.Since(began))
	return p, nil
}

// Recognize returns the sentence of the grammar that was spoken, or a refusal. If
// o.Answer is set and the grammar has answers, it is one of those only. It loads the
// model if needed, and waits for a pair if all are in use, while u stores the sound. A
// stranger's utterance is decoded once it is finished, after those of the household that
// wait. For a language other than English the error wraps voice.ErrUnavailable.
func (e *Engine) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if language := voice.BaseLanguage(o.Language); language != "" && language != "en" {
		return voice.Transcript{}, fmt.Errorf("%w: sphinx only knows English, not %q", voice.ErrLanguage, o.Language)
	}
	if o.Stranger { // a slow speaker must not occupy a pair
		if err := u.Wait(ctx); err != nil {
			return voice.Transcript{}, err
		}
	}
	if err := e.gate.enter(ctx, o.Stranger, e.closed); err != nil {
		return voice.Transcript{}, err
	}
	defer e.gate.leave(o.Stranger)
	p, err := e.acquire(ctx)
	if err != nil {
		return voice.Transcript{}, err
	}
	defer func() { e.idle <- p }()
	heard, err := p.recognize(ctx, u, o.Answer)
	if err != nil {
		return voice.Transcript{}, fmt.Errorf("recognize speech: %w", err)
	}
	if heard.refused() {
		e.log.Debug("speech refused", "loss", heard.loss, "most", heard.most)
		return voice.Transcript{Refused: true}, nil
	}
	return voice.Transcript{Text: heard.text}, nil
}

// acquire returns an idle pair, or a new one. There is one, because the gate admits no more
// calls than pairs.
func (e *Engine) acquire(ctx context.Context) (*pair, error) {
	if p := e.tryIdle(); p != nil {
		return p, nil
	}
	e.making.Lock()
	defer e.making.Unlock()
	if p := e.tryIdle(); p != nil {
		return p, nil
	}
	return e.newPair(ctx)
}

func (e *Engine) tryIdle() *pair {
	select {
	case p := <-e.idle:
		return p
	default:
		return nil
	}
}

var errClosed = fmt.Errorf("%w: the speech recognizer is closed", voice.ErrUnavailable)

// Close waits for the utterances being decoded and frees the memory. It may be called
// more than once.
func (e *Engine) Close() {
	e.closing.Do(func() {
		// No pair is made from here on. The lock is released before waiting, so that the
		// next caller gets the error at once.
		e.making.Lock()
		close(e.closed)
		e.making.Unlock()
		for ; e.made.Load() > 0; e.made.Add(-1) {
			(<-e.idle).close()
		}
	})
}
