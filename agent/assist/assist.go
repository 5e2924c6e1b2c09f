// Package assist answers turns with Home Assistant's conversation agent, as an Assist
// pipeline is set up with it: a language model or the built-in sentences, with access
// to the whole home.
//
// A turn is one run of the pipeline's intent stage over the WebSocket, so that an
// answer is spoken from its first sentence on. One connection is reused for all turns,
// which may run concurrently on it: a new connection costs a .local look-up, TCP,
// perhaps TLS, an upgrade and a login, all after the person has finished speaking. A
// connection that was quiet for a while is pinged first, because a command must never
// be given twice: nothing that may have arrived is sent again.
package assist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/driver"
	"perch/limit"
	"perch/remote"
	"perch/remote/hass"
	"perch/remote/supervisor"
)

// Options of the brain. URL and Token are required. Zero values mean the defaults given.
type Options struct {
	URL       string `yaml:"url" doc:"Home Assistant's address, such as http://homeassistant.local:8123."`
	Token     string `yaml:"token" doc:"A long-lived access token."`
	TokenFile string `yaml:"token_file" doc:"A file that holds the token."`
	Pipeline  string `yaml:"pipeline" doc:"The id of an Assist pipeline. If empty, the preferred one."`
	Agent     string `yaml:"agent" doc:"A conversation agent instead of the pipeline's, such as conversation.home_assistant."`
	// REST is for proxies that do not pass WebSockets.
	REST bool `yaml:"rest" doc:"Uses the REST API, which returns the answer in one piece."`

	ConnectWithin time.Duration // for a connection; 5 s
	// FirstWithin bounds the whole answer with REST. 0 means 30 s.
	FirstWithin time.Duration `yaml:"within" doc:"The longest time until the answer begins. If 0s, 10s, and 30s for the last brain of the list."`
	IdleWithin  time.Duration // for silence within an answer; remote.Patience
	TurnWithin  time.Duration // for the whole answer, without the time for listening; 5 minutes
	Phrases     agent.Phrases // said if an answer does not end

	// QuietFor is how long a connection may have been silent and still be used without
	// a ping; 20 s.
	QuietFor time.Duration

	Now func() time.Time // time.Now
}

// Setup is what the driver needs besides the keys.
type Setup struct {
	Within  time.Duration // the default of FirstWithin
	Phrases agent.Phrases
}

// Driver declares the brain assist.
func Driver() driver.Driver[Setup, agent.Brain] {
	return driver.Of(driver.Driver[Setup, agent.Brain]{Kind: "assist", Runs: []string{"Home Assistant"},
		Sample: `{kind: assist, url: "http://homeassistant.local:8123", token: "", token_file: /etc/perch/secrets/home-assistant, pipeline: "", agent: "", rest: false}`},
		Options.with, func(o Options) (agent.Brain, error) { return New(o) })
}

func (o Options) with(s Setup) (_ Options, err error) {
	o.FirstWithin, o.Phrases = cmp.Or(o.FirstWithin, s.Within), s.Phrases
	o.Token, err = supervisor.HomeToken(o.URL, o.Token, o.TokenFile)
	return o, err
}

// SetHome sets the default address of Home Assistant.
func (o *Options) SetHome(url string) { o.URL = cmp.Or(o.URL, url) }

// Brain implements agent.Brain. It is safe for concurrent use.
type Brain struct {
	o      Options
	client *hass.Client
	talks  *talks

	dialling chan struct{} // a lock that can be awaited with a context
	mu       sync.Mutex
	closed   bool
	conn     *hass.Conn // reused; may have ended
}

// New checks the options and returns the brain. It opens no connection.
func New(o Options) (*Brain, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	for d, standard := range map[*time.Duration]time.Duration{
		&o.ConnectWithin: 5 * time.Second, &o.FirstWithin: 30 * time.Second, &o.IdleWithin: remote.Patience,
		&o.QuietFor: 20 * time.Second, &o.TurnWithin: 5 * time.Minute,
	} {
		*d = cmp.Or(*d, standard)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	client, err := hass.New(hass.Options{URL: o.URL, Token: o.Token, ConnectWithin: o.ConnectWithin})
	if err != nil {
		return nil, err
	}
	return &Brain{o: o, client: client, talks: &talks{now: o.Now, byConversation: map[string]talk{}}, dialling: make(chan struct{}, 1)}, nil
}

// Check returns what New would refuse.
func (o Options) Check() error {
	for _, name := range []string{o.Pipeline, o.Agent} {
		if len(name) > limit.Name {
			return fmt.Errorf("the name of a pipeline or an agent has at most %d bytes", limit.Name)
		}
	}
	switch {
	case o.Pipeline != "" && o.Agent != "":
		return errors.New("pipeline and agent are two answers to one question; a pipeline has its agent")
	case o.Pipeline != "" && o.REST:
		return errors.New("with rest there is no pipeline; set agent, or leave rest out")
	case o.Agent != "" && !o.REST && !isEntity(o.Agent):
		return errors.New("an agent is like conversation.home_assistant; for the id of another kind set rest as well")
	}
	if min(o.ConnectWithin, o.FirstWithin, o.IdleWithin, o.QuietFor, o.TurnWithin) < 0 {
		return errors.New("a deadline cannot be negative")
	}
	return hass.Options{URL: o.URL, Token: o.Token}.Check()
}

// isEntity reports whether an agent is an entity, which can also be the id of a
// pipeline in a run.
func isEntity(name string) bool { return strings.HasPrefix(name, "conversation.") }

// Name is "assist".
func (*Brain) Name() string { return "assist" }

// Forget makes the next turn of a conversation start a new one.
func (b *Brain) Forget(conversation string) { b.talks.forget(conversation) }

// Close cancels running turns and closes the connections.
func (b *Brain) Close() {
	b.client.Close()
	b.mu.Lock()
	b.closed = true
	conn := b.conn
	b.conn = nil
	b.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// Check reports whether Home Assistant is reachable, accepts the token, and has the
// pipeline or the agent. Its error is one sentence. The first turn reuses the
// connection.
func (b *Brain) Check(ctx context.Context) error {
	if err := b.check(ctx); err != nil {
		return asAway(ctx, err)
	}
	return nil
}

func (b *Brain) check(ctx context.Context) error {
	if b.o.REST {
		path := "api/"
		if isEntity(b.o.Agent) {
			path = "api/states/" + b.o.Agent
		}
		err := b.client.Call(ctx, b.o.ConnectWithin, "GET", path, nil, nil)
		if fault, ok := errors.AsType[*hass.Fault](err); ok && fault.Status == 404 && b.o.Agent != "" {
			return b.client.Fault("has no conversation agent " + b.client.Quote(b.o.Agent) + "; check agent")
		}
		return err
	}
	conn, err := b.connection(ctx)
	if err != nil {
		return err
	}
	_, err = conn.Pipeline(ctx, b.o.ConnectWithin, b.pipeline())
	return err
}

// pipeline returns the pipeline or agent for a run.
func (b *Brain) pipeline() string { return cmp.Or(b.o.Agent, b.o.Pipeline) }

// asAway converts err for agent.Mind: to ctx's error if that has ended, and otherwise
// to an agent.ErrAway, so that the next brain answers.
func asAway(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return fmt.Errorf("%w: %w", agent.ErrAway, err)
}

// signWithin bounds the ping of a silent connection.
const signWithin = time.Second

// connection returns the present connection if it is alive, or a new one.
func (b *Brain) connection(ctx context.Context) (*hass.Conn, error) {
	select {
	case b.dialling <- struct{}{}:
		defer func() { <-b.dialling }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn != nil {
		if conn.Err() == nil && (conn.Quiet() < b.o.QuietFor || conn.Ping(ctx, min(signWithin, b.o.ConnectWithin)) == nil) {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		conn.Close()
	}
	conn, err := b.client.Dial(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.conn = conn
	}
	b.mu.Unlock()
	if closed {
		conn.Close()
		return nil, conn.Err()
	}
	return conn, nil
}
