package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
)

// publisher publishes events; event.Bus implements it.
type publisher interface {
	Publish(robot device.ID, session string, e event.Event)
}

// Mind holds the conversations, and passes each turn to the first brain that can answer it.
type Mind struct {
	brains Brains
	memory *Memory
	bus    publisher
	log    *slog.Logger

	mu            sync.Mutex
	conversations map[string]*conversation // key: conversation ID
	table         conversations            // nil if conversations are not stored on disk

	complete func(*Turn) // see CompleteTurns; may be nil
}

// conversation is a conversation with a robot, a skin or another program.
type conversation struct {
	turn chan struct{} // lock of capacity 1: holds an element while a turn runs

	// The following are guarded by Mind.mu.
	history  []Exchange // oldest first
	used     time.Time  // time of the latest turn
	emoji    string     // emoji of the first face in the latest turn; "" before the turn has shown a face
	robot    bool       // whether the conversation ID is a robot ID
	stranger bool       // whether the latest turn was a stranger's; then the conversation is not stored on disk
	stored   bool       // whether the conversation is stored on disk
}

func newConversation(id string) *conversation {
	_, err := device.ParseID(id)
	return &conversation{turn: make(chan struct{}, 1), robot: err == nil}
}

// past returns the latest exchanges for a turn in the conversation. The caller holds Mind.mu.
func (c *conversation) past(t Turn) []Exchange {
	if len(c.history) > 0 || t.History == nil {
		t.History = slices.Clone(c.history)
	}
	return latest(t.History)
}

// Limits of the conversations.
const (
	maxHistory       = 20 // exchanges of each conversation
	maxConversations = 500
)

// Brains returns the brains for one turn in the order to ask them, and a function that must
// be called when the turn has ended.
type Brains func() (brains []Brain, done func())

// Always returns a Brains that returns these brains for every turn.
func Always(brains ...Brain) Brains {
	return func() ([]Brain, func()) { return brains, func() {} }
}

// NewMind returns a Mind without conversations.
func NewMind(brains Brains, memory *Memory, bus publisher, log *slog.Logger) *Mind {
	return &Mind{brains: brains, memory: memory, bus: bus, log: log, conversations: map[string]*conversation{}}
}

// CompleteTurns sets a function that adds the persona and the name to a turn that has a robot
// but no persona, name or brain, such as a turn that a skin sends in a robot's conversation.
// It must be called before the first turn.
func (m *Mind) CompleteTurns(complete func(*Turn)) { m.complete = complete }

// Forget deletes the history of a conversation, also on disk and in brains with histories.
// A running turn still has the old history.
func (m *Mind) Forget(conversation string) error {
	brains, done := m.brains()
	defer done()
	for _, brain := range brains {
		if stateful, ok := brain.(interface{ Forget(string) }); ok {
			stateful.Forget(conversation)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.conversations[conversation]
	if !ok {
		return nil
	}
	if c.history = nil; !c.stored {
		return nil
	}
	if err := m.table.Delete(conversation); err != nil {
		return fmt.Errorf("forget a conversation: %w", err)
	}
	c.stored = false
	return nil
}

// Dismiss deletes the history of a stranger's conversation. It has no effect on other
// conversations.
func (m *Mind) Dismiss(conversation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.conversations[conversation]; ok && c.stranger {
		c.history = nil
	}
}

// ErrNoBrain is wrapped by the errors of Answer and DescribeImage if no brain has answered.
var ErrNoBrain = errors.New("no brain answers")

// Answer has a brain answer a turn, and calls out for the brain's replies, which end with
// Done. It remembers notes and publishes thoughts instead of passing them to out, and drops
// repeated faces. Turns of one conversation run one after the other. If the conversation has
// no history, t.History is used. Answer returns the error of ctx if ctx ends, the error of
// out if out fails, and an error that wraps ErrNoBrain if no brain has answered. After Answer
// the caller must call AddExchange with the text that was really spoken.
func (m *Mind) Answer(ctx context.Context, t Turn, out func(Reply) error) error {
	return m.AnswerDrafted(ctx, nil, t, out)
}

// AnswerDrafted is Answer for a turn whose answer may have been drafted. If the draft d is the answer to t, AnswerDrafted
// passes on the replies that were held back, and the brain goes on. Otherwise it discards d, which may be nil.
func (m *Mind) AnswerDrafted(ctx context.Context, d *Draft, t Turn, out func(Reply) error) error {
	m.completeTurn(&t)
	sink, end, err := m.begin(ctx, t, out)
	if err != nil {
		return err
	}
	defer end()
	var failures []error
	brains, done := m.brains()
	defer done()
	for _, brain := range sortBrains(brains, t.Brain) {
		m.publish(t, event.ThinkingStarted{Brain: brain.Name()})
		err := d.answer(ctx, brain, sink.turn, sink.send)
		if err == nil {
			return nil
		}
		d = nil // it was the first brain's
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if sink.outErr != nil {
			return sink.outErr // out has failed, not the brain
		}
		failures = append(failures, fmt.Errorf("%s: %w", brain.Name(), err))
		if sink.spoke || !errors.Is(err, ErrAway) {
			break
		}
	}
	return fmt.Errorf("%w: %w", ErrNoBrain, errors.Join(failures...))
}

// completeTurn calls the function of CompleteTurns if t needs it.
func (m *Mind) completeTurn(t *Turn) {
	if m.complete != nil && t.Robot != "" && t.Name == "" && t.Persona == nil && t.Brain == "" {
		m.complete(t)
	}
}

// Write has the brain that comes first write a draft, unless that brain does not draft, or the turn is untrusted. If the
// draft is taken, Write returns when the brain has answered, and otherwise soon after the end of the draft's context.
// It must be called once for each draft.
func (m *Mind) Write(d *Draft) {
	defer close(d.done)
	defer d.cancel()
	t := d.turn
	m.completeTurn(&t)
	brains, done := m.brains()
	defer done()
	if brains = sortBrains(brains, t.Brain); len(brains) == 0 || t.Untrusted {
		return
	}
	if drafter, is := brains[0].(Drafter); is && drafter.Drafts() {
		m.mu.Lock()
		if c, known := m.conversations[t.Conversation]; known {
			t.History = c.past(t)
		}
		m.mu.Unlock()
		d.write(drafter, t)
	}
}

// ErrUnheard is wrapped by the error of Hear if the words of the turn must be recognized.
var ErrUnheard = errors.New("no brain has understood the speech")

// Hears reports whether the brain that comes first understands speech. first is a value of Turn.Brain.
func (m *Mind) Hears(first string) bool {
	brains, done := m.brains()
	defer done()
	return firstHearer(brains, first) != nil
}

// firstHearer returns the brain that comes first if it is a Hearer that hears, otherwise nil. first is a value of
// Turn.Brain.
func firstHearer(brains []Brain, first string) Hearer {
	if brains = sortBrains(brains, first); len(brains) > 0 {
		if h, is := brains[0].(Hearer); is && h.Hears() {
			return h
		}
	}
	return nil
}

// Hear is Answer for a turn with Speech in place of Text. Only the brain that comes first is asked. If it does not
// understand speech, or cannot be reached and has not spoken yet, the error wraps ErrUnheard: the caller then has the
// words recognized, and calls Answer.
func (m *Mind) Hear(ctx context.Context, t Turn, out func(Reply) error) error {
	brains, done := m.brains()
	defer done()
	hearer := firstHearer(brains, t.Brain)
	if hearer == nil {
		return ErrUnheard
	}
	sink, end, err := m.begin(ctx, t, out)
	if err != nil {
		return err
	}
	defer end()
	sink.asked = hearer.Name()
	err = hearer.Think(ctx, sink.turn, sink.send)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case sink.outErr != nil:
		return sink.outErr
	case !sink.spoke && errors.Is(err, ErrAway):
		return fmt.Errorf("%w: %s: %w", ErrUnheard, hearer.Name(), err)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoBrain, hearer.Name(), err)
}

// begin waits for the previous turn of the conversation, and returns a sink for the turn, whose turn has the
// history. The caller calls end at the end of the turn.
func (m *Mind) begin(ctx context.Context, t Turn, out func(Reply) error) (_ *sink, end func(), err error) {
	c := m.conversation(t.Conversation, t.Now)
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.Stranger() && !c.stranger {
		// The history is of another robot with this ID, or from before the owner removed this robot.
		c.history = nil
	}
	c.stranger = t.Stranger()
	t.History = c.past(t)
	c.emoji = ""
	return &sink{mind: m, turn: t, out: out, conversation: c}, func() { <-c.turn }, nil
}

// sortBrains returns the brains in the order to ask them. first is a value of Turn.Brain:
// the brain with this name, if it exists, comes first. For NoBrain the result is only a
// Silent.
func sortBrains(brains []Brain, first string) []Brain {
	switch first {
	case "":
		return brains
	case NoBrain:
		return []Brain{Silent{}}
	}
	count := map[string]int{} // key: kind of brain
	for i, brain := range brains {
		name := brain.Name()
		if count[name]++; count[name] > 1 {
			name = fmt.Sprintf("%s %d", name, count[name])
		}
		if name == first {
			return slices.Concat(brains[i:i+1], brains[:i], brains[i+1:])
		}
	}
	return brains
}

// AddExchange adds an exchange to the history of a conversation. The exchange holds the text
// that was really spoken, which may be only a part of the answer. If e has no emoji, AddExchange
// adds the emoji of the first face in the turn.
func (m *Mind) AddExchange(id string, e Exchange, now time.Time) {
	c := m.conversation(id, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Emoji = cmp.Or(e.Emoji, c.emoji) // models imitate the past answers, so these must begin with an emoji
	c.history = latest(append(c.history, e))
	m.store(id, c)
}

// conversation returns the conversation with this ID, which it creates if necessary.
func (m *Mind) conversation(id string, now time.Time) *conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.conversations[id]
	if !ok {
		if len(m.conversations) >= maxConversations {
			m.evict()
		}
		c = newConversation(id)
		m.conversations[id] = c
	}
	c.used = now
	return c
}

// evict deletes the conversation with the lowest priority, among equals the longest unused.
// The caller holds m.mu.
func (m *Mind) evict() {
	id := limit.First(m.conversations, func(a, b *conversation) int { return cmp.Or(a.priority()-b.priority(), a.used.Compare(b.used)) })
	if m.conversations[id].stored {
		m.table.DeleteSoon(id)
	}
	delete(m.conversations, id)
}

// priority returns 2 for the conversation of an adopted robot, otherwise 1 for a
// conversation with a history, and 0 without one. Anybody on the network may start
// conversations, and these must not evict the conversations of the owner's robots.
func (c *conversation) priority() int {
	switch {
	case c.robot && !c.stranger:
		return 2
	case len(c.history) > 0:
		return 1
	}
	return 0
}

// sink passes the replies of brains in a turn to out. It publishes events for the replies,
// and remembers the facts in notes and markers instead of passing these to out.
type sink struct {
	mind   *Mind
	turn   Turn
	out    func(Reply) error
	spoke  bool   // whether a Say or a Sound was passed to out
	outErr error  // error of the latest call of out
	asked  string // name of the brain to publish with the first reply, as an event.ThinkingStarted; "" if it is published

	conversation *conversation
	face, tag    string // name of the latest face in this turn, and its Felt.Tag; "" before the first
}

// send is the function that a brain calls for each reply. It stores the error of handleReply.
func (s *sink) send(r Reply) error {
	s.outErr = s.handleReply(r)
	return s.outErr
}

// handleReply remembers or publishes a reply where needed, and passes it to out unless it is a
// note, a thought, an empty sentence, a repeated face, or an assumed face after another face.
func (s *sink) handleReply(r Reply) error {
	if heard, is := r.(Heard); is {
		if err := s.out(heard); err != nil { // before the event that the brain thinks
			return err
		}
	}
	if s.asked != "" {
		s.mind.publish(s.turn, event.ThinkingStarted{Brain: s.asked})
		s.asked = ""
	}
	switch r := r.(type) {
	case Heard:
		return nil // passed on above
	case Sound:
		s.spoke = true
		return s.out(r)
	case Felt:
		if r.Assumed && s.face != "" {
			return nil
		}
		sameFace := r.Emotion.Name == s.face
		if sameFace && r.Tag == s.tag {
			return nil
		}
		s.face, s.tag = r.Emotion.Name, r.Tag
		s.mind.mu.Lock()
		s.conversation.emoji = cmp.Or(s.conversation.emoji, r.Emotion.Emoji)
		s.mind.mu.Unlock()
		e := event.Emotion{Name: r.Emotion.Name, Emoji: r.Emotion.Emoji, Tag: r.Tag}
		if r.Intensity > 0 && r.Intensity < 1 { // in the event, 0 means 1
			e.Intensity = r.Intensity
		}
		s.mind.publish(s.turn, e)
		if sameFace && s.turn.Body != nil {
			return nil // a robot already shows the face, and ignores the tag
		}
		return s.out(r)
	case Say:
		r.Text = s.mind.rememberMarkers(r.Text, s.turn)
		if r.Text == "" {
			return nil
		}
		s.spoke = true
		return s.out(r)
	case Note:
		s.mind.rememberNote(r, s.turn)
		return nil
	case Thought:
		s.mind.publish(s.turn, event.Thought{Text: r.Text})
		return nil
	case ToolStatus:
		s.mind.publish(s.turn, r.ToolStatus)
		return s.out(r)
	case Cue:
		if g, ok := r.Gesture(); ok && s.turn.Body == nil { // a robot's gesture is published when it is performed
			s.mind.publish(s.turn, g)
		}
		return s.out(r)
	}
	return s.out(r)
}

func (m *Mind) publish(t Turn, e event.Event) {
	if t.Publish != nil {
		t.Publish(e)
		return
	}
	m.bus.Publish(t.Robot, t.Session, e)
}

// marker matches a marker of a fact to remember (see ParseNote). It serves brains that do not
// use thinker.Speech, which parses markers itself.
var marker = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\[(REMEMBER[^\]:]{0,100}:\s*[^\]]{1,300})\]`) })

// rememberMarkers remembers the facts in the markers of a text, and returns the text
// without the markers.
func (m *Mind) rememberMarkers(text string, t Turn) string {
	return strings.TrimSpace(marker().ReplaceAllStringFunc(text, func(match string) string {
		note, ok := ParseNote(match[1 : len(match)-1])
		if !ok {
			return match
		}
		m.rememberNote(note, t)
		return ""
	}))
}

// rememberNote stores a fact in the memory for the turn. It logs an error.
func (m *Mind) rememberNote(n Note, t Turn) {
	fact := Entry{Name: n.Text, Body: n.Text, Type: n.Type, Tags: strings.Fields(n.Tags), Important: n.Important,
		Robot: t.Robot, Session: t.Session, Source: "marker"}
	if _, err := m.memory.Of(t).Remember(fact, t.Now); err != nil {
		m.log.Warn("a fact was not remembered", "robot", t.Robot, "session", t.Session, "err", err)
	}
}
