package appliance

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
	"perch/event"
	"perch/voice"
)

// condition is whether an engine works, as its last use or the last look at
// it tells. One that does not is left alone for a while, longer each time, so
// that nobody waits for it again and again; what follows it in its list does
// its work meanwhile. That it fails is reported once.
type condition struct {
	Part string // "recognizer wyoming"
	log  *slog.Logger
	tell func(event.Event)
	now  func() time.Time
	last bool // of its list: nothing follows, so it is always tried
	// language is the house's: what an engine cannot do in another is no failure of its.
	language string

	mu       sync.Mutex
	cause    error
	warning  error     // what does not keep it from working
	since    time.Time // it fails, or works
	again    time.Time // it is tried
	failures int       // in a row, not counting what only a look has mended
	all      uint64    // failures since the start
	inUse    bool      // it failed when it was used, not only when it was looked at
	usedAt   time.Time // when that was
	proven   bool      // its last use went well
	watched  bool      // somebody looks at it
	looked   looked    // what looks have told since it failed when it was used
	reported string
	told     time.Time
	fell     chan struct{}          // has one element when it has begun to fail
	lacking  map[voice.Options]bool // robots' own, that were told of
}

// looked is what looks have told of an engine since it failed when it was used.
type looked int

const (
	looksFit  looked = iota // nothing else: no news, for it failed all the same
	looksAway               // it is not there
	looksBack               // it was away, and is there again
)

// How long an engine that failed is left alone, and how long what was reported
// of it is not reported again.
const (
	firstRest   = 2 * time.Second
	longestRest = time.Minute
	// restFactor is how many times longer than a failure took a rest is, and
	// mostRest how many times the longest is: who waits for an engine that hangs
	// is not to wait for it in the next turn again.
	restFactor = 2
	mostRest   = 20
	tellEvery  = 10 * time.Minute
	// despiteLooks is how long after a failed use one is tried although it does
	// not look well.
	despiteLooks = 5 * time.Minute
)

func newCondition(part string, log *slog.Logger, tell func(event.Event), now func() time.Time) *condition {
	return &condition{Part: part, log: log, tell: tell, now: now, fell: make(chan struct{}, 1), lacking: map[voice.Options]bool{}}
}

// resting says why an engine is not tried now, or nothing. Only one that failed
// when it was used is left alone: a look may be refused where a use is not, as
// by a key that is for speech alone.
func (c *condition) resting() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	rested := !now.Before(c.again)
	if c.watched && c.looked != looksFit {
		rested = c.looked == looksBack || now.Sub(c.usedAt) >= despiteLooks
	}
	if c.last || !c.inUse || rested {
		return nil
	}
	return c.cause
}

// limits is what it cannot do, where it works.
func (c *condition) limits() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warning
}

// status is since when it works, or fails and why, and when it is tried again.
func (c *condition) status() (since, again time.Time, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.again, c.cause
}

// everFailed counts the failures since the start.
func (c *condition) everFailed() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// used takes note of what came of a use that began then.
func (c *condition) used(began time.Time, err error) {
	if err != nil {
		c.failed(err, true, c.now().Sub(began))
		return
	}
	c.mu.Lock()
	c.failures, c.inUse, c.proven = 0, false, true
	c.mu.Unlock()
	c.works()
}

// refusesWithin is how soon an engine refuses what it does not have. One that fails
// later is not there for anybody, and is not waited for a second time.
const refusesWithin = 3 * time.Second

// lacks tells once of a robot's own voice or language that the engine refuses.
func (c *condition) lacks(o voice.Options, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lacking) < mostLacking && !c.lacking[o] {
		c.lacking[o] = true
		c.log.Warn("a robot's own voice or language is none of the engine's; the robot speaks as all do", "engine", c.Part, "voice", o.Voice, "language", o.Language, "err", err)
	}
}

// mostLacking bounds what is remembered of that.
const mostLacking = 100

// works takes note that it does, as far as can be seen. That clears no failure
// of work: it may look well and fail all the same, as with a wrong key where
// anybody may list the models, or a server that hangs when it has something to
// do. Only what was away, and is there again, may be tried at once.
func (c *condition) works() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inUse {
		if c.looked == looksAway {
			c.looked = looksBack
		}
		return
	}
	if c.cause != nil {
		c.log.Info("an engine works again", "engine", c.Part)
	}
	if c.cause != nil || c.since.IsZero() {
		c.since = c.now()
	}
	c.cause = nil
}

// failed takes note of a failure, when it was used or looked at, and reports
// what was not reported yet. What a use has told is better known than what a
// look has.
func (c *condition) failed(err error, inUse bool, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !inUse && c.proven {
		return
	}
	c.proven = false
	now := c.now()
	c.again = now.Add(restAfter(took, c.failures))
	c.failures++
	c.all++
	c.looked = looksAway
	if inUse {
		c.usedAt, c.looked = now, looksFit
		select {
		case c.fell <- struct{}{}:
		default: // whoever looks after it has not looked yet
		}
	} else if c.inUse {
		return
	}
	if c.cause == nil {
		c.since = now
	}
	c.cause, c.inUse = err, inUse
	if err.Error() == c.reported && now.Sub(c.told) < tellEvery {
		return
	}
	c.reported, c.told = err.Error(), now
	c.log.Warn("an engine does not work; where another follows it in its list, that one is used", "engine", c.Part, "err", err)
	c.tell(event.Fault{Part: c.Part, Cause: err.Error()})
}

// restAfter is how long an engine is left alone that has failed so often before.
func restAfter(took time.Duration, failures int) time.Duration {
	longest := min(max(longestRest, mostRest*took), despiteLooks)
	return min(max(firstRest, restFactor*took)<<min(failures, 10), longest)
}

// warned takes note of something that an engine cannot do.
func (c *condition) warned(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warning = err
}

// IsWarning reports whether a check's error is something that a brain cannot
// do, and not that it does not work.
func IsWarning(err error) bool {
	return errors.Is(err, openai.ErrNoTools) || errors.Is(err, agent.ErrBlind)
}

// look asks an engine that failed whether it works again, and one that nobody
// has used whether it would, until ctx ends.
func (c *condition) look(ctx context.Context, check func(context.Context) error) {
	c.watch(true)
	defer c.watch(false)
	for {
		within, cancel := context.WithTimeout(ctx, checkWithin)
		err := check(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case IsWarning(err):
			if c.limits() == nil {
				c.log.Warn("an engine cannot do all that is asked of it", "engine", c.Part, "err", err)
			}
			c.warned(err)
			c.works()
		case err != nil:
			c.failed(err, false, 0)
		default:
			c.works()
		}
		if _, _, cause := c.status(); err == nil || IsWarning(err) || cause == nil {
			select {
			case <-c.fell:
			case <-ctx.Done():
				return
			}
		}
		_, again, _ := c.status()
		rest := time.NewTimer(again.Sub(c.now()))
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return
		}
	}
}

func (c *condition) watch(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = on
}

// checkWithin is how long a look at an engine may take.
const checkWithin = 20 * time.Second

// shelf is a source of tools whose condition is kept.
type shelf struct {
	agent.ToolSource
	*condition
}

// Call implements agent.ToolSource. A tool that fails is no failure of the
// server it is at.
func (s shelf) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	began := s.now()
	text, err := s.ToolSource.Call(ctx, name, args)
	if ctx.Err() == nil && (err == nil || errors.Is(err, agent.ErrAway)) {
		s.used(began, err)
	}
	return text, err
}

// thinking is a model for hard questions whose condition is kept.
type thinking struct {
	agent.Model
	*condition
}

// Continue implements agent.Model.
func (m thinking) Continue(ctx context.Context, p agent.Prompt, out func(agent.Piece) error) (agent.Stop, error) {
	if err := m.resting(); err != nil {
		return "", err
	}
	var refused error
	began := m.now()
	stop, err := m.Model.Continue(ctx, p, func(piece agent.Piece) error {
		refused = out(piece)
		return refused
	})
	if ctx.Err() == nil && refused == nil && (err == nil || errors.Is(err, agent.ErrAway)) {
		m.used(began, err)
	}
	return stop, err
}

// ear is a recognizer whose condition is kept.
type ear struct {
	voice.Recognizer
	*condition
}

// Recognize implements voice.Recognizer. One robot's own language that it does not
// know is no failure of the engine.
func (e ear) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if err := e.resting(); err != nil {
		return voice.Transcript{}, err
	}
	began := e.now()
	t, err := e.Recognizer.Recognize(ctx, u, o)
	if foreign := o.Language != e.language && errors.Is(err, voice.ErrLanguage); ctx.Err() == nil && !foreign {
		e.used(began, err)
	}
	return t, err
}

// mouth is a synthesizer whose condition is kept.
type mouth struct {
	voice.Synthesizer
	*condition
}

// Synthesize implements voice.Synthesizer. What the listener fails with is no
// failure of the engine. Nor is one robot's own voice or language that it does not
// have: such a robot then speaks as all do.
func (m mouth) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := m.resting(); err != nil {
		return err
	}
	var refused error
	began := m.now()
	sounded := false
	speak := func(o voice.Options) error {
		return m.Synthesizer.Synthesize(ctx, text, o, func(pcm []int16) error {
			sounded = true
			refused = out(pcm)
			return refused
		})
	}
	err := speak(o)
	own := (o.Voice != "" || o.Language != m.language) && m.now().Sub(began) < refusesWithin
	if own && err != nil && !sounded && ctx.Err() == nil && refused == nil {
		if usual := speak(voice.Options{Language: m.language}); usual == nil || refused != nil {
			m.lacks(o, err)
			err = usual
		}
	}
	if ctx.Err() == nil && refused == nil {
		m.used(began, err)
	}
	return err
}

// mind is a brain whose condition is kept.
type mind struct {
	agent.Brain
	*condition
}

// Think implements agent.Brain. Only a brain that is away has failed: one that
// fails a turn it has begun can be well.
func (m mind) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if err := m.resting(); err != nil {
		return err
	}
	var refused error
	began := m.now()
	err := m.Brain.Think(ctx, t, func(r agent.Reply) error {
		refused = out(r)
		return refused
	})
	if ctx.Err() == nil && refused == nil && (err == nil || errors.Is(err, agent.ErrAway) && !errors.Is(err, agent.ErrStranger)) {
		m.used(began, err)
	}
	if limited, ok := m.Brain.(interface{ Limits() error }); ok && err == nil {
		if limits := limited.Limits(); limits != nil {
			m.warned(limits)
		}
	}
	return err
}

// See implements agent.Seer, where the brain does.
func (m mind) See(ctx context.Context, l agent.Look) (string, error) {
	seer, ok := m.Brain.(agent.Seer)
	if !ok {
		return "", agent.ErrBlind
	}
	if err := m.resting(); err != nil {
		return "", fmt.Errorf("%w: %w", agent.ErrAway, err)
	}
	return seer.See(ctx, l)
}

// Forget has a brain that keeps a conversation itself begin it anew.
func (m mind) Forget(conversation string) {
	if f, ok := m.Brain.(interface{ Forget(string) }); ok {
		f.Forget(conversation)
	}
}
