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

// condition is an engine's, with what only those that hear and speak need.
type condition struct {
	*remote.Condition
	// language is the appliance's: what an engine cannot do in another is no failure of its.
	language string
	log      *slog.Logger

	mu      sync.Mutex
	lacking map[voice.Options]bool // robots' own, that were logged
}

func newCondition(part string, log *slog.Logger, publish func(event.Event), now func() time.Time) *condition {
	c := remote.NewCondition(part, log, func(cause string) { publish(event.Fault{Part: part, Cause: cause}) }, now)
	c.Warns = IsWarning
	return &condition{Condition: c, log: log, lacking: map[voice.Options]bool{}}
}

// refusesWithin is how soon an engine refuses what it does not have. One that fails
// later is away, and is not waited for a second time.
const refusesWithin = 3 * time.Second

// lacks logs once a robot's own voice or language that the engine refuses.
func (c *condition) lacks(o voice.Options, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lacking) < mostLacking && !c.lacking[o] {
		c.lacking[o] = true
		c.log.Warn("a robot's own voice or language is none of the engine's; the robot speaks as all do",
			"engine", c.Part, "voice", o.Voice, "language", o.Language, "err", err)
	}
}

// mostLacking bounds what is remembered of that.
const mostLacking = 100

// IsWarning reports whether a check's error is something that a brain cannot
// do, and not that it does not work.
func IsWarning(err error) bool {
	return errors.Is(err, openai.ErrNoTools) || errors.Is(err, agent.ErrBlind)
}

// watchedTools is a source of tools whose condition is kept.
type watchedTools struct {
	thinker.ToolSource
	*condition
}

// Call implements agent.ToolSource. A tool that fails is no failure of the
// server it is at.
func (s watchedTools) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	began := s.Now()
	text, err := s.ToolSource.Call(ctx, name, args)
	if ctx.Err() == nil && (err == nil || errors.Is(err, agent.ErrAway)) {
		s.Used(began, err)
	}
	return text, err
}

// watchedModel is a model for hard questions whose condition is kept.
type watchedModel struct {
	thinker.Model
	*condition
}

// Continue implements agent.Model.
func (m watchedModel) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	if err := m.Resting(); err != nil {
		return "", err
	}
	return m.use(ctx, p, out)
}

// use is Continue for somebody who wants to know whether it works by now.
func (m watchedModel) use(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
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

// watchedRecognizer is a recognizer whose condition is kept.
type watchedRecognizer struct {
	voice.Recognizer
	*condition
}

// Recognize implements voice.Recognizer. One robot's own language that it does not
// know is no failure of the engine.
func (e watchedRecognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if err := e.Resting(); err != nil {
		return voice.Transcript{}, err
	}
	return e.use(ctx, u, o)
}

// use is Recognize for somebody who wants to know whether it works by now.
func (e watchedRecognizer) use(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	began := e.Now()
	t, err := e.Recognizer.Recognize(ctx, u, o)
	if foreign := o.Language != e.language && errors.Is(err, voice.ErrLanguage); ctx.Err() == nil && !foreign {
		e.Used(began, err)
	}
	return t, err
}

// watchedSynthesizer is a synthesizer whose condition is kept.
type watchedSynthesizer struct {
	voice.Synthesizer
	*condition
}

// Synthesize implements voice.Synthesizer. What the listener fails with is no
// failure of the engine. Nor is one robot's own voice or language that it does not
// have: such a robot then speaks as all do, if no other engine in the list has it.
func (m watchedSynthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := m.Resting(); err != nil {
		return err
	}
	return m.use(ctx, text, o, out)
}

// use is Synthesize for somebody who wants to know whether it works by now.
func (m watchedSynthesizer) use(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
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

// watchedBrain is a brain whose condition is kept.
type watchedBrain struct {
	agent.Brain
	*condition
}

// Think implements agent.Brain. Only a brain that is away has failed: one that
// fails a turn it has begun can be well.
func (m watchedBrain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if err := m.Resting(); err != nil {
		return err
	}
	return m.use(ctx, t, out)
}

// use is Think for somebody who wants to know whether it works by now.
func (m watchedBrain) use(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
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

// DescribeImage implements agent.Seer, where the brain does.
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

// Forget has a brain that keeps a conversation itself begin it anew.
func (m watchedBrain) Forget(conversation string) {
	if f, ok := m.Brain.(interface{ Forget(string) }); ok {
		f.Forget(conversation)
	}
}
