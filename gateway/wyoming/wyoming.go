// Package wyoming is a server of the Wyoming protocol, which Home Assistant and other clients use to reach the appliance's speech
// recognition (asr), speech synthesis (tts), and agent (handle).
//
// The protocol has no authentication and no encryption. Every client that can reach the server can use the recognizer and the
// synthesizer, and can have conversations with the agent. Such a conversation has no robot: the agent cannot move anything, and
// requests for consent are denied. The server is off unless the owner configures an address. It limits the resources that
// clients can use.
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

// mind is the agent, which replies to texts.
type mind interface {
	// Answer passes the parts of the reply to a turn to out, in order.
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	// AddExchange adds an exchange to a conversation.
	AddExchange(conversation string, e agent.Exchange, now time.Time)
}

// English returns the tags that are variants of English, for a recognizer that supports only English.
func English(tags []string) (english []string) {
	for _, tag := range tags {
		if known, _ := language.Match(tag); known == language.English {
			english = append(english, tag)
		}
	}
	return english
}

// Model is a model or a voice that a server offers. Its languages are BCP 47 tags; there is at least one.
type Model[E any] struct {
	wire.Model
	Engine E
}

// Handler handles an event of a type that the protocol does not have. It responds by calling send. An error ends the connection.
type Handler func(ctx context.Context, e wire.Event, send func(name string, data any) error) error

// Options configures a Server. A mind, a recognizer, a synthesizer or Local is required; a service without an option is not offered.
// Listen, Hold and Log are always required, and Zone and Phrases with a mind.
type Options struct {
	Listen      net.Listener // TCP; closed by the server
	Mind        mind
	Recognizer  voice.Recognizer
	Synthesizer voice.Synthesizer
	// Recognizers and Synthesizers, if not empty, are offered instead of Recognizer and Synthesizer: a server may have
	// several models or voices. A client names one, or gets the first for its language.
	Recognizers  []Model[voice.Recognizer]
	Synthesizers []Model[voice.Synthesizer]
	// Judge tells whether a person has finished, to clients that know Perch's own event for it; nil means that it is not offered.
	Judge voice.EndJudge

	// Local holds handlers of further events by their types, for programs on this machine only: the protocol has no password, and
	// the handlers may change this machine. The context of a handler ends when the client disconnects.
	Local map[string]Handler

	Hold func() (done func()) // keeps the engines open until done is called; called for each connection

	// Languages are the offered languages as BCP 47 tags; "en" if empty. The first one is used for requests without a
	// language. RecognizerLanguages are the languages of the recognizer; if empty, they are the same as Languages.
	Languages, RecognizerLanguages []string
	Zone                           *time.Location // time zone of the owner

	Phrases agent.Phrases // sentences for a text without a reply, for example because the agent has failed
	Name    string        // name of the services in Home Assistant
	ID      string        // ID of the appliance
	Version string        // version of Perch
	Log     *slog.Logger
}

// Limits of the server, each for all clients together unless its comment says otherwise.
const (
	maxConns        = 32                    // connections
	maxConnsPerPeer = 8                     // connections from one address
	maxSyntheses    = 2                     // sentences that are synthesized at the same time
	maxUtterances   = 1                     // utterances that are recognized at the same time; the embedded recognizer can recognize two, and one is reserved for robots
	acceptPause     = 50 * time.Millisecond // pause after an error of Accept
)

// Server serves clients. It is safe for concurrent use.
type Server struct {
	listen net.Listener
	log    *slog.Logger

	recognizers, synthesizers, turns slots // the limits of all clients together

	ctx    context.Context // canceled by Close
	cancel context.CancelFunc

	limit *httpserver.ConnectionLimit

	mu      sync.Mutex
	service *service // used by new connections
	closed  bool
	serving sync.WaitGroup // the goroutines of connections
}

// service is the configuration of a connection.
type service struct {
	o    Options
	info wire.Event // the response to a describe event
}

// slots limits how many calls run at the same time. It holds a value for each running call.
type slots chan struct{}

// run waits for a slot, and then calls do with a time limit. It returns the error of do or of ctx.
func (s slots) run(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
	case <-ctx.Done():
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(limited)
}

// languageTag returns an expression that matches a BCP 47 tag, also with underscores instead of hyphens.
var languageTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,4}$`) })

// New returns a server, which accepts connections when Run is called. It returns an error for invalid options.
func New(o Options) (*Server, error) {
	s := &Server{
		listen: o.Listen, log: o.Log, limit: httpserver.NewConnectionLimit(maxConns, maxConnsPerPeer),
		recognizers: make(slots, maxUtterances), synthesizers: make(slots, maxSyntheses), turns: make(slots, limit.Turns),
	}
	if err := s.Apply(o); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Apply changes the options of new connections, except Listen and Log. The previous Hold is not called after Apply has
// returned.
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

// newService checks the options and returns the service.
func newService(o Options) (*service, error) {
	if len(o.Languages) == 0 {
		o.Languages = []string{"en"}
	}
	if len(o.RecognizerLanguages) == 0 {
		o.RecognizerLanguages = o.Languages
	}
	o.Recognizers, o.Synthesizers = recognizers(o), synthesizers(o)
	if o.Mind == nil && len(o.Recognizers)+len(o.Synthesizers)+len(o.Local) == 0 {
		return nil, errors.New("a Wyoming server needs a recognizer, a synthesizer or an agent to serve")
	}
	for _, tag := range slices.Concat(o.Languages, languages(o.Recognizers), languages(o.Synthesizers)) {
		if !languageTag().MatchString(tag) {
			return nil, fmt.Errorf("%q is not a language tag such as en or en-GB", tag)
		}
	}
	info, err := describe(o)
	return &service{o, info}, err
}

// Run accepts connections until ctx ends or Close is called. It returns when all connections are closed. It returns an
// error if the listener was closed by other code.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	stop := context.AfterFunc(ctx, s.shut)
	defer stop()
	return s.accept()
}

// Close closes all connections, cancels their requests, and waits until they have ended. It may be called more than once.
func (s *Server) Close() {
	s.shut()
	s.serving.Wait()
}

// shut stops accepting and cancels all connections. It does not wait.
func (s *Server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.cancel()
	_ = s.listen.Close() // an error has no consequence
}

// accept accepts connections until the server is closed. It pauses after a temporary error, such as too many open files.
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

// admit starts to serve a connection. If there are too many connections, or the server is closed, it sends an error with
// codeBusy and closes the connection.
func (s *Server) admit(conn net.Conn) {
	peer := httpserver.PeerOf(conn.RemoteAddr().String())
	service, release, err := s.addConnection(peer)
	c := newConnection(s, service, conn)
	if err != nil {
		c.writeTimeout = 100 * time.Millisecond // short, because the buffer of a new connection has room
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

// addConnection registers a connection. It returns an error if the server is closed or there are too many connections.
func (s *Server) addConnection(peer netip.Addr) (current *service, release func(), err error) {
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
