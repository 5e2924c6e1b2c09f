package robot

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/voice"
)

// bus is what sessions publish on.
type bus interface {
	Publish(robot device.ID, session string, e event.Event)
	Read() *event.Reader
}

// senses receives what robots sense. Its methods return an error for what is refused.
type senses interface {
	// Detected receives the text that woke a robot.
	Detected(id device.ID, session, text string) error
	FromRobot(id device.ID, session, name string, data json.RawMessage) error
}

// robots is the registry of robots, as sessions use it.
type robots interface {
	Admit(id device.ID, c device.Client, token string) (device.Robot, error)
	KeepTools(id device.ID, tools []device.Tool)
	KeepEcho(id device.ID, ours bool)
	RecordSeen(id device.ID, now time.Time)
	Get(id device.ID) (device.Robot, error)
	// Trusts reports whether its owner has adopted a robot by name. Any other is a
	// stranger: it may talk, and nothing of it is stored.
	Trusts(id device.ID) bool
}

// mind is the agent: it answers turns, and looks at pictures.
type mind interface {
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	Remembered(conversation string, e agent.Exchange, now time.Time)
	DescribeImage(ctx context.Context, l agent.Look) (string, error)
}

// Options are what a server needs. Fields are required unless they say otherwise.
type Options struct {
	Robots   robots
	TurnAway func(r *http.Request, err error) // records a robot's request that is not answered
	Bus      bus
	Senses   senses
	Mind     mind
	Records  *Records
	Commands *CommandQueue
	Sounds   sounds          // that robots play
	Loudness *voice.Loudness // of what robots say, by their ids

	// Quiet reports whether only what is urgent may be spoken unasked by a robot that
	// does not talk.
	Quiet func(now time.Time) bool
	// Waits reports whether a notification is still to be announced.
	Waits func(notice string) bool

	Version string // of the appliance
	Log     *slog.Logger

	// All below may be changed by Apply while the server runs.

	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	// Hold keeps the recognizer and the synthesizer open until done is called. Each turn calls it
	// once.
	Hold func() (done func())
	// Voice is compared: while it is the same, sentences that were synthesized ahead are used.
	Voice   any
	Speech  voice.Options // of robots without their own
	Phrases agent.Phrases
	// Languages are the household's, BCP 47. A turn whose speech asks to detect the
	// language goes on in the one of them that was heard.
	Languages []string
	// Character returns what a robot has instead of the household's. It does not block.
	Character func(device.ID) Character
	Zone      *time.Location
	Idle      time.Duration // of a channel before we hang up; 0 is never
	Silence   time.Duration // that ends an utterance
	// Settled reports whether nothing can follow a text, or an answer to a question of yes
	// or no, that means something else. It does not block.
	Settled func(text string, answer bool) bool
	Greet   bool // wake words are answered
	// Patience is how long an agent may give neither a word nor a tool's status in a turn. If it
	// hung, the robot would have an open microphone that nobody listens to.
	Patience time.Duration

	PublicURL string // "http://host:port" that robots are given; empty takes each request's own Host
	UserTools bool   // brains may use the tools that are for a robot's owner

	stepped func(dialogue.Input, dialogue.State) // after every step, in tests; nil is nothing
}

// Character is what one robot has instead of the household's.
type Character struct {
	Speech  voice.Options  // how it is spoken to, and speaks
	Persona *agent.Persona // nil is the household's
	Name    string         // that it is called by
	Brain   string         // that is asked first
}

// ErrStopping is returned once the server stops.
var ErrStopping = errors.New("the appliance is stopping")

// sounds load what robots play.
type sounds interface {
	// Load returns a sound by its base name as 24 kHz PCM, which is not changed afterwards. Its
	// error wraps fs.ErrNotExist for an unknown name.
	Load(ctx context.Context, name string) (pcm []int16, err error)
}

// settings are the options as they are now.
type settings struct {
	current atomic.Pointer[Options]
	mu      sync.Mutex // of current and its Hold together
}

// apply sets the options, and reports whether their voice is another than before.
func (s *settings) apply(o Options) (anotherVoice bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Swap(&o)
	return before != nil && before.Voice != o.Voice
}

// acquire returns the options for one turn, and a function to call when it has ended.
func (s *settings) acquire() (o *Options, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = s.current.Load()
	return o, o.Hold()
}
