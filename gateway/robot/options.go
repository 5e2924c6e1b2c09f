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
	"perch/voice/music"
)

// bus carries the appliance's events.
type bus interface {
	Publish(robot device.ID, session string, e event.Event)
	Read() *event.Reader
}

// senses receives sensor events of robots. Its methods return an error if they refuse an event.
type senses interface {
	// Detected receives the text with which a robot reports why it woke.
	Detected(id device.ID, session, text string) error
	// FromRobot receives a named sensor event and its data.
	FromRobot(id device.ID, session, name string, data json.RawMessage) error
}

// robots is the registry of robots.
type robots interface {
	// Admit returns the robot with an ID, or an error if no such robot is registered, or if it has
	// another client (installation of the firmware) or another token.
	Admit(id device.ID, c device.Client, token string) (device.Robot, error)
	// AdmitByHand returns the robot that its owner has added by hand and that has the token, or false.
	AdmitByHand(token string) (device.Robot, bool)
	// StoreTools stores a robot's list of tools.
	StoreTools(id device.ID, tools []device.Tool)
	// StoreEcho stores whether a robot leaves echo cancellation to the appliance.
	StoreEcho(id device.ID, left bool)
	// RecordSeen records that a robot is connected.
	RecordSeen(id device.ID, now time.Time)
	Get(id device.ID) (device.Robot, error)
	// Trusts reports whether an owner has adopted the robot. Any other robot is a stranger: people
	// may talk to it, and nothing about it is stored.
	Trusts(id device.ID) bool
}

// mind is the agent: it answers turns and describes pictures.
type mind interface {
	// Answer answers a turn: it passes each reply to out, in order.
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	// Write writes a draft of an answer. It blocks.
	Write(d *agent.Draft)
	// AnswerDrafted is Answer with a draft of the answer, which may be nil.
	AnswerDrafted(ctx context.Context, d *agent.Draft, t agent.Turn, out func(agent.Reply) error) error
	// Hears reports whether Hear can answer; first is a value of agent.Turn.Brain.
	Hears(first string) bool
	// Hear is Answer for a turn with Speech in place of Text. Its error wraps agent.ErrUnheard if the words must be
	// recognized.
	Hear(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	// AddExchange adds an exchange to the history of a conversation.
	AddExchange(conversation string, e agent.Exchange, now time.Time)
	// DescribeImage answers a question about a picture.
	DescribeImage(ctx context.Context, l agent.Look) (string, error)
}

// Options configure a server. A field is required unless its comment says otherwise.
type Options struct {
	Robots        robots
	RecordRefusal func(r *http.Request, err error) // records a robot's request that failed with err
	Bus           bus
	Senses        senses
	Mind          mind
	Records       *Records
	Commands      *CommandQueue
	Sounds        sounds          // sounds that robots can play
	Loudness      *voice.Loudness // receives the loudness of each robot's speech, by robot ID

	// Moves is called before a robot's agent calls a tool of the robot. It may be nil.
	Moves func(id device.ID, tool string, arguments map[string]any)
	// Quiet reports whether an idle robot may speak nothing but urgent announcements.
	Quiet func(now time.Time) bool
	// Waits reports whether the notification with an ID still waits to be announced.
	Waits func(notice string) bool

	Version string // version of the appliance
	Log     *slog.Logger

	// Apply may change all fields below, except stepped, while the server runs.

	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	// Hold keeps the recognizer and the synthesizer open until done is called. It is called before each
	// use of them, such as a turn.
	Hold func() (done func())
	// Voice identifies the voices in use. Phrases that were synthesized ahead are dropped when Apply
	// gets a different one. It must be comparable.
	Voice   any
	Speech  voice.Options // default voice and language, for robots that are not configured otherwise
	Phrases agent.Phrases
	// Languages are the configured languages, as BCP 47 tags. If a turn detects that one of them is
	// spoken, the turn continues in that language.
	Languages []string
	// Character returns the character of a robot. It does not block.
	Character func(device.ID) Character
	Music     *music.Library // the owner's music; nil means none
	Zone      *time.Location
	Idle      time.Duration // idle time after which a channel is closed; 0 means never
	Silence   time.Duration // silence that ends an utterance
	// Ending tells whether more words are likely to follow a text in a language. If answer is true, a
	// question waits for the text as its answer. Ending does not block.
	Ending func(text, language string, answer bool) voice.Ending
	// SpeaksAhead is whether a sentence may be synthesized before it is certain that it is played. It is false if
	// the provider of a synthesizer may bill each use.
	SpeaksAhead bool
	Greet       bool // whether a wake word is answered with a phrase
	// Patience is how long an agent may send nothing, neither text nor a tool's status, before the
	// turn fails. Without this limit, the robot's microphone would stay open while an agent hangs.
	Patience time.Duration

	PublicURL string // "http://host:port" that robots are given; empty means the Host of each request
	UserTools bool   // whether brains may use the tools that a robot reserves for its owner

	stepped func(dialogue.Input, dialogue.State) // tests only: called after every step; may be nil
}

// Character is the character of one robot.
type Character struct {
	Speech  voice.Options  // language that the robot understands, and voice that it speaks with
	Persona *agent.Persona // nil means the configured default persona
	Name    string         // name that people call the robot
	Brain   string         // brain that is tried first
}

// ErrStopping is returned once the server is stopping.
var ErrStopping = errors.New("the appliance is stopping")

// sounds loads the sounds that robots can play.
type sounds interface {
	// Load returns the sound with a name as 24 kHz PCM. The name need not include the file extension.
	// Callers must not change pcm. The error wraps fs.ErrNotExist if there is no such sound.
	Load(ctx context.Context, name string) (pcm []int16, err error)
}

// settings holds the current options.
type settings struct {
	current atomic.Pointer[Options]
	mu      sync.Mutex // held while current is replaced, and while Options.Hold is called
}

// apply replaces the options, and reports whether their voice has changed.
func (s *settings) apply(o Options) (voiceChanged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Swap(&o)
	return before != nil && before.Voice != o.Voice
}

// acquire returns the current options and holds their engines open until done is called.
func (s *settings) acquire() (o *Options, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = s.current.Load()
	return o, o.Hold()
}
