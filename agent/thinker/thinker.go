// Package thinker makes a brain of a language model: it writes the prompt, runs
// the tools that the model asks for, and turns the stream of what the model writes
// into sentences, faces and cues.
package thinker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// senses are what is known of what a robot perceives.
type senses interface {
	// Who says in a few words who is before it, "in front of you since 12 s:
	// Ann", and nothing where nobody is known to be.
	Who(robot device.ID, now time.Time) string
	// Perception is all there is to know, ready for JSON.
	Perception(robot device.ID, now time.Time) any
}

// timers are the timers and reminders of the robots.
type timers interface {
	Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error)
	Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error)
	Pending(robot device.ID, now time.Time) []agent.Timer
}

// Options are what a thinker works with. Only the model is needed; what
// is left out is not offered to it.
type Options struct {
	Model   Model
	Deep    []Model // those that think_hard asks, in order
	Persona agent.Persona
	Memory  *agent.Memory
	Timers  timers
	Notify  func(text, urgency string) error // tells everybody; urgency is low, normal or high, and normal where it is empty
	Sources []ToolSource                     // tools from elsewhere
	Senses  senses

	HistoryTokens int           // of what was said before; 3000 where 0
	MemoryTokens  int           // of what is remembered; 2048 where 0
	ToolWithin    time.Duration // for one tool; a minute where 0
	DeepWithin    time.Duration // for think_hard; 30 s where 0
	ModelWithin   time.Duration // for all a model writes in a turn; 5 minutes where 0
	CutOff        string        // said where the model was cut off
	Refused       string        // said where it will not answer
	Unspeakable   string        // said where nothing of its answer can be
	Done          string        // said where it ends without a word after its tools
	Log           *slog.Logger
}

// What one turn may take.
const (
	mostRounds  = 8        // of tools; then the model answers without
	mostWritten = 64 << 10 // bytes of one message, and letters of a turn
	mostCalls   = 16       // in one message
)

// Thinker is a Brain made of a Model: it tells the model who it is and what is
// known, runs the tools it asks for, and makes replies of what it writes.
type Brain struct {
	Options
	left struct { // tools that are not offered
		mu   sync.Mutex
		told string
	}
}

// NewThinker returns a thinker.
func New(o Options) *Brain {
	o.HistoryTokens = cmp.Or(o.HistoryTokens, 3000)
	o.MemoryTokens = cmp.Or(o.MemoryTokens, 2048)
	o.ToolWithin = cmp.Or(o.ToolWithin, time.Minute)
	o.DeepWithin = cmp.Or(o.DeepWithin, 30*time.Second)
	o.ModelWithin = cmp.Or(o.ModelWithin, 5*time.Minute)
	o.CutOff = cmp.Or(o.CutOff, "I was cut off.")
	o.Refused = cmp.Or(o.Refused, "I may not answer that.")
	o.Done = cmp.Or(o.Done, "Done.")
	o.Unspeakable = cmp.Or(o.Unspeakable, "That cannot be said aloud.")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Brain{Options: o}
}

// Name is the model's.
func (k *Brain) Name() string { return k.Model.Name() }

// Think has the model answer one turn. A model that fails has failed the turn;
// the error wraps ErrAway as long as nobody can have noticed that it tried.
func (k *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	th := &thought{Brain: k, turn: t, out: out, speech: NewSpeech(cmp.Or(t.Language, k.Persona.Language)), left: k.ModelWithin}
	th.tools = k.toolsOf(ctx, t, &th.after)
	p := Prompt{System: k.system(t), Messages: k.messages(t), Tools: th.tools.offered}
	for round := 0; ctx.Err() == nil; round++ {
		if round == mostRounds {
			p.Tools = nil
		}
		m, stop, err := th.message(ctx, p)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return th.failed(err)
		case stop == StopRefused:
			return th.end(k.Refused)
		case stop == StopLength:
			return th.end(k.CutOff) // its calls may be cut off as well
		case len(m.Calls) == 0 || p.Tools == nil:
			return th.end("")
		}
		answers, err := th.run(ctx, m.Calls)
		if err != nil {
			return err
		}
		p.Messages = append(append(p.Messages, m), answers...)
	}
	return ctx.Err()
}

// See has the model look at a picture, where it can, for as long as it may take
// of a turn.
func (k *Brain) See(ctx context.Context, l agent.Look) (string, error) {
	seer, ok := k.Model.(agent.Seer)
	if !ok {
		return "", agent.ErrBlind
	}
	within, cancel := context.WithTimeout(ctx, k.ModelWithin)
	defer cancel()
	text, err := seer.See(within, l)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return "", k.endless()
	}
	return text, err
}

// endless is why a model of which nothing was heard is passed over.
func (k *Brain) endless() error {
	return fmt.Errorf("%w: the model came to no end within %s; it may be too slow, or stuck", agent.ErrAway, k.ModelWithin)
}

// Warm has the model made ready for a turn that is about to come, where it
// can be.
func (k *Brain) Warm(ctx context.Context) error {
	if w, ok := k.Model.(interface{ Warm(context.Context) error }); ok {
		return w.Warm(ctx)
	}
	return nil
}

// Check tells in one sentence why the model would not answer. One that cannot
// tell is taken to be well.
func (k *Brain) Check(ctx context.Context) error {
	if c, ok := k.Model.(interface{ Check(context.Context) error }); ok {
		return c.Check(ctx)
	}
	return nil
}

// Limits tells in one sentence what the model turned out not to be able to do,
// such as to use tools.
func (k *Brain) Limits() error {
	if l, ok := k.Model.(interface{ Limits() error }); ok {
		return l.Limits()
	}
	return nil
}

// thought is one turn being answered.
type thought struct {
	*Brain
	turn   agent.Turn
	tools  toolset
	speech *Speech
	acted  bool          // a tool has run
	wrote  bool          // the model has written something
	after  agent.End     // what follows the turn
	left   time.Duration // that the model may still take

	mu   sync.Mutex // tools may run at a time, and tell of it
	out  func(agent.Reply) error
	told bool // somebody has been told something
	said bool // a sentence
}

// tell gives replies on, in order.
func (th *thought) tell(replies ...agent.Reply) error {
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, r := range replies {
		if err := th.out(r); err != nil {
			return err
		}
		th.told = true
		if _, ok := r.(agent.Say); ok {
			th.said = true
		}
	}
	return nil
}

// Why a message that does not end by itself is ended.
var (
	errEnough = errors.New("the message is too long")
	errLate   = errors.New("the model takes too long")
)

// message has the model write one message, and speaks it meanwhile.
func (th *thought) message(ctx context.Context, p Prompt) (Message, Stop, error) {
	m := Message{Role: RoleAssistant}
	var words strings.Builder
	clock := th.clock(ctx)
	stop, err := th.Model.Continue(clock.ctx, p, func(piece Piece) error {
		clock.rest() // who listens may take minutes
		defer clock.run()
		if words.Len()+len(piece.Text) > mostWritten || len(m.Calls) == mostCalls && piece.Call != nil {
			return errEnough
		}
		words.WriteString(piece.Text)
		if err := th.tell(th.speech.Write(piece.Text)...); err != nil || piece.Call == nil {
			if err == nil && th.speech.Full() {
				return errEnough
			}
			return cmp.Or(err, ctx.Err())
		}
		m.Calls = append(m.Calls, *piece.Call)
		return th.tell(th.speech.End()...) // what stands before a call is said before it is made
	})
	late := clock.stop()
	switch {
	case err != nil && late && !th.told && !th.acted:
		return m, "", th.endless()
	case err != nil && late, errors.Is(err, errEnough):
		stop, err = StopLength, nil
	}
	if err == nil {
		err = th.tell(th.speech.End()...)
	}
	m.Text = strings.TrimSpace(words.String())
	th.wrote = th.wrote || m.Text != ""
	return m, stop, err
}

// modelClock is the time that a model takes of a turn. It rests while somebody else
// is waited for. All but the timer is for the goroutine of the model.
type modelClock struct {
	ctx    context.Context // the model's
	cancel context.CancelCauseFunc
	timer  *time.Timer
	left   *time.Duration
	since  time.Time
}

// clock returns one that runs, with the time that the turn's model still has.
func (th *thought) clock(ctx context.Context) *modelClock {
	c := &modelClock{left: &th.left, since: time.Now()}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(th.left, func() { c.cancel(errLate) })
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

// stop ends it and reports whether the time was up.
func (c *modelClock) stop() (late bool) {
	c.rest()
	late = errors.Is(context.Cause(c.ctx), errLate)
	c.cancel(nil)
	return late
}

// failed is what a model's failure is to the mind. Another brain must not do
// a second time what this one's tools have done already.
func (th *thought) failed(err error) error {
	if th.acted {
		return fmt.Errorf("after its tools had run: %v", err) // not wrapped, so that ErrAway ends here
	}
	return err
}

// end ends the turn, after a sentence that says why, where there is one.
func (th *thought) end(why string) error {
	var replies []agent.Reply
	switch {
	case why != "" || th.said:
	case th.acted:
		why = th.Done
	case th.wrote:
		why = th.Unspeakable // code, say: the model is well all the same
	}
	if why != "" {
		face, text := agent.SplitEmotion(why)
		replies = append(replies, agent.Felt{Emotion: face, Intensity: 1})
		for _, s := range Sentences(text) {
			replies = append(replies, agent.Say{Text: s})
		}
	} else if !th.told && !th.acted {
		return fmt.Errorf("%w: the model ended its answer without a word", agent.ErrAway)
	}
	return th.tell(append(replies, agent.Done{End: cmp.Or(th.after, agent.Continue)})...)
}

// status tells of a tool at work.
func (th *thought) status(s event.ToolStatus) error { return th.tell(agent.ToolStatus{ToolStatus: s}) }
