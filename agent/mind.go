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

// publisher is the bus.
type publisher interface {
	Publish(robot device.ID, session string, e event.Event)
}

// Mind owns the conversations and passes each turn to the first brain that can answer it.
type Mind struct {
	brains Brains
	memory *Memory
	bus    publisher
	log    *slog.Logger

	mu            sync.Mutex
	conversations map[string]*conversation
	table         conversations // nil if conversations are not stored

	complete func(*Turn) // nil leaves turns as they are
}

// conversation is the history of one robot or skin. Its turn channel is a lock that
// can be awaited with a context.
type conversation struct {
	turn    chan struct{}
	history []Exchange
	used    time.Time
	emoji   string // of the current turn's first face

	robot    bool // the id is a robot's
	stranger bool // never stored on disk
	stored   bool
}

func newConversation(id string) *conversation {
	_, err := device.ParseID(id)
	return &conversation{turn: make(chan struct{}, 1), robot: err == nil}
}

// Bounds of the conversations.
const (
	mostHistory       = 20
	mostConversations = 500
)

// Brains returns the brains for one turn in the order to ask them, and a function to call
// when the turn has ended.
type Brains func() (brains []Brain, done func())

// Always returns the same brains for every turn.
func Always(brains ...Brain) Brains {
	return func() ([]Brain, func()) { return brains, func() {} }
}

// NewMind returns a Mind.
func NewMind(brains Brains, memory *Memory, bus publisher, log *slog.Logger) *Mind {
	return &Mind{brains: brains, memory: memory, bus: bus, log: log, conversations: map[string]*conversation{}}
}

// Complete sets a function that fills in the missing persona and name of a robot's
// turn, such as a skin's turn in a robot's conversation. It must be called before the
// first turn.
func (m *Mind) Complete(who func(*Turn)) { m.complete = who }

// Forget resets a conversation: durably if it is stored, and in the brains that have
// histories themselves. A turn under way still has the old history.
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
	c, known := m.conversations[conversation]
	if !known {
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

// Dismiss drops the conversation of a stranger, which is in memory only.
func (m *Mind) Dismiss(conversation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, known := m.conversations[conversation]; known && c.stranger {
		c.history = nil
	}
}

// ErrNoBrain is wrapped by Answer if no brain could answer the turn.
var ErrNoBrain = errors.New("no brain answers")

// Answer has a turn answered through out, in order, ending with Done. Turns of one
// conversation wait for each other. The caller reports what was really spoken
// with Remembered. A conversation without a history uses the turn's own History.
func (m *Mind) Answer(ctx context.Context, t Turn, out func(Reply) error) error {
	if m.complete != nil && t.Robot != "" && t.Name == "" && t.Persona == nil && t.Brain == "" {
		m.complete(&t)
	}
	c := m.conversation(t.Conversation, t.Now)
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	if t.Stranger() && !c.stranger {
		c.history = nil // it belongs to another robot with this MAC, or to the time before the owner removed the robot
	}
	c.stranger = t.Stranger()
	if len(c.history) > 0 || t.History == nil {
		t.History = slices.Clone(c.history)
	}
	t.History = latest(t.History)
	c.emoji = ""
	m.mu.Unlock()
	var failures []error
	sink := sink{mind: m, turn: t, out: out, conversation: c}
	brains, done := m.brains()
	defer done()
	for _, brain := range order(brains, t.Brain) {
		m.publish(t, event.ThinkingStarted{Brain: brain.Name()})
		err := brain.Think(ctx, t, sink.send)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if sink.refused != nil {
			return sink.refused // the receiver failed, not the brain
		}
		failures = append(failures, fmt.Errorf("%s: %w", brain.Name(), err))
		if sink.spoke || !errors.Is(err, ErrAway) {
			break
		}
	}
	return fmt.Errorf("%w: %w", ErrNoBrain, errors.Join(failures...))
}

// order returns the brains in the order to ask them: the wanted one first, if it exists,
// and a Silent brain alone for NoBrain. The second brain of a kind is "openai 2".
func order(brains []Brain, wanted string) []Brain {
	switch wanted {
	case "":
		return brains
	case NoBrain:
		return []Brain{Silent{}}
	}
	of := map[string]int{}
	for i, brain := range brains {
		name := brain.Name()
		if of[name]++; of[name] > 1 {
			name = fmt.Sprintf("%s %d", name, of[name])
		}
		if name == wanted {
			return slices.Concat(brains[i:i+1], brains[:i], brains[i+1:])
		}
	}
	return brains
}

// Remembered adds what was heard and really spoken to a conversation.
func (m *Mind) Remembered(id string, e Exchange, now time.Time) {
	c := m.conversation(id, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Emoji = cmp.Or(e.Emoji, c.emoji) // a model continues in the style of its answers
	c.history = latest(append(c.history, e))
	m.store(id, c)
}

func (m *Mind) conversation(id string, now time.Time) *conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, known := m.conversations[id]
	if !known {
		if len(m.conversations) >= mostConversations {
			m.evict()
		}
		c = newConversation(id)
		m.conversations[id] = c
	}
	c.used = now
	return c
}

// evict drops the conversation of the lowest worth that has not been used for longest.
// The caller holds m.mu.
func (m *Mind) evict() {
	id := limit.First(m.conversations, func(a, b *conversation) int { return cmp.Or(a.worth()-b.worth(), a.used.Compare(b.used)) })
	if m.conversations[id].stored {
		m.table.DeleteSoon(id)
	}
	delete(m.conversations, id)
}

// worth is 2 for an adopted robot, which belongs to the owner, while anybody on the network
// may start other conversations. Those without a history go first.
func (c *conversation) worth() int {
	switch {
	case c.robot && !c.stranger:
		return 2
	case len(c.history) > 0:
		return 1
	}
	return 0
}

// sink passes the replies of a turn's brains to their receiver, publishes what is visible,
// and removes markers from the text.
type sink struct {
	mind    *Mind
	turn    Turn
	out     func(Reply) error
	spoke   bool
	refused error // the receiver's error

	conversation *conversation
	face, tag    string // the face and tag shown in this turn; empty before the first
}

func (s *sink) send(r Reply) error {
	s.refused = s.handleReply(r)
	return s.refused
}

func (s *sink) handleReply(r Reply) error {
	switch r := r.(type) {
	case Felt:
		if r.Assumed && s.face != "" {
			return nil
		}
		same := r.Emotion.Name == s.face
		if same && r.Tag == s.tag {
			return nil // one reply for each change, no matter which brain asks for it
		}
		s.face, s.tag = r.Emotion.Name, r.Tag
		s.mind.mu.Lock()
		s.conversation.emoji = cmp.Or(s.conversation.emoji, r.Emotion.Emoji)
		s.mind.mu.Unlock()
		shown := event.Emotion{Name: r.Emotion.Name, Emoji: r.Emotion.Emoji, Tag: r.Tag}
		if r.Intensity > 0 && r.Intensity < 1 { // 1 is omitted
			shown.Intensity = r.Intensity
		}
		s.mind.publish(s.turn, shown)
		if same && s.turn.Body != nil {
			return nil // a robot already shows the face, and ignores the tag
		}
		return s.out(r)
	case Say:
		r.Text = s.mind.cutMarkers(r.Text, s.turn)
		if r.Text == "" {
			return nil
		}
		s.spoke = true
		return s.out(r)
	case Note:
		s.mind.rememberNote(r, s.turn)
		return nil
	case ToolStatus:
		s.mind.publish(s.turn, r.ToolStatus)
		return s.out(r)
	case Cue:
		if g, is := r.Gesture(); is && s.turn.Body == nil { // a robot's gesture is published with its speech
			s.mind.publish(s.turn, g)
		}
		return s.out(r)
	}
	return s.out(r)
}

// publish publishes an event of a turn, unless the caller publishes them.
func (m *Mind) publish(t Turn, e event.Event) {
	if !t.Unpublished {
		m.bus.Publish(t.Robot, t.Session, e)
	}
}

// marker matches a request to remember a fact, for brains that do not use thinker.Speech.
var marker = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\[(REMEMBER[^\]:]{0,100}:\s*[^\]]{1,300})\]`) })

// cutMarkers returns a text without its requests to remember facts, and remembers these.
func (m *Mind) cutMarkers(text string, t Turn) string {
	return strings.TrimSpace(marker().ReplaceAllStringFunc(text, func(found string) string {
		note, is := ReadNote(found[1 : len(found)-1])
		if !is {
			return found
		}
		m.rememberNote(note, t)
		return ""
	}))
}

// rememberNote stores a fact that was cut out of an answer in the turn's memory.
func (m *Mind) rememberNote(n Note, t Turn) {
	fact := Entry{Name: n.Text, Body: n.Text, Type: n.Type, Tags: strings.Fields(n.Tags), Important: n.Important,
		Robot: t.Robot, Session: t.Session, Source: "marker"}
	if _, err := m.memory.Of(t).Remember(fact, t.Now); err != nil {
		m.log.Warn("a fact was not remembered", "robot", t.Robot, "session", t.Session, "err", err)
	}
}
