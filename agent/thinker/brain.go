// Package thinker turns a language model into a brain: it writes the prompt, runs
// the tools that the model calls, and turns the streamed text into sentences, faces
// and cues.
package thinker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/limit"
)

// senses provide what a robot perceives.
type senses interface {
	// Who names the people in front of the robot in a few words, "in front of you since
	// 12 s: Ann". It is empty if nobody is known to be there.
	Who(robot device.ID, now time.Time) string
	// Perception returns everything that is known, ready for JSON.
	Perception(robot device.ID, now time.Time) any
}

// timers are the timers and reminders of the robots.
type timers interface {
	Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error)
	Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error)
	Pending(robot device.ID, now time.Time) []agent.Timer
}

// Options of a Brain. Only Model is required. The model is not offered tools that need
// a missing option.
type Options struct {
	Model   Model
	Deep    []Model // the models that think_hard asks, in order
	Persona agent.Persona
	Memory  *agent.Memory
	Timers  timers
	Notify  func(text, urgency string) error // notifies through all robots; urgency is low, normal or high, and normal if empty
	Sources []ToolSource                     // of further tools
	Senses  senses
	Skills  Skills // nil if there are none
	// Publish publishes gestures, looks and expressions; if nil the agent makes none.
	Publish func(robot device.ID, session string, e event.Event)

	HistoryTokens int           // of the conversation so far; 3000 if 0
	MemoryTokens  int           // of the memory; 2048 if 0
	ToolWithin    time.Duration // for one tool; a minute if 0
	DeepWithin    time.Duration // for think_hard; 30 s if 0
	ModelWithin   time.Duration // for all that a model writes in a turn; 5 minutes if 0
	Phrases       agent.Phrases // spoken if the model says nothing speakable
	Log           *slog.Logger
}

// Bounds of one turn.
const (
	mostRounds = 8  // of tools; then the model must answer without them
	mostCalls  = 16 // in one message
)

// Brain implements agent.Brain with a Model: it writes the prompt, runs the called
// tools, and converts the model's text to replies.
type Brain struct {
	Options
	leftOut atomic.Value // the names of the tools that are not offered, as last logged
}

// New returns a brain of a model.
func New(o Options) *Brain {
	o.HistoryTokens = cmp.Or(o.HistoryTokens, 3000)
	o.MemoryTokens = cmp.Or(o.MemoryTokens, 2048)
	o.ToolWithin = cmp.Or(o.ToolWithin, time.Minute)
	o.DeepWithin = cmp.Or(o.DeepWithin, 30*time.Second)
	o.ModelWithin = cmp.Or(o.ModelWithin, 5*time.Minute)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Brain{Options: o}
}

// Where returns the model's location, if it has one.
func (k *Brain) Where() string {
	if m, is := k.Model.(interface{ Where() string }); is {
		return m.Where()
	}
	return ""
}

// Close closes the model.
func (k *Brain) Close() error {
	if m, is := k.Model.(interface{ Close() error }); is {
		return m.Close()
	}
	return nil
}

// Name returns the model's name.
func (k *Brain) Name() string { return k.Model.Name() }

// Think has the model answer one turn. If the model fails, so does the turn. The
// error wraps ErrAway unless the model has already spoken or used a tool.
func (k *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	t.Language = cmp.Or(t.Language, k.Persona.Language)
	r := &turnRun{Brain: k, turn: t, out: out, speech: NewSpeech(t.Language), left: k.ModelWithin}
	r.tools = k.toolsOf(ctx, t, turnHooks{&r.after, r.send})
	p := Prompt{System: k.system(t), Messages: k.messages(t), Tools: r.tools.offered}
	if t.Persona != nil {
		p.Brain = t.Persona.Brain
	}
	for round := 0; ctx.Err() == nil; round++ {
		if round == mostRounds {
			p.Tools = nil
		}
		m, stop, err := r.message(ctx, p)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return r.failed(err)
		case stop == StopRefused:
			return r.finish("refused")
		case stop == StopLength:
			return r.finish("cut_off") // its calls may be cut off as well
		case len(m.Calls) == 0 || p.Tools == nil:
			return r.finish("")
		}
		answers, err := r.run(ctx, m.Calls)
		if err != nil {
			return err
		}
		p.Messages = append(append(p.Messages, m), answers...)
	}
	return ctx.Err()
}

// DescribeImage has the model look at a picture, within ModelWithin, or returns ErrNoVision.
func (k *Brain) DescribeImage(ctx context.Context, l agent.Look) (string, error) {
	seer, ok := k.Model.(agent.Seer)
	if !ok {
		return "", agent.ErrBlind
	}
	within, cancel := context.WithTimeout(ctx, k.ModelWithin)
	defer cancel()
	text, err := seer.DescribeImage(within, l)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return "", k.endless()
	}
	return text, err
}

// endless returns the error of a silent model, which makes the next brain answer.
func (k *Brain) endless() error {
	return fmt.Errorf("%w: the model came to no end within %s; it may be too slow, or stuck", agent.ErrAway, k.ModelWithin)
}

// Warm prepares the model for the next turn, if it supports that.
func (k *Brain) Warm(ctx context.Context) error {
	if w, ok := k.Model.(interface{ Warm(context.Context) error }); ok {
		return w.Warm(ctx)
	}
	return nil
}

// Check returns why the model would not answer. A model without a check counts as ready.
func (k *Brain) Check(ctx context.Context) error {
	if c, ok := k.Model.(interface{ Check(context.Context) error }); ok {
		return c.Check(ctx)
	}
	return nil
}

// Limits returns the model's limitations, such as that it cannot use tools.
func (k *Brain) Limits() error {
	if l, ok := k.Model.(interface{ Limits() error }); ok {
		return l.Limits()
	}
	return nil
}

// turnRun is one turn while it is being answered.
type turnRun struct {
	*Brain
	turn   agent.Turn
	tools  toolset
	speech *Speech
	acted  bool          // a tool has run
	wrote  bool          // the model has written text
	after  agent.End     // what follows the turn
	left   time.Duration // the remaining time of the model

	mu    sync.Mutex // tools may run at the same time, and each sends its status
	out   func(agent.Reply) error
	sent  bool // a reply was sent
	spoke bool // a sentence was sent
}

// send passes replies on, in order.
func (r *turnRun) send(replies ...agent.Reply) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reply := range replies {
		if err := r.out(reply); err != nil {
			return err
		}
		r.sent = true
		if _, ok := reply.(agent.Say); ok {
			r.spoke = true
		}
	}
	return nil
}

// Reasons for ending a message early.
var (
	errEnough    = errors.New("the message is too long")
	errModelTime = errors.New("the model takes too long")
)

// message has the model write one message, and speaks it at the same time.
func (r *turnRun) message(ctx context.Context, p Prompt) (Message, Stop, error) {
	m := Message{Role: RoleAssistant}
	var words strings.Builder
	clock := r.startClock(ctx)
	stop, err := r.Model.Continue(clock.ctx, p, func(piece Piece) error {
		clock.rest() // speaking a sentence may take minutes
		defer clock.run()
		if words.Len()+len(piece.Text) > limit.Body || len(m.Calls) == mostCalls && piece.Call != nil {
			return errEnough
		}
		words.WriteString(piece.Text)
		if err := r.send(r.speech.Write(piece.Text)...); err != nil || piece.Call == nil {
			if err == nil && r.speech.Full() {
				return errEnough
			}
			return cmp.Or(err, ctx.Err())
		}
		m.Calls = append(m.Calls, *piece.Call)
		return r.send(r.speech.Flush()...) // the text before a call is spoken before the call is made
	})
	late := clock.stop()
	switch {
	case err != nil && late && !r.sent && !r.acted:
		return m, "", r.endless()
	case err != nil && late, errors.Is(err, errEnough):
		stop, err = StopLength, nil
	}
	if err == nil {
		err = r.send(r.speech.Flush()...)
	}
	m.Text = strings.TrimSpace(words.String())
	r.wrote = r.wrote || m.Text != ""
	return m, stop, err
}

// modelClock measures a model's time in a turn, without other waits. Only the
// model's goroutine and the timer use it.
type modelClock struct {
	ctx    context.Context // the model's
	cancel context.CancelCauseFunc
	timer  *time.Timer
	left   *time.Duration
	since  time.Time
}

// startClock returns a running clock with the remaining time of the turn's model.
func (r *turnRun) startClock(ctx context.Context) *modelClock {
	c := &modelClock{left: &r.left, since: time.Now()}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(r.left, func() { c.cancel(errModelTime) })
	return c
}

func (c *modelClock) rest() {
	c.timer.Stop()
	*c.left = max(0, *c.left-time.Since(c.since))
}

func (c *modelClock) run() {
	c.since = time.Now()
	c.timer.Reset(*c.left)
}

// stop stops the clock and reports whether the time was up.
func (c *modelClock) stop() (late bool) {
	c.rest()
	late = errors.Is(context.Cause(c.ctx), errModelTime)
	c.cancel(nil)
	return late
}

// failed converts a model's error for the turn. After a tool has run, no other brain
// may answer the turn, because it could repeat the action.
func (r *turnRun) failed(err error) error {
	if r.acted {
		return fmt.Errorf("after its tools had run: %v", err) // not wrapped, so that ErrAway ends here
	}
	return err
}

// finish ends the turn, after the phrase of that name if there is one, in the turn's
// language.
func (r *turnRun) finish(why string) error {
	var replies []agent.Reply
	switch {
	case why != "" || r.spoke:
	case r.acted:
		why = "done"
	case r.wrote:
		why = "unspeakable" // code, for instance: the model is still healthy
	}
	if why != "" {
		face, text := agent.SplitEmotion(r.Phrases.Of(r.turn.Language, why))
		replies = append(replies, agent.Felt{Emotion: face, Intensity: 1, Assumed: face == agent.Neutral})
		for _, s := range Sentences(text) {
			replies = append(replies, agent.Say{Text: s})
		}
	} else if !r.sent && !r.acted {
		return fmt.Errorf("%w: the model ended its answer without a word", agent.ErrAway)
	}
	return r.send(append(replies, agent.Done{End: cmp.Or(r.after, agent.Continue)})...)
}
