// Package robot is the robots' door: their WebSocket, from the handshake to
// the hang-up. A session holds one robot's conversation: it has speech
// recognized, has the agent answer, and speaks at the pace the firmware can take.
// Server is all that the rest of the appliance uses.
package robot

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/notify"
	"perch/gateway/robot/playback"
	"perch/gateway/robot/tools"
	"perch/gateway/robot/vision"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/door"
	"perch/socket"
	"perch/voice"
)

// bus is what sessions publish on.
type bus interface {
	Publish(robot device.ID, session string, e event.Event)
	Read() *event.Reader
}

// senses take what robots sense. They return an error for what is not taken.
type senses interface {
	// Detected takes the text by which a robot was woken.
	Detected(id device.ID, session, text string) error
	FromRobot(id device.ID, session, name string, data json.RawMessage) error
}

// robots is the registry as sessions use it.
type robots interface {
	Admit(id device.ID, c device.Client, token string) (device.Robot, error)
	KeepTools(id device.ID, tools []device.Tool)
	KeepEcho(id device.ID, ours bool)
	Seen(id device.ID, now time.Time)
	Get(id device.ID) (device.Robot, error)
	// Trusts reports whether its owner has adopted a robot by name. Any other is a
	// stranger: it may talk, and nothing of it is kept.
	Trusts(id device.ID) bool
}

// mind is the agent: it answers turns, and looks at pictures.
type mind interface {
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	Remembered(conversation string, e agent.Exchange, now time.Time)
	See(ctx context.Context, l agent.Look) (string, error)
}

// Options are what a server needs. All are required that do not say otherwise.
type Options struct {
	Robots   robots
	Bus      bus
	Senses   senses
	Mind     mind
	Records  *Records
	Commands *CommandQueue
	Sounds   sounds          // that robots play; nil is none
	Loudness *voice.Loudness // of what robots say, by their ids; nil is nobody's business

	// Quiet reports whether only what is urgent may be spoken unasked by a robot that
	// does not talk; nil is never.
	Quiet func(now time.Time) bool
	// Waits reports whether a notification is still to be announced; nil is always.
	Waits func(notice string) bool

	Version string // of the appliance
	Log     *slog.Logger

	// All below may be changed by Apply while the server runs.

	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	// Hold keeps the recognizer and the synthesizer open until done is called; nil is
	// for those that nobody closes. Each turn calls it once.
	Hold func() (done func())
	// Voice is compared: while it stays the same, sentences that were synthesized ahead
	// are kept.
	Voice   any
	Speech  voice.Options // of robots without their own
	Phrases agent.Phrases
	// Languages are the household's, BCP 47. A turn whose speech asks to detect the
	// language goes on in the one of them that was heard.
	Languages []string
	// Character is what a robot has of its own; nil is nothing. It does not block.
	Character func(device.ID) Character
	Zone      *time.Location
	Idle      time.Duration // of a channel before we hang up; 0 is never
	Silence   time.Duration // that ends an utterance
	// Settled reports whether nothing can follow a text, or an answer to a question of yes
	// or no, that means something else; nil is never. It does not block.
	Settled func(text string, answer bool) bool
	Greet   bool // wake words are answered
	// Patience is how long an agent may give nothing in a turn; 0 is 3 minutes.
	Patience time.Duration

	PublicURL string // "http://host:port" that robots are given; empty takes each request's own Host
	UserTools bool   // brains may use the tools that are for a robot's owner

	stepped func(dialogue.Input, dialogue.State) // after every step, in tests; nil is nothing
}

// dialogue returns the settings of a session's turn taking.
func (o *Options) dialogue() dialogue.Settings {
	return dialogue.Settings{Greet: o.Greet, Idle: o.Idle}
}

// Character is what one robot has of its own.
type Character struct {
	Speech  voice.Options  // how it is spoken to, and speaks
	Persona *agent.Persona // nil is the household's
	Name    string         // that it is called by
	Brain   string         // that is asked first
}

// ErrStopping is returned once the server stops.
var ErrStopping = errors.New("the appliance is stopping")

// Server holds the sessions of all robots.
type Server struct {
	options   *Options                // those that never change
	current   atomic.Pointer[Options] // all, as they are now
	phrases   phrases
	vision    *vision.Service
	tickets   notify.Tickets
	pace      *door.Pace    // of MQTT connections, before they have logged in
	tools     *tools.Budget // of the adopted robots
	strangers strangerLimits
	encoders  *playback.Scheduler

	mu       sync.Mutex
	sessions map[device.ID]*running
	links    map[device.ID]*link // by MQTT
	muted    map[device.ID]bool
	statuses map[device.ID]event.RobotStatus // as last reported
	entered  chan struct{}                   // closed, and made anew, when a session begins
	lost     int                             // robots let go because they did not read
	stopping bool
	ctx      context.Context // of all sessions
	stop     context.CancelFunc
	wg       sync.WaitGroup
}

// running is a session and what its successor waits for.
type running struct {
	*session
	cancel context.CancelFunc
	done   chan struct{}
}

// NewServer returns a server. Close ends it.
func NewServer(o Options) *Server {
	ctx, stop := context.WithCancel(context.Background()) // ended by Close, which every owner calls
	s := &Server{
		options: &o, tools: tools.NewBudget(adoptedToolBytes), strangers: newStrangerLimits(o.Log),
		sessions: map[device.ID]*running{}, links: map[device.ID]*link{}, muted: map[device.ID]bool{}, entered: make(chan struct{}),
		statuses: map[device.ID]event.RobotStatus{}, encoders: playback.NewScheduler(),
		ctx: ctx, stop: stop,
	}
	s.options.Loudness = cmp.Or(o.Loudness, &voice.Loudness{})
	s.pace = door.NewPace()
	s.vision = vision.New(vision.Options{Bus: o.Bus, Mind: o.Mind, Robots: o.Robots, Log: s.logOf,
		Prepare: func(l *agent.Look) {
			o := s.current.Load()
			own := o.Character(l.Robot)
			l.Language, l.Brain, l.Now = own.Speech.Language, own.Brain, l.Now.In(o.Zone)
		},
		Phrase: func(language, name string) string { return s.current.Load().Phrases(language, name) }})
	s.Apply(o)
	return s
}

// Apply changes what Options says may change. A turn under way goes on with what it
// began with; Hold of the options before is not called any more once Apply returns.
func (s *Server) Apply(o Options) {
	if o.Character == nil {
		o.Character = func(device.ID) Character { return Character{Speech: o.Speech} }
	}
	if o.Hold == nil {
		o.Hold = func() func() { return func() {} }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Swap(&o)
	if before == nil || before.Voice != o.Voice {
		s.phrases = phrases{usual: &phrasebook{}, others: map[voice.Options]*phrasebook{}}
	}
}

// hold returns the options for one turn, and a function to call when it has ended.
func (s *Server) hold() (o *Options, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = s.current.Load()
	return o, o.Hold()
}

// StopAccepting refuses further channels and connections of robots, with status 503 where
// that can be said. Those that are open go on until Close.
func (s *Server) StopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

// accepting returns a *door.Fault once StopAccepting was called.
func (s *Server) accepting() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return &door.Fault{Word: "stopping", Sentence: door.GoingAway, HTTP: http.StatusServiceUnavailable}
	}
	return nil
}

// Close ends every session and waits for them.
func (s *Server) Close() {
	s.StopAccepting()
	s.stop()
	s.wg.Wait()
}

// Prepare has the phrases synthesized that are not yet: when a robot is here,
// or before, where somebody knows that one will come.
func (s *Server) Prepare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepare(s.phrases.usual, s.current.Load().Speech)
}

// prepare has a book's phrases synthesized that are not yet. s.mu is held.
func (s *Server) prepare(b *phrasebook, o voice.Options) {
	if s.stopping || !b.begin() {
		return
	}
	current := s.current.Load()
	done := current.Hold()
	s.wg.Go(func() {
		defer done()
		b.prepare(s.ctx, current.Phrases, current.Synthesizer, o, s.options.Log)
	})
}

// mostVoices bounds the voices in which phrases are kept.
const mostVoices = 16

// phrasesOf are the phrases in a robot's voice. A new voice's are being made.
func (s *Server) phrasesOf(o voice.Options) *phrasebook {
	o.Detect = false // all that is spoken is the same
	s.mu.Lock()
	defer s.mu.Unlock()
	b, known := s.phrases.others[o]
	switch {
	case o == s.current.Load().Speech || !known && len(s.phrases.others) == mostVoices:
		return s.phrases.usual
	case !known:
		b = &phrasebook{}
		s.phrases.others[o] = b
	}
	s.prepare(b, o)
	return b
}

// usualPhrase is one in the voice that is configured.
func (s *Server) usualPhrase(name string) (phrase, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phrases.usual.get(name)
}

// serve holds one session on a transport until it ends. A second socket of
// the same robot replaces the first one without RobotOffline.
func (s *Server) serve(t transport, r device.Robot, client device.Client, f xiaozhi.Framing) error {
	id := rand.Text()[:16]
	session, err := newLoop(s, t, r, f, id)
	if err != nil {
		t.Close(socket.ServerError, "cannot start a session")
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	me := &running{session.session, cancel, make(chan struct{})}
	if err := s.enter(r.ID, me); err != nil {
		t.Close(socket.GoingAway, err.Error())
		return err
	}
	defer s.wg.Done()
	opened := time.Now()
	session.pending.record = &SessionRecord{ID: id, Robot: r.ID, Client: client, Firmware: r.Firmware, Framing: int(f), Opened: opened}
	session.keep()
	session.log.Info("a robot opened its channel", "framing", f, "firmware", r.Firmware)
	why := session.run(ctx)
	s.keepUnspoken(session)
	s.leave(r.ID, me, why)
	if session.replaced.Load() {
		why = whyReplaced
	} else {
		session.publish(event.RobotOffline{Why: why})
	}
	session.learn(func(u *pendingRecords) { u.record = nil })
	s.options.Records.closed(id, why, string(session.state.Mode()), session.turnCount, time.Now())
	session.log.Info("a robot's channel is closed", "why", why, "turns", session.turnCount)
	close(me.done)
	session.turns.Wait() // one may still be in C; the robot's next session need not wait for it
	return nil
}

// enter replaces the robot's earlier session, and waits for its end.
func (s *Server) enter(id device.ID, me *running) error {
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return ErrStopping
	}
	s.wg.Add(1)
	before := s.sessions[id]
	s.sessions[id] = me
	me.muted.Store(s.muted[id])
	close(s.entered)
	s.entered = make(chan struct{})
	s.mu.Unlock()
	s.Prepare()
	s.phrasesOf(s.current.Load().Character(id).Speech)
	if before != nil {
		before.replaced.Store(true)
		before.cancel()
		<-before.done
	}
	return nil
}

func (s *Server) leave(id device.ID, me *running, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why == whyTooSlow || why == whySendingFailed {
		s.lost++
	}
	if s.sessions[id] == me {
		delete(s.sessions, id)
	}
}

// Lost is how many robots were disconnected because they did not read.
func (s *Server) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Status is a session as others see it.
type Status struct {
	Robot   device.ID `json:"robot"`
	Session string    `json:"session"`
	Tools   int       `json:"tools"`
	Muted   bool      `json:"muted"`
}

// List returns the open sessions, by robot.
func (s *Server) List() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Status, 0, len(s.sessions))
	for id, r := range s.sessions {
		list = append(list, Status{Robot: id, Session: r.id, Tools: len(r.toolbox.Tools()), Muted: r.muted.Load()})
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Robot, b.Robot) })
	return list
}

func (s *Server) session(id device.ID) (*running, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, open := s.sessions[id]
	if !open {
		return nil, dialogue.ErrOffline
	}
	return r, nil
}

// post gives the robot's session an input.
func (s *Server) post(ctx context.Context, id device.ID, in dialogue.Input) error {
	r, err := s.session(id)
	if err != nil {
		return err
	}
	return r.post(ctx, in)
}

// post gives the session an input, and waits until it has dealt with it.
func (r *running) post(ctx context.Context, in dialogue.Input) error {
	handled := make(chan struct{})
	select {
	case r.inputs <- posted{Input: in, handled: handled}:
	case <-r.done:
		return dialogue.ErrOffline
	case <-ctx.Done():
		return ctx.Err()
	}
	// A session that ends takes no more from its queue.
	select {
	case <-handled:
		return nil
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-handled:
		return nil
	default:
		return dialogue.ErrOffline
	}
}

// Picture returns the last picture of a robot's camera.
func (s *Server) Picture(id device.ID) (device.Picture, bool) { return s.vision.Picture(id) }
