package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/openai"
	"perch/agent/thinker"
	"perch/event"
	"perch/remote"
	"perch/voice"
)

// condition is the condition of an engine, and what recognizers and synthesizers need besides.
type condition struct {
	*remote.Condition
	// language is the appliance's. That an engine knows no other is no failure.
	language string
	log      *slog.Logger

	mu      sync.Mutex
	lacking map[voice.Options]bool // robots' voices and languages whose lack was logged
}

func newCondition(part string, log *slog.Logger, publish func(event.Event), now func() time.Time) *condition {
	c := remote.NewCondition(part, log, func(cause string) { publish(event.Fault{Part: part, Cause: cause}) }, now)
	c.Warns = IsWarning
	return &condition{Condition: c, log: log, lacking: map[voice.Options]bool{}}
}

// resting returns an error while the engine is left alone after a failure; for a trial it never is.
func (c *condition) resting(trial bool) error {
	if trial {
		return nil
	}
	return c.Resting()
}

// refusesWithin is the time within which an engine refuses a voice or language that it does not
// have. An engine that fails later is away, and is not tried a second time.
const refusesWithin = 3 * time.Second

// lacks logs, once, that the engine refuses a robot's own voice or language.
func (c *condition) lacks(o voice.Options, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lacking) < mostLacking && !c.lacking[o] {
		c.lacking[o] = true
		c.log.Warn("a robot's own voice or language is none of the engine's; the robot speaks as all do",
			"engine", c.Part, "voice", o.Voice, "language", o.Language, "err", err)
	}
}

// mostLacking bounds the entries of condition.lacking.
const mostLacking = 100

// IsWarning reports whether the error of a check says what a brain that works cannot do.
func IsWarning(err error) bool {
	return errors.Is(err, openai.ErrNoTools) || errors.Is(err, agent.ErrBlind)
}

// watchedTools is a source of tools that records its condition.
type watchedTools struct {
	thinker.ToolSource
	*condition
}

// Call implements thinker.ToolSource. That a tool fails is no failure of its server.
func (s watchedTools) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	began := s.Now()
	text, err := s.ToolSource.Call(ctx, name, args)
	if ctx.Err() == nil && (err == nil || errors.Is(err, agent.ErrAway)) {
		s.Used(began, err)
	}
	return text, err
}

// watchedModel is a model for hard questions that records its condition. As all engines below, it
// is left alone for a while after a failure, unless it is tried on purpose.
type watchedModel struct {
	thinker.Model
	*condition
	trial bool
}

// Continue implements thinker.Model.
func (m watchedModel) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	if err := m.resting(m.trial); err != nil {
		return "", err
	}
	var refused error
	began := m.Now()
	stop, err := m.Model.Continue(ctx, p, func(piece thinker.Piece) error {
		refused = out(piece)
		return refused
	})
	if ctx.Err() == nil && refused == nil && (err == nil || errors.Is(err, agent.ErrAway)) {
		m.Used(began, err)
	}
	return stop, err
}

// watchedRecognizer is a recognizer that records its condition.
type watchedRecognizer struct {
	voice.Recognizer
	*condition
	trial bool
}

// Recognize implements voice.Recognizer. That the engine does not know a robot's own language is no
// failure.
func (e watchedRecognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if err := e.resting(e.trial); err != nil {
		return voice.Transcript{}, err
	}
	began := e.Now()
	t, err := e.Recognizer.Recognize(ctx, u, o)
	if foreign := o.Language != e.language && errors.Is(err, voice.ErrLanguage); ctx.Err() == nil && !foreign {
		e.Used(began, err)
	}
	return t, err
}

// watchedSynthesizer is a synthesizer that records its condition.
type watchedSynthesizer struct {
	voice.Synthesizer
	*condition
	trial bool
}

// Synthesize implements voice.Synthesizer. An error of out is no failure of the engine. Nor is the lack of a
// robot's own voice or language: the robot then speaks with the household's, if no other engine in the
// list has its own.
func (m watchedSynthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := m.resting(m.trial); err != nil {
		return err
	}
	var refused error
	began := m.Now()
	sounded := false
	speak := func(o voice.Options) error {
		return m.Synthesizer.Synthesize(ctx, text, o, func(pcm []int16) error {
			sounded = true
			refused = out(pcm)
			return refused
		})
	}
	err := speak(o)
	if errors.Is(err, voice.ErrLanguage) && !m.Last && ctx.Err() == nil && refused == nil {
		return err // the next engine may know it, and this one has not failed
	}
	own := (o.Voice != "" || o.Language != m.language) && m.Now().Sub(began) < refusesWithin
	if own && err != nil && !sounded && ctx.Err() == nil && refused == nil {
		if usual := speak(voice.Options{Language: m.language}); usual == nil || refused != nil {
			m.lacks(o, err)
			err = usual
		}
	}
	foreign := o.Language != m.language && errors.Is(err, voice.ErrLanguage)
	if ctx.Err() == nil && refused == nil && !foreign {
		m.Used(began, err)
	}
	return err
}

// watchedBrain is a brain that records its condition.
type watchedBrain struct {
	agent.Brain
	*condition
	trial bool
}

// Think implements agent.Brain. Only agent.ErrAway is a failure: a brain that fails in the middle of
// a turn may work.
func (m watchedBrain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if err := m.resting(m.trial); err != nil {
		return err
	}
	var refused error
	began := m.Now()
	err := m.Brain.Think(ctx, t, func(r agent.Reply) error {
		refused = out(r)
		return refused
	})
	if ctx.Err() == nil && refused == nil && (err == nil || errors.Is(err, agent.ErrAway) && !errors.Is(err, agent.ErrStranger)) {
		m.Used(began, err)
	}
	if limited, ok := m.Brain.(interface{ Limits() error }); ok && err == nil {
		if limits := limited.Limits(); limits != nil {
			m.Warned(limits)
		}
	}
	return err
}

// DescribeImage implements agent.Seer, if the brain does.
func (m watchedBrain) DescribeImage(ctx context.Context, l agent.Look) (string, error) {
	seer, ok := m.Brain.(agent.Seer)
	if !ok {
		return "", agent.ErrBlind
	}
	if err := m.Resting(); err != nil {
		return "", fmt.Errorf("%w: %w", agent.ErrAway, err)
	}
	return seer.DescribeImage(ctx, l)
}

// Forget makes a brain that stores conversations itself forget one.
func (m watchedBrain) Forget(conversation string) {
	if f, ok := m.Brain.(interface{ Forget(string) }); ok {
		f.Forget(conversation)
	}
}
