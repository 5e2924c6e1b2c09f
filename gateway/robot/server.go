// Package robot is the robots' door: their WebSocket, from the handshake to
// the hang-up. A session holds one robot's talk: it hears, has the mind
// answer, and speaks at the pace the firmware can take. Server is the whole
// face towards the house.
package robot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/door"
	"perch/gateway/socket"
	"perch/voice"
)

// bus is what sessions publish on.
type bus interface {
	Publish(robot device.ID, session string, e event.Event)
}

// robots is the registry as sessions use it.
type robots interface {
	Admit(id device.ID, c device.Client, token string) (device.Robot, error)
	KeepTools(id device.ID, tools []device.Tool)
}

// mind answers turns.
type mind interface {
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	Remembered(conversation string, e agent.Exchange, now time.Time)
}

// Options are what a server needs and how it behaves. All of it is needed but
// Idle and Silence.
type Options struct {
	Robots  robots
	Bus     bus
	Mind    mind
	Records *Records
	Ears    voice.Recognizer
	Mouth   voice.Synthesizer
	Speech  voice.Options
	Phrases Phrases
	Zone    *time.Location
	Idle    time.Duration // of a talk before we hang up; 0 is never
	Silence time.Duration // that ends an utterance
	Version string        // of the appliance
	Log     *slog.Logger
}

// Errors of the server's face.
var (
	// ErrOffline is returned where a robot's channel is closed. It opens one
	// only to talk.
	ErrOffline error = &door.Fault{Word: "robot_offline", HTTP: http.StatusConflict,
		Sentence: "the robot's channel is closed; it opens one when somebody talks to it"}
	// ErrStopping is returned once the server closes.
	ErrStopping = errors.New("the appliance is stopping")
)

// Server holds the sessions of all robots.
type Server struct {
	options *Options
	phrases phrasebook

	mu       sync.Mutex
	sessions map[device.ID]*running
	stopping bool
	ctx      context.Context // of all sessions
	stop     context.CancelFunc
	wg       sync.WaitGroup
	prepared sync.Once
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
	return &Server{options: &o, sessions: map[device.ID]*running{}, ctx: ctx, stop: stop}
}

// Close ends every session and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
}

// prepare has the phrases synthesized once the first robot is here.
func (s *Server) prepare() {
	s.prepared.Do(func() {
		s.wg.Go(func() {
			s.phrases.prepare(s.ctx, s.options.Phrases, s.options.Mouth, s.options.Speech, s.options.Log)
		})
	})
}

// serve holds one session on a transport until it ends. A second socket of
// the same robot takes the first one's place without RobotOffline.
func (s *Server) serve(t transport, r device.Robot, client device.Client, f xiaozhi.Framing) error {
	id := rand.Text()[:16]
	session, err := newSession(s.options, t, r, f, id, &s.phrases)
	if err != nil {
		t.Close(socket.ServerError, "cannot start a session")
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	me := &running{session, cancel, make(chan struct{})}
	if err := s.enter(r.ID, me); err != nil {
		t.Close(socket.GoingAway, err.Error())
		return err
	}
	defer s.wg.Done()
	defer close(me.done)
	opened := time.Now()
	s.options.Records.opened(SessionRecord{ID: id, Robot: r.ID, Client: client, Firmware: r.Firmware, Framing: int(f), Opened: opened})
	session.log.Info("a robot opened its channel", "framing", f, "firmware", r.Firmware)
	why := session.run(ctx)
	s.leave(r.ID, me)
	if session.replaced.Load() {
		why = "replaced by a newer channel"
	} else {
		session.publish(event.RobotOffline{Why: why})
	}
	s.options.Records.closed(id, why, string(session.state.mode), session.turnCount, time.Now())
	session.log.Info("a robot's channel is closed", "why", why, "turns", session.turnCount)
	return nil
}

// enter puts a session in the place of the robot's earlier one, and waits
// until that is gone.
func (s *Server) enter(id device.ID, me *running) error {
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return ErrStopping
	}
	s.wg.Add(1)
	before := s.sessions[id]
	s.sessions[id] = me
	s.mu.Unlock()
	s.prepare()
	if before != nil {
		before.replaced.Store(true)
		before.cancel()
		<-before.done
	}
	return nil
}

func (s *Server) leave(id device.ID, me *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[id] == me {
		delete(s.sessions, id)
	}
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
		return nil, ErrOffline
	}
	return r, nil
}

// post gives the robot's session an input.
func (s *Server) post(ctx context.Context, id device.ID, in input) error {
	r, err := s.session(id)
	if err != nil {
		return err
	}
	select {
	case r.inputs <- posted{input: in}:
		return nil
	case <-r.done:
		return ErrOffline
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Say has a text spoken: at once, or after the turn under way.
func (s *Server) Say(ctx context.Context, id device.ID, text string) error {
	return s.post(ctx, id, tell{text})
}

// Hear takes a text as if it had been spoken to the robot.
func (s *Server) Hear(ctx context.Context, id device.ID, text string) error {
	return s.post(ctx, id, hear{text})
}

// Abort makes a robot quiet.
func (s *Server) Abort(ctx context.Context, id device.ID) error {
	return s.post(ctx, id, silent{})
}

// Hangup closes a robot's channel.
func (s *Server) Hangup(ctx context.Context, id device.ID, why string) error {
	return s.post(ctx, id, hangUp{why})
}

// Call runs one of a robot's tools and returns what it answered.
func (s *Server) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	r, err := s.session(id)
	if err != nil {
		return device.Result{}, err
	}
	return r.toolbox.Call(ctx, tool, arguments)
}

// Tools returns what an open robot lists.
func (s *Server) Tools(id device.ID) ([]device.Tool, error) {
	r, err := s.session(id)
	if err != nil {
		return nil, err
	}
	return r.toolbox.Tools(), nil
}

// Mute drops a robot's sound on arrival, or no longer.
func (s *Server) Mute(id device.ID, on bool) error {
	r, err := s.session(id)
	if err != nil {
		return err
	}
	r.muted.Store(on)
	return nil
}
