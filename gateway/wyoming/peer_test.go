package wyoming

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/must"
	"perch/voice"
	wire "perch/voice/wyoming"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recognizer is a recognizer that calls a function.
type recognizer func(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error)

func (recognizer) Name() string { return "fake-recognizer" }

func (e recognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	return e(ctx, u, o)
}

// synthesizer is a synthesizer that calls a function.
type synthesizer func(ctx context.Context, text string, o voice.Options, out func([]int16) error) error

func (synthesizer) Name() string { return "fake-synthesizer" }

func (m synthesizer) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	return m(ctx, text, o, out)
}

// judge is a judge of the end of turns that calls a function.
type judge func(ctx context.Context, u *voice.Utterance) (float64, error)

func (j judge) JudgeEnd(ctx context.Context, u *voice.Utterance) (float64, error) { return j(ctx, u) }

// letters speaks a text as a hundred samples for each byte, with the value of the byte.
func letters(ctx context.Context, text string, _ voice.Options, out func([]int16) error) error {
	if err := out(lettersOf(text)); err != nil {
		return err
	}
	return ctx.Err()
}

func lettersOf(text string) (pcm []int16) {
	for _, b := range []byte(text) {
		for range 100 {
			pcm = append(pcm, int16(b))
		}
	}
	return pcm
}

// scriptedAgent is an agent that calls the function think for each turn. It records its turns.
type scriptedAgent struct {
	think func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error

	mu         sync.Mutex
	turns      []agent.Turn
	remembered map[string][]agent.Exchange
}

func (m *scriptedAgent) Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	m.mu.Lock()
	m.turns = append(m.turns, t)
	m.mu.Unlock()
	return m.think(ctx, t, out)
}

func (m *scriptedAgent) AddExchange(conversation string, e agent.Exchange, _ time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.remembered == nil {
		m.remembered = map[string][]agent.Exchange{}
	}
	m.remembered[conversation] = append(m.remembered[conversation], e)
}

// answering returns an agent that answers every turn with the sentences.
func answering(sentences ...string) *scriptedAgent {
	return &scriptedAgent{think: func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		for _, s := range sentences {
			if err := out(agent.Say{Text: s}); err != nil {
				return err
			}
		}
		return out(agent.Done{End: agent.Continue})
	}}
}

// refuses is a recognizer that waits for the end of an utterance and refuses the utterance.
func refuses(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	return voice.Transcript{Refused: true}, u.Wait(ctx)
}

// serve runs a server on a real socket until the test ends.
func serve(t testing.TB, o Options) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	run(t, o, l)
	return l.Addr().String()
}

// newServer returns a server with the options o, and with those that every server needs.
func newServer(t testing.TB, o Options, l net.Listener) *Server {
	t.Helper()
	o.Listen, o.Log, o.Zone = l, slog.New(slog.DiscardHandler), cmp.Or(o.Zone, time.UTC)
	o.Hold = func() func() { return func() {} }
	s, err := New(o)
	must.Succeed(t, err)
	return s
}

func run(t testing.TB, o Options, l net.Listener) *Server {
	t.Helper()
	s := newServer(t, o, l)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != nil {
			t.Errorf("the server ended: %v", err)
		}
		if connections, peers := s.limit.Open(); connections != 0 || peers != 0 {
			t.Errorf("%d connections of %d peers are left", connections, peers)
		}
	})
	return s
}

// client is a client that sends and reads single events or bytes.
type client struct {
	net.Conn
	t testing.TB
	r *wire.Reader
	w *wire.Writer
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(30 * time.Second))
	}
	must.Succeed(t, err)
	return newClient(t, conn)
}

func newClient(t testing.TB, conn net.Conn) *client {
	t.Cleanup(func() { conn.Close() })
	return &client{conn, t, wire.NewReader(conn, wire.Limits{}), wire.NewWriter(conn)}
}

func (g *client) raw(bytes string) {
	g.t.Helper()
	if _, err := io.WriteString(g, bytes); err != nil {
		g.t.Fatal(err)
	}
}

func (g *client) event(name string, data any, payload []byte) {
	g.t.Helper()
	e, err := wire.NewEvent(name, data, payload)
	must.Succeed(g.t, err)
	must.Succeed(g.t, g.w.Write(e))
}

// next returns the next event, which must have the type name.
func (g *client) next(name string) wire.Event {
	g.t.Helper()
	e, err := g.r.Read()
	if err != nil {
		g.t.Fatalf("instead of %s: %v", name, err)
	}
	if e.Type != name {
		g.t.Fatalf("%s %s, want %s", e.Type, e.Data, name)
	}
	e.Payload = append([]byte(nil), e.Payload...)
	return e
}

// expect reads events, which must have these types and data, in order.
func (g *client) expect(typesAndData ...string) {
	g.t.Helper()
	for i := 0; i < len(typesAndData); i += 2 {
		e := g.next(typesAndData[i])
		if got := string(e.Data); got != typesAndData[i+1] {
			g.t.Errorf("%s %s, want %s", e.Type, got, typesAndData[i+1])
		}
	}
}

// refused reads an error event with a code, and then the end of the connection.
func (g *client) refused(code string) {
	g.t.Helper()
	var f wire.Failure
	if err := g.next(wire.TypeError).Decode(&f); err != nil || f.Code != code || f.Text == "" {
		g.t.Errorf("refused with %+v (%v), want %s", f, err, code)
	}
	g.ended()
}

// ended reads the end of the connection.
func (g *client) ended() {
	g.t.Helper()
	if e, err := g.r.Read(); !errors.Is(err, io.EOF) {
		g.t.Errorf("instead of the end: %s %s (%v)", e.Type, e.Data, err)
	}
}

// pipes is a listener with pipes as connections, for tests with virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// from is a pipe with the remote address addr.
type from struct {
	net.Conn
	addr string
}

type name string

func (n name) Network() string { return "tcp" }
func (n name) String() string  { return string(n) }

func (f from) RemoteAddr() net.Addr { return name(f.addr) }

func (p *pipes) dial(t testing.TB, addr string) *client {
	ours, theirs := net.Pipe()
	p.conns <- from{theirs, addr}
	return newClient(t, ours)
}

// piped returns a client that is connected to a new server by a pipe, for tests with virtual time.
func piped(t *testing.T, o Options) *client {
	t.Helper()
	l := newPipes()
	run(t, o, l)
	return l.dial(t, "192.0.2.1:4000")
}
