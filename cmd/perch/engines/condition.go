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
	"perch/voice/voicevox"
)

// condition records whether an engine works, and which voices and languages it does not support.
type condition struct {
	*remote.Condition
	language string // the default language; an engine that refuses other languages has not failed
	log      *slog.Logger

	waits *waits

	mu          sync.Mutex
	unsupported map[voice.Options]bool // voices and languages that were logged as unsupported
}

// newCondition returns the condition of an engine that has not been used yet. publish receives an
// event.Fault for each failure that remote.Condition reports.
func newCondition(part string, log *slog.Logger, publish func(event.Event), now func() time.Time) *condition {
	c := remote.NewCondition(part, log, func(cause string) { publish(event.Fault{Part: part, Cause: cause}) }, now)
	c.Warns = IsWarning
	return &condition{Condition: c, log: log, waits: new(waits), unsupported: map[voice.Options]bool{}}
}

// resting returns an error if the engine must not be used because it has just failed. It returns nil if
// trial is true.
func (c *condition) resting(trial bool) error {
	if trial {
		return nil
	}
	return c.Resting()
}

// maxRefusalTime is how long an engine may take to refuse a voice or language that it does not
// support. An error that comes later means that the engine is unreachable, so the default voice is not
// tried.
const maxRefusalTime = 3 * time.Second

// logUnsupported logs that the engine does not support a robot's own voice or language, once for
// each voice and language.
func (c *condition) logUnsupported(o voice.Options, err error) {
	o.Emotion = ""
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unsupported) < maxUnsupported && !c.unsupported[o] {
		c.unsupported[o] = true
		c.log.Warn("the engine does not support a robot's own voice or language; the robot speaks with the household's",
			"engine", c.Part, "voice", o.Voice, "language", o.Language, "err", err)
	}
}

// maxUnsupported is the maximum number of entries in condition.unsupported.
const maxUnsupported = 100

// IsWarning reports whether the error of a check is only a limitation of an engine that works.
func IsWarning(err error) bool {
	return errors.Is(err, openai.ErrNoTools) || errors.Is(err, agent.ErrBlind) || errors.Is(err, voicevox.ErrNoStyle)
}

// watchedTools is a server of tools whose condition is recorded.
type watchedTools struct {
	thinker.ToolSource
	*condition
}

// Call implements thinker.ToolSource. The failure of a tool does not count as a failure of the
// tool's server.
func (s watchedTools) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	began := s.Now()
	text, err := s.ToolSource.Call(ctx, name, args)
	if ctx.Err() == nil && (err == nil || errors.Is(err, agent.ErrAway)) {
		s.RecordUse(began, err)
	}
	return text, err
}

// watchedModel is a model for hard questions whose condition is recorded. Like the other watched
// engines below, it refuses to work for a while after a failure.
type watchedModel struct {
	thinker.Model
	*condition
	trial bool // use the engine even if it has just failed
}

// Continue implements thinker.Model.
func (m watchedModel) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	if err := m.resting(m.trial); err != nil {
		return "", err
	}
	var outErr error
	began := m.Now()
	stop, err := m.Model.Continue(ctx, p, func(piece thinker.Piece) error {
		outErr = out(piece)
		return outErr
	})
	if ctx.Err() == nil && outErr == nil && (err == nil || errors.Is(err, agent.ErrAway)) {
		m.RecordUse(began, err)
	}
	return stop, err
}

// watchedRecognizer is a recognizer whose condition is recorded.
type watchedRecognizer struct {
	voice.Recognizer
	*condition
	trial bool // use the engine even if it has just failed
}

// Recognize implements voice.Recognizer. An engine that does not support a robot's own language, or is
// busy, has not failed.
func (e watchedRecognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if err := e.resting(e.trial); err != nil {
		return voice.Transcript{}, err
	}
	began := e.Now()
	t, err := e.Recognizer.Recognize(ctx, u, o)
	if err == nil && !e.trial {
		began = waitBegan(began, u)
		e.waits.add(e.Now().Sub(began))
	}
	if foreign := o.Language != e.language && errors.Is(err, voice.ErrLanguage); ctx.Err() == nil && !foreign && !errors.Is(err, voice.ErrBusy) {
		e.RecordUse(began, err)
	}
	return t, err
}

// watchedSynthesizer is a synthesizer whose condition is recorded.
type watchedSynthesizer struct {
	voice.Synthesizer
	*condition
	trial bool // use the engine even if it has just failed
}

// Synthesize implements voice.Synthesizer. An error of out, an unsupported voice or language of a robot, and a
// text that cannot be read do not count as failures of the engine. If the engine does not support the robot's
// voice, or no engine in the list supports the robot's language, the robot speaks with the default voice and
// language.
func (m watchedSynthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := m.resting(m.trial); err != nil {
		return err
	}
	var outErr error
	began := m.Now()
	hasSound := false
	speak := func(o voice.Options) error {
		return m.Synthesizer.Synthesize(ctx, text, o, func(pcm []int16) error {
			if !hasSound && !m.trial {
				m.waits.add(m.Now().Sub(began))
			}
			hasSound = true
			outErr = out(pcm)
			return outErr
		})
	}
	err := speak(o)
	if errors.Is(err, voice.ErrLanguage) && !m.Last && ctx.Err() == nil && outErr == nil {
		return err // the next engine may support the language, and this one has not failed
	}
	mayBeUnsupported := (o.Voice != "" || o.Language != m.language) && m.Now().Sub(began) < maxRefusalTime
	if mayBeUnsupported && err != nil && !hasSound && ctx.Err() == nil && outErr == nil {
		if householdErr := speak(voice.Options{Language: m.language, Emotion: o.Emotion}); householdErr == nil || outErr != nil {
			m.logUnsupported(o, err)
			err = householdErr
		}
	}
	refused := errors.Is(err, voice.ErrText) || o.Language != m.language && errors.Is(err, voice.ErrLanguage)
	if ctx.Err() == nil && outErr == nil && !refused {
		m.RecordUse(began, err)
	}
	return err
}

// watchedBrain is a brain whose condition is recorded.
type watchedBrain struct {
	agent.Brain
	*condition
	trial  bool // use the engine even if it has just failed
	billed bool // whether its provider may bill each use
}

// waitBegan returns when the wait for an engine began: at began, or when the person stopped speaking, if that was
// later. u may be nil.
func waitBegan(began time.Time, u *voice.Utterance) time.Time {
	if u != nil && u.FinishedAt().After(began) {
		return u.FinishedAt()
	}
	return began
}

// Think implements agent.Brain. Only an error that wraps agent.ErrAway, and not agent.ErrStranger, counts as
// a failure: after other errors the brain may still work.
func (m watchedBrain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if err := m.resting(m.trial); err != nil {
		return err
	}
	var outErr error
	began := m.Now()
	replied, limited := m.trial, m.limits() != nil
	err := m.Brain.Think(ctx, t, func(r agent.Reply) error {
		if !replied {
			replied = true
			m.waits.add(m.Now().Sub(waitBegan(began, t.Speech)))
		}
		outErr = out(r)
		return outErr
	})
	if ctx.Err() == nil && outErr == nil && (err == nil || errors.Is(err, agent.ErrAway) && !errors.Is(err, agent.ErrStranger)) {
		m.RecordUse(waitBegan(began, t.Speech), err)
	}
	if now := m.limits(); err == nil && (now != nil || limited) {
		m.RecordLimits(now)
	}
	return err
}

// limits returns the brain's limitation that its last turns have shown, or nil.
func (m watchedBrain) limits() error {
	if limited, ok := m.Brain.(interface{ Limits() error }); ok {
		return limited.Limits()
	}
	return nil
}

// Hears implements agent.Hearer.
func (m watchedBrain) Hears() bool {
	hearer, is := m.Brain.(agent.Hearer)
	return is && hearer.Hears() && m.resting(m.trial) == nil
}

// Drafts implements agent.Drafter. A brain that may be billed does not draft, because nobody hears what it writes if the
// person goes on.
func (m watchedBrain) Drafts() bool {
	drafter, is := m.Brain.(agent.Drafter)
	return is && drafter.Drafts() && !m.billed && m.resting(m.trial) == nil
}

// DescribeImage implements agent.Seer. It returns agent.ErrBlind if the brain is not a Seer.
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

// Forget deletes a conversation from a brain that stores conversations itself.
func (m watchedBrain) Forget(conversation string) {
	if f, ok := m.Brain.(interface{ Forget(string) }); ok {
		f.Forget(conversation)
	}
}
