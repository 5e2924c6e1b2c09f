// Package wyoming serves Perch over the Wyoming protocol, for Home Assistant
// and other clients: speech recognition (asr), speech synthesis (tts), and a
// conversation agent (handle).
//
// The protocol has no keys and no encryption, so this door has no lock. Every
// client that reaches it may have speech recognized and spoken, and may talk with
// the agent, but not through a robot: nothing moves, and a question that needs
// consent is answered with no. The owner binds it to loopback or to the home
// network by naming its address; without an address it is closed. What it spends
// on one client is bounded.
package wyoming

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/language"
	"perch/limit"
	"perch/voice"
	wire "perch/voice/wyoming"
)

// mind is the agent: it answers text.
type mind interface {
	// Answer has a turn answered through out, in order.
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	// Remembered adds to a conversation what was written and answered.
	Remembered(conversation string, e agent.Exchange, now time.Time)
}

// Options are what a Server is made of. One of Mind, Recognizer and
// English returns those of some languages that are English, as a recognizer may know no other.
func English(tags []string) (english []string) {
	for _, tag := range tags {
		if known, _ := language.Match(tag); known == language.English {
			english = append(english, tag)
		}
	}
	return english
}

// Synthesizer is enough; what is nil is not offered.
type Options struct {
	Listen      []net.Listener // TCP; the server closes them
	Mind        mind
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Hold        func() (done func()) // keeps these open until done is called; nil is for those that nobody closes

	// Languages are those that are offered, BCP 47, the first for requests that name
	// none; "en" where empty. Heard are those of the recognizer, where it does not know
	// all of them.
	Languages, Heard []string
	Zone             *time.Location // the owner's; UTC where nil

	Phrases agent.Phrases // what is answered where the agent does not
	Name    string        // the services', as Home Assistant shows them; "Perch" where empty
	ID      string        // of this appliance
	Version string
	Log     *slog.Logger
}

// Limits of all clients together.
const (
	mostConns     = 32 // connections
	mostOfPeer    = 8  // of them from one address
	mostSyntheses = 2  // sentences being synthesized

	// The embedded recognizer takes two utterances at once, and the robots come
	// first. Utterances that wait are kept.
	mostUtterances = 1
	acceptPause    = 50 * time.Millisecond
)

// Server serves clients. Its methods are safe for concurrent use.
type Server struct {
	listen []net.Listener
	log    *slog.Logger

	recognizers, synthesizers, turns slots

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	limit *httpserver.ConnectionLimit

	mu      sync.Mutex
	service *service // of the next connection
	closed  bool
	serving sync.WaitGroup // connections
}

// service is what is served.
type service struct {
	o    Options
	info wire.Event // that answers describe
}

// slots are for as many as may do something at once.
type slots chan struct{}

// acquire waits for a slot. release gives it back.
func (s slots) acquire(ctx context.Context) (release func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// languageTag is what a language of BCP 47 looks like.
var languageTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,4}$`) })

// New returns a server that accepts no connection before Run.
func New(o Options) (*Server, error) {
	s := &Server{
		listen: o.Listen, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), limit: httpserver.NewConnectionLimit(mostConns, mostOfPeer),
		recognizers: make(slots, mostUtterances), synthesizers: make(slots, mostSyntheses), turns: make(slots, limit.Turns),
	}
	if err := s.Apply(o); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Apply changes what is served to connections to come, but not where. Hold of the options
// before is not called any more once it returns.
func (s *Server) Apply(o Options) error {
	next, err := newService(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service = next
	return nil
}

func newService(o Options) (*service, error) {
	if o.Mind == nil && o.Recognizer == nil && o.Synthesizer == nil {
		return nil, errors.New("a Wyoming server needs a recognizer, a synthesizer or an agent to serve")
	}
	if len(o.Languages) == 0 {
		o.Languages = []string{"en"}
	}
	if len(o.Heard) == 0 {
		o.Heard = o.Languages
	}
	for _, tag := range slices.Concat(o.Languages, o.Heard) {
		if !languageTag().MatchString(tag) {
			return nil, fmt.Errorf("%q is no language; one is written as en or en-GB", tag)
		}
	}
	o.Zone = cmp.Or(o.Zone, time.UTC)
	o.Name = cmp.Or(o.Name, "Perch")
	if o.Hold == nil {
		o.Hold = func() func() { return func() {} }
	}
	info, err := describe(o)
	return &service{o, info}, err
}

// Run serves until ctx ends or the server is closed, and returns when every
// connection is closed.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	stop := context.AfterFunc(ctx, s.shut)
	defer stop()
	failed := make(chan error, len(s.listen))
	for _, l := range s.listen {
		go func() {
			err := s.accept(l)
			if err != nil {
				s.shut()
			}
			failed <- err
		}()
	}
	var errs []error
	for range s.listen {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

// Close ends every connection, cancels what is done for them, and waits for
// it. It may be called more than once.
func (s *Server) Close() {
	s.shut()
	s.serving.Wait()
}

func (s *Server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.cancel()
	for _, l := range s.listen {
		_ = l.Close() // nothing is lost with it
	}
}

// accept accepts connections. Where the system has no room for another, it waits.
func (s *Server) accept(l net.Listener) error {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			s.admit(conn)
		case s.ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept Wyoming connections at %s: %w", l.Addr(), err)
		default:
			s.log.Warn("a Wyoming connection was not accepted", "err", err)
			pause := time.NewTimer(acceptPause)
			select {
			case <-pause.C:
			case <-s.ctx.Done():
				pause.Stop()
			}
		}
	}
}

// admit serves a connection, or closes it where there are too many.
func (s *Server) admit(conn net.Conn) {
	peer := httpserver.PeerOf(conn.RemoteAddr().String())
	service, release, err := s.addConnection(peer)
	v := newConnection(s, service, conn)
	if err != nil {
		// A new connection's buffer takes a sentence at once.
		v.writeWithin = 100 * time.Millisecond
		_ = v.send(wire.TypeError, wire.Failure{Text: "There are too many connections; try again later.", Code: codeBusy}, nil)
		_ = conn.Close()
		s.log.Debug("a Wyoming connection was refused: too many are open", "address", peer)
		return
	}
	go func() {
		defer s.serving.Done()
		defer release()
		v.run(s.ctx)
	}()
}

// addConnection counts a connection, unless the server is closed.
func (s *Server) addConnection(peer netip.Addr) (serves *service, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, net.ErrClosed
	}
	leave, err := s.limit.Acquire(peer)
	if err != nil {
		return nil, nil, err
	}
	s.serving.Add(1)
	done := s.service.o.Hold()
	return s.service, func() {
		done()
		leave()
	}, nil
}
