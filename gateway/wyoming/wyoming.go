// Package wyoming serves Perch over the Wyoming protocol, for Home Assistant
// and other clients: speech recognition (asr), speech synthesis (tts), and a
// conversation agent (handle).
//
// The protocol has neither keys nor encryption. Every client that reaches the server may use
// the recognizer and the synthesizer, and may talk with the agent, but not through a robot:
// nothing moves, and a question that needs consent is answered with no. The owner chooses its
// address, on loopback or in the home network; without one it is off. The resources for one
// client are bounded.
package wyoming

import (
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
	// Answer answers a turn through out, in order.
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	// Remembered adds an exchange to a conversation.
	Remembered(conversation string, e agent.Exchange, now time.Time)
}

// English returns the English ones of some languages, for a recognizer that knows no other.
func English(tags []string) (english []string) {
	for _, tag := range tags {
		if known, _ := language.Match(tag); known == language.English {
			english = append(english, tag)
		}
	}
	return english
}

// Options configure a Server. At least one of Mind, Recognizer and Synthesizer is needed; a nil
// one is not offered.
type Options struct {
	Listen      net.Listener // TCP; the server closes it
	Mind        mind
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	Hold        func() (done func()) // keeps the engines open until done is called

	// Languages are the offered BCP 47 tags, the first for requests without a language; if
	// empty, "en". Heard are those of the recognizer; if empty, Languages.
	Languages, Heard []string
	Zone             *time.Location // the owner's

	Phrases agent.Phrases // the answers if the agent fails
	Name    string        // of the services in Home Assistant
	ID      string        // of this appliance
	Version string
	Log     *slog.Logger
}

// Limits of all clients together.
const (
	mostConns      = 32 // connections
	mostOfPeer     = 8  // connections from one address
	mostSyntheses  = 2  // sentences being synthesized
	mostUtterances = 1  // of the two that the embedded recognizer handles at once: robots have precedence
	acceptPause    = 50 * time.Millisecond
)

// Server serves clients. Its methods are safe for concurrent use.
type Server struct {
	listen net.Listener
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

// service is what a connection is served.
type service struct {
	o    Options
	info wire.Event // the answer to describe
}

// slots bounds how many calls run at the same time.
type slots chan struct{}

// run waits for a slot, and calls do with a time limit.
func (s slots) run(ctx context.Context, most time.Duration, do func(context.Context) error) error {
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
	case <-ctx.Done():
		return ctx.Err()
	}
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return do(within)
}

// languageTag returns the form of a BCP 47 tag.
var languageTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,4}$`) })

// New returns a server that accepts no connection before Run.
func New(o Options) (*Server, error) {
	s := &Server{
		listen: o.Listen, log: o.Log, limit: httpserver.NewConnectionLimit(mostConns, mostOfPeer),
		recognizers: make(slots, mostUtterances), synthesizers: make(slots, mostSyntheses), turns: make(slots, limit.Turns),
	}
	if err := s.Apply(o); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Apply changes the options of later connections, except Listen. After it returns, the previous
// Hold is not called any more.
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
	info, err := describe(o)
	return &service{o, info}, err
}

// Run serves until ctx ends or the server is closed, and returns when all connections are
// closed.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	stop := context.AfterFunc(ctx, s.shut)
	defer stop()
	return s.accept()
}

// Close closes all connections, cancels their work, and waits for its end. It may be called
// more than once.
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
	_ = s.listen.Close() // nothing is lost with it
}

// accept accepts connections. After an error, such as too many open files, it pauses.
func (s *Server) accept() error {
	for {
		conn, err := s.listen.Accept()
		switch {
		case err == nil:
			s.admit(conn)
		case s.ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept Wyoming connections at %s: %w", s.listen.Addr(), err)
		default:
			s.log.Warn("a Wyoming connection was not accepted", "err", err)
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
			}
		}
	}
}

// admit serves a connection, or closes it if there are too many.
func (s *Server) admit(conn net.Conn) {
	peer := httpserver.PeerOf(conn.RemoteAddr().String())
	service, release, err := s.addConnection(peer)
	c := newConnection(s, service, conn)
	if err != nil {
		c.writeWithin = 100 * time.Millisecond // a new connection's buffer has room
		_ = c.send(wire.TypeError, wire.Failure{Text: "There are too many connections; try again later.", Code: codeBusy}, nil)
		_ = conn.Close()
		s.log.Debug("a Wyoming connection was refused: too many are open", "address", peer)
		return
	}
	go func() {
		defer s.serving.Done()
		defer release()
		c.run(s.ctx)
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
