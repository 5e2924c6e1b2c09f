// Package thinker turns a language model into a brain: it writes the prompt, runs
// the tools that the model calls, and turns the streamed text into sentences, faces
// and cues. Cues are animations and pauses that the model asks for in its text. Packages
// agent/openai and agent/anthropic provide the models.
package thinker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
	"perch/remote"
	"perch/voice"
)

// senses provide what a robot perceives.
type senses interface {
	// Who describes the people in front of the robot in a few words, such as "in front
	// of you since 12 s: Ann". It returns "" if the robot has seen nobody.
	Who(robot device.ID, now time.Time) string
	// Perception returns everything that the robot perceives, as a value for JSON.
	Perception(robot device.ID, now time.Time) any
}

// timers are the timers and reminders of the robots.
type timers interface {
	Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error)
	// Cancel cancels the robot's timers with these IDs, or all of them without IDs, and returns their number.
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
	Notify  func(text, urgency string) error // has all robots say text; urgency is low, normal or high, and "" means normal
	Sources []ToolSource                     // sources of further tools
	Senses  senses
	Skills  Skills
	// Publish publishes gestures, looks and expressions. If it is nil, the model is not
	// offered tools for these.
	Publish func(robot device.ID, session string, e event.Event)
	// Gestures returns the names of the gestures that every character can make. It does not block.
	Gestures func() []string

	HistoryTokens int           // maximum length of the conversation in the prompt; 0 means 3000
	MemoryTokens  int           // maximum length of the memory in the prompt; 0 means 2048
	Phrases       agent.Phrases // phrases for a turn that says nothing, is refused or is cut off
	Log           *slog.Logger
}

// Bounds of one turn.
const (
	maxRounds   = 8                // rounds of tool calls; after these no tools are offered
	maxCalls    = 16               // calls in one message
	toolWithin  = time.Minute      // duration of a call
	deepWithin  = 30 * time.Second // duration of think_hard
	modelWithin = 5 * time.Minute  // total duration of the messages of the model
	maxSounded  = 8 * time.Minute  // duration of the speech of a Speaker; see maxSpoken
)

// Brain implements agent.Brain with a Model: it writes the prompt, runs the called
// tools, and converts the model's text to replies.
type Brain struct {
	Options
	leftOut atomic.Value // names of the tools that were not offered in the latest turn, as a string separated by spaces
	style   atomic.Int32 // a thoughtStyle
	fits    atomic.Int64 // tokens of history that fit the model's context; 0 until the model has refused a prompt
	warned  atomic.Bool  // whether the log says that the history was shortened
}

// thoughtStyle is how a model's thoughts arrive.
type thoughtStyle = int32

const (
	styleUnknown thoughtStyle = iota
	stylePlain                // between marks, in their own field, or not at all
	styleOpened               // begun in the prompt, with only the mark at their end in the text
)

// thinksAloud reports whether the model's next message may begin inside a thought. While no message
// has shown how thoughts arrive, it returns the guess of the model's driver.
func (k *Brain) thinksAloud() bool {
	style := k.style.Load()
	if m, is := k.Model.(interface{ ThinksAloud() bool }); is && style == styleUnknown {
		return m.ThinksAloud()
	}
	return style == styleOpened
}

// learnStyle records how the thoughts of a message arrived. unopened tells whether only their end was marked, and
// wrote whether the model has written anything besides thoughts in the turn.
func (k *Brain) learnStyle(unopened, wrote bool) {
	switch before := k.style.Load(); {
	case unopened && k.style.Swap(styleOpened) != styleOpened:
		k.Log.Warn("the server leaves the end of the model's thoughts in its text; "+
			"from now on, the text before this end is not spoken, and replies begin later; "+
			"replies begin sooner if the server separates the thoughts (llama.cpp --reasoning-format, vLLM --reasoning-parser)", "model", k.Where())
	case before == styleUnknown && wrote && !unopened:
		k.style.Store(stylePlain)
	}
}

// New returns a brain with these options.
func New(o Options) *Brain {
	o.HistoryTokens = cmp.Or(o.HistoryTokens, 3000)
	o.MemoryTokens = cmp.Or(o.MemoryTokens, 2048)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Brain{Options: o}
}

// Where returns the name of the model and the address of its server, or "" if the driver does not report them.
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

// Name returns the kind of the model's driver, as in the configuration.
func (k *Brain) Name() string { return k.Model.Name() }

// Think has the model answer one turn; see agent.Brain. If the model fails after a tool
// has run, the error does not wrap agent.ErrAway, because the next brain could repeat the
// action.
func (k *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	speaker, speaks := k.Model.(Speaker)
	if speaks && t.Stranger() { // people would otherwise use up the owner's account
		return agent.ErrStranger
	}
	t.Language = cmp.Or(t.Language, k.Persona.Language)
	r := &turnRun{Brain: k, model: k.Model, turn: t, out: out, speech: NewSpeech(t.Language), clock: remote.NewWatch(ctx, modelWithin, modelWithin)}
	defer r.clock.Stop()
	r.tools = k.toolsOf(ctx, t, turnHooks{&r.after, r.send})
	p := Prompt{System: k.system(t), Messages: k.messages(t), Tools: r.tools.offered}
	r.past = len(p.Messages) - 1
	if t.Persona != nil {
		p.Brain = t.Persona.Brain
	}
	if speaks {
		model := speaker.Begin(t)
		defer func() { _ = model.Close() }()
		r.model = model
	}
	for round := 0; ctx.Err() == nil; round++ {
		if round == maxRounds {
			p.Tools = nil
		}
		m, stop, err := r.message(p)
		if shorter, ok := r.shorten(p, err); ok {
			p = shorter
			round--
			continue
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && r.acted:
			return fmt.Errorf("after its tools had run: %v", err) // not wrapped, see Think
		case err != nil:
			return err
		case stop == StopRefused:
			return r.finish("refused")
		case stop == StopLength:
			return r.finish("cut_off") // the message's calls are not run, because they may be incomplete
		case len(m.Calls) == 0 || p.Tools == nil:
			return r.finish("")
		}
		results, err := r.run(ctx, m.Calls)
		if err != nil {
			return err
		}
		p.Messages = append(append(p.Messages, m), results...)
	}
	return ctx.Err()
}

// Hears implements agent.Hearer.
func (k *Brain) Hears() bool {
	_, is := k.Model.(Speaker)
	return is
}

// Drafts implements agent.Drafter.
func (k *Brain) Drafts() bool { return !k.Hears() }

// DescribeImage has the model answer a question about a picture. It returns agent.ErrBlind if the driver of the model
// does not support pictures, and an error that wraps agent.ErrAway if there is no answer within modelWithin.
func (k *Brain) DescribeImage(ctx context.Context, l agent.Look) (string, error) {
	seer, ok := k.Model.(agent.Seer)
	if !ok {
		return "", agent.ErrBlind
	}
	within, cancel := context.WithTimeout(ctx, modelWithin)
	defer cancel()
	text, err := seer.DescribeImage(within, l)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return "", errEndless
	}
	return text, err
}

// Warm prepares the model for the next turn, if it supports that.
func (k *Brain) Warm(ctx context.Context) error {
	if w, ok := k.Model.(interface{ Warm(context.Context) error }); ok {
		return w.Warm(ctx)
	}
	return nil
}

// Check returns why the model would not answer, or nil. A model without a check counts as ready.
func (k *Brain) Check(ctx context.Context) error {
	if c, ok := k.Model.(interface{ Check(context.Context) error }); ok {
		return c.Check(ctx)
	}
	return nil
}

// CheckContext compares the estimated length of the longest prompt and its reply with the model's context. It returns
// an error with both lengths if they do not fit, and nil if the server does not report its context.
func (k *Brain) CheckContext(ctx context.Context) error {
	m, is := k.Model.(interface{ ContextTokens(context.Context) int })
	if !is {
		return nil
	}
	t := agent.Turn{Now: time.Now(), Language: k.Persona.Language}
	needed := Tokens(k.system(t)) + k.HistoryTokens + answerTokens
	var after agent.End
	for _, tool := range k.toolsOf(ctx, t, turnHooks{&after, func(...agent.Reply) error { return nil }}).offered {
		needed += Tokens(tool.Name) + Tokens(tool.Description) + Tokens(string(tool.Schema))
	}
	if tokens := m.ContextTokens(ctx); tokens > 0 && tokens < needed {
		return fmt.Errorf("its context has %d tokens, but a conversation may need about %d, and then its oldest part is left out: "+
			"give it a longer context (Ollama num_ctx, llama.cpp --ctx-size), or set a smaller memory", tokens, needed)
	}
	return nil
}

// answerTokens is the estimated length of a spoken reply, in tokens.
const answerTokens = 300

// Limits returns the model's limitations, such as that it cannot use tools, or nil.
func (k *Brain) Limits() error {
	if l, ok := k.Model.(interface{ Limits() error }); ok {
		return l.Limits()
	}
	return nil
}

// turnRun is one turn while it is being answered.
type turnRun struct {
	*Brain
	model    Model // Brain.Model, or what its Begin has returned
	turn     agent.Turn
	tools    toolset
	speech   *Speech
	clock    *remote.Watch // measures the time that the model takes, without tools and speech
	acted    bool          // whether a call of a tool has been run
	wrote    bool          // whether the model has written a reply, or a call that is not run
	began    bool          // whether the model has written any text
	written  int           // number of calls taken from the model's text
	accepted int64         // tokens of history in a shortened prompt; 0 if it was not shortened
	past     int           // number of messages of earlier turns at the beginning of the prompt
	after    agent.End     // what the robot does after the turn
	sounded  int           // number of samples of the model's own speech

	mu    sync.Mutex // guards the fields below: tools may run at the same time, and each sends its status
	out   func(agent.Reply) error
	sent  bool // whether a reply was sent, other than a thought, Heard and Used
	spoke bool // whether a sentence or a sound was sent
}

// send passes replies to out, in order.
func (r *turnRun) send(replies ...agent.Reply) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reply := range replies {
		if err := r.out(reply); err != nil {
			return err
		}
		switch reply.(type) {
		case agent.Thought, agent.Heard, agent.Used:
			continue
		case agent.Say, agent.Sound:
			r.spoke = true
		}
		r.sent = true
	}
	return nil
}

var (
	// errEnough ends a message that is too long. Callers of Think, AskModels and DescribeImage do not receive it.
	errEnough = errors.New("the message is too long")
	// errEndless is the error for a model that has written nothing but thoughts within modelWithin, or has not
	// answered a question about a picture. It wraps ErrAway, so the next brain answers.
	errEndless = fmt.Errorf("%w: the model did not finish within %s; it may be too slow, or stuck", agent.ErrAway, modelWithin)
)

// message has the model write one message, and speaks it at the same time. A message that is too long, or takes too
// long, counts as cut off (StopLength). If it takes too long, and the turn has sent nothing but thoughts and has run no
// tool, the error is errEndless.
func (r *turnRun) message(p Prompt) (Message, Stop, error) {
	m := Message{Role: RoleAssistant}
	ctx := r.clock.Context()
	r.speech.StartMessage(p.Tools, r.thinksAloud())
	r.clock.Start()
	spoken := false // whether the model speaks its text itself
	stop, err := r.model.Continue(ctx, p, func(piece Piece) error {
		r.clock.Pause() // speaking a sentence may take minutes
		defer r.clock.Start()
		if piece.Heard != nil || piece.Tokens > 0 || len(piece.Sound) > 0 {
			return r.sendSpeech(piece)
		}
		spoken = spoken || piece.Spoken
		if len(m.Calls) == maxCalls && piece.Call != nil {
			return errEnough
		}
		if piece.Thought {
			if err := r.send(append(r.speech.Release(), r.speech.Think(piece.Reasoning)...)...); err != nil {
				return err
			}
		}
		r.began = r.began || strings.TrimSpace(piece.Text) != ""
		if err := r.send(sounding(r.speech.Write(piece.Text), spoken)...); err != nil || piece.Call == nil {
			if err == nil && r.speech.Full() {
				return errEnough
			}
			return cmp.Or(err, ctx.Err())
		}
		m.Calls = append(m.Calls, *piece.Call)
		return r.send(sounding(r.speech.Flush(), spoken)...) // the text before a call is spoken before the call is made
	})
	r.clock.Pause()
	late := r.clock.Silent() != ""
	switch {
	case err != nil && late && !r.sent && !r.acted:
		return m, "", errEndless
	case err != nil && late, errors.Is(err, errEnough):
		stop, err = StopLength, nil
	}
	if err == nil && stop == StopLength {
		err = r.send(sounding(r.speech.Cut(), spoken)...)
	} else if err == nil {
		err = r.send(sounding(r.speech.Flush(), spoken)...)
	}
	m.Text = r.speech.Text()
	r.wrote = r.wrote || !silence().MatchString(withoutFace(m.Text))
	if stop != StopLength {
		r.addWritten(&m, p.Tools)
	}
	if err == nil {
		r.growHistory()
		r.learnStyle(r.speech.Unopened(), r.wrote || len(m.Calls) > 0)
	}
	return m, stop, err
}

// sendSpeech sends what only a Speaker's pieces hold. It fails once the turn has maxSounded of sound.
func (r *turnRun) sendSpeech(piece Piece) error {
	switch {
	case piece.Heard != nil:
		return r.send(*piece.Heard)
	case piece.Tokens > 0:
		return r.send(agent.Used{Tokens: piece.Tokens})
	case r.sounded >= int(maxSounded/time.Second)*voice.SpeakerRate:
		return errEnough
	}
	r.sounded += len(piece.Sound)
	return r.send(append(sounding(r.speech.FlushSentence(), true), agent.Sound{PCM: piece.Sound})...)
}

// sounding returns the replies, with Say.Sounds set to spoken.
func sounding(replies []agent.Reply, spoken bool) []agent.Reply {
	for i, reply := range replies {
		if say, is := reply.(agent.Say); is && spoken {
			say.Sounds = true
			replies[i] = say
		}
	}
	return replies
}

// addWritten adds to a message the calls of offered tools that the model has written into its text.
func (r *turnRun) addWritten(m *Message, offered []Tool) {
	for _, c := range r.speech.Calls() {
		if !c.Offered || len(offered) == 0 || len(m.Calls) >= maxCalls {
			r.Log.Warn("a call in the model's text is not run: the tool is not offered, or the message has too many calls", "model", r.Where(), "tool", plain.Clip(plain.Text(c.Name), limit.Name))
			r.wrote = true
			continue
		}
		if slices.ContainsFunc(m.Calls, func(native ToolCall) bool { return native.Name == c.Name && bytes.Equal(native.Arguments, c.Arguments) }) {
			continue // the server has sent it as a call as well
		}
		r.written++
		m.Calls = append(m.Calls, ToolCall{ID: fmt.Sprintf("w%08d", r.written), Name: c.Name, Arguments: c.Arguments}) // nine letters and digits, as Mistral's API requires
	}
}

// growHistory updates the limit of the history after the model has accepted a prompt. The length of a shortened
// history becomes the limit. Otherwise, if no tool has run, an existing limit rises by a quarter and 10 tokens, up to
// HistoryTokens: after the refusal the server may have been restarted with a longer context, or other parts of the
// refused prompt may have been unusually long.
func (r *turnRun) growHistory() {
	if fits := r.fits.Load(); r.accepted > 0 {
		r.fits.Store(r.accepted)
	} else if fits > 0 && !r.acted {
		r.fits.Store(min(fits+fits/4+10, int64(r.HistoryTokens)))
	}
	r.accepted = 0
}

// shorten returns the prompt with less of the conversation if the model has refused it as too long. ok is
// false for other errors, and if no earlier messages are left.
func (r *turnRun) shorten(p Prompt, err error) (shorter Prompt, ok bool) {
	tooLong, ok := errors.AsType[*TooLongError](err)
	if !ok || r.past == 0 {
		return p, false
	}
	drop := (r.past/2 + 1) &^ 1 // an even number: a question and its reply form a pair
	p.Messages = slices.Clone(p.Messages[drop:])
	r.past -= drop
	fits := 1 // not 0, which means no limit
	for _, m := range p.Messages[:r.past] {
		fits += Tokens(m.Text)
	}
	if r.acted { // the prompt may be too long only because of the results of tools
		return p, true
	}
	r.accepted = int64(fits)
	if r.fits.Load() == 0 && r.warned.CompareAndSwap(false, true) {
		r.Log.Warn("the prompt is longer than the model's context, and the oldest part of the conversation is left out from now on; "+
			"a longer context remembers more (Ollama num_ctx, llama.cpp --ctx-size)", "model", r.Where(),
			"prompt_tokens", tooLong.Asked, "context_tokens", tooLong.Limit)
	}
	return p, true
}

// withoutFace returns a text without the emoji at its beginning, or the text itself if it has nothing else.
func withoutFace(text string) string {
	rest := strings.TrimLeftFunc(text, func(r rune) bool { return agent.IsEmoji(r) || unicode.IsSpace(r) || r == '\ufe0f' })
	if rest == "" {
		return text
	}
	return rest
}

// silence matches the replies of a model that chooses to say nothing: "...", [silence], *stays silent*.
var silence = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[\s.…]*$|^\s*[\[(*<][^\])*>]*(silen|nothing|no (response|reply|answer)|quiet|schweig|stille|沈黙|無言|沉默)[^\])*>]*[\])*>]\W*$`)
})

// finish ends the turn. It says the phrase with this key, unless the key is empty. Otherwise, if nothing was spoken,
// it says a phrase if tools have run, or if what the model has written cannot be spoken. In other cases it says
// nothing: a model may be silent on purpose, for example because the person spoke to somebody else. If the model's
// text has only thoughts, finish returns an error that wraps agent.ErrAway.
func (r *turnRun) finish(key string) error {
	var replies []agent.Reply
	switch {
	case key != "" || r.spoke:
	case r.acted:
		key = "done"
	case r.wrote:
		key = "unspeakable" // the model has written only code, for example
	}
	if key != "" {
		face, text := agent.SplitEmotion(r.Phrases.Of(r.turn.Language, key))
		replies = append(replies, agent.Felt{Emotion: face, Intensity: 1, Assumed: face == agent.Neutral})
		for _, s := range Sentences(text) {
			replies = append(replies, agent.Say{Text: s})
		}
	} else if r.began && r.speech.Text() == "" && !r.sent && !r.acted {
		return fmt.Errorf("%w: the model ended its reply without a word", agent.ErrAway)
	}
	return r.send(append(replies, agent.Done{End: cmp.Or(r.after, agent.Continue)})...)
}
