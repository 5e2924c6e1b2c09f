// Package assist answers turns with a conversation agent of Home Assistant: a language model
// or the built-in sentences, with access to the devices of the home.
//
// A turn runs the intent stage of an Assist pipeline over a WebSocket, so that the first
// sentence of an answer can be spoken before the answer is complete. All turns, which may
// run concurrently, use the same connection: opening a connection for each turn would cost a
// .local look-up and several round trips, after the person has finished speaking. A
// connection that was idle for a while is pinged before it is used. If a connection fails
// during a turn, the command is not sent again, because Home Assistant may have carried it
// out. Optionally, a turn uses Home Assistant's REST API instead.
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

// Options are the options of a brain. URL and Token are required.
type Options struct {
	URL       string `yaml:"url" doc:"Home Assistant's address, such as http://homeassistant.local:8123."`
	Token     string `yaml:"token" doc:"A long-lived access token."`
	TokenFile string `yaml:"token_file" doc:"A file that holds the token."`
	Pipeline  string `yaml:"pipeline" doc:"The id of an Assist pipeline. If empty, the preferred one."`
	Agent     string `yaml:"agent" doc:"A conversation agent instead of the pipeline's, such as conversation.home_assistant."`
	// REST is for proxies that do not pass WebSockets.
	REST bool `yaml:"rest" doc:"Uses the REST API, which returns the answer in one piece."`

	ConnectWithin time.Duration // timeout of connecting; default: 5 s
	// FirstWithin is the timeout of the first event of an answer; with REST, of the whole
	// answer. Default: 30 s.
	FirstWithin time.Duration `yaml:"within" doc:"The longest time until the answer begins. If 0s, 10s, and 30s for the last brain of the list."`
	IdleWithin  time.Duration // maximum pause within an answer; default: remote.Patience
	TurnWithin  time.Duration // maximum waiting time for Home Assistant in a turn; default: 5 minutes
	// Perform performs the skill that has a sentence matching the text of the turn; Home Assistant does not know these
	// sentences. found is false if no skill has such a sentence. Perform may be nil.
	Perform func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) (found bool, err error)
	Phrases agent.Phrases // the phrase "cut_off" is spoken after an answer that was stopped

	// QuietFor is how long the connection may have been idle to be used without a ping;
	// default: 20 s.
	QuietFor time.Duration

	Now func() time.Time // default: time.Now
}

// Setup holds what a brain needs besides its settings in the configuration.
type Setup struct {
	Within  time.Duration                                                                                // default of Options.FirstWithin
	Perform func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) (found bool, err error) // see Options.Perform
	Phrases agent.Phrases
}

// Driver declares the brain assist.
func Driver() driver.Driver[Setup, agent.Brain] {
	return driver.Of(driver.Driver[Setup, agent.Brain]{Kind: "assist", Runs: []string{"Home Assistant"},
		Summary: "Your Home Assistant answers, and does what you say with the devices it knows.",
		Sample:  `{kind: assist, url: "http://homeassistant.local:8123", token: "", token_file: /etc/perch/secrets/home-assistant, pipeline: "", agent: "", rest: false}`},
		Options.withSetup, func(o Options) (agent.Brain, error) { return New(o) })
}

// withSetup returns o with the setup, and with the token from the token file or from Home
// Assistant's supervisor.
func (o Options) withSetup(s Setup) (_ Options, err error) {
	o.FirstWithin, o.Perform, o.Phrases = cmp.Or(o.FirstWithin, s.Within), s.Perform, s.Phrases
	o.Token, err = supervisor.HomeToken(o.URL, o.Token, o.TokenFile)
	return o, err
}

// SetHome sets the URL unless the configuration has set it.
func (o *Options) SetHome(url string) { o.URL = cmp.Or(o.URL, url) }

// Brain implements agent.Brain. It is safe for concurrent use.
type Brain struct {
	o             Options
	client        *hass.Client
	conversations *conversations

	connecting chan struct{} // lock for getConn, of capacity 1: holds an element while getConn runs
	mu         sync.Mutex
	closed     bool       // whether Close was called
	conn       *hass.Conn // latest connection, which may have ended; nil before the first
}

// New returns a brain with the options o, or an error if they are invalid. The first turn or
// Check connects.
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
	return &Brain{o: o, client: client, conversations: &conversations{now: o.Now, byID: map[string]conversation{}}, connecting: make(chan struct{}, 1)}, nil
}

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	for _, name := range []string{o.Pipeline, o.Agent} {
		if len(name) > limit.Name {
			return fmt.Errorf("the name of a pipeline or an agent has at most %d bytes", limit.Name)
		}
	}
	switch {
	case o.Pipeline != "" && o.Agent != "":
		return errors.New("set either pipeline or agent; a pipeline has an agent")
	case o.Pipeline != "" && o.REST:
		return errors.New("rest does not support pipelines; set agent, or leave rest out")
	case o.Agent != "" && !o.REST && !isEntity(o.Agent):
		return errors.New("agent must be like conversation.home_assistant; for an id of another kind set rest as well")
	}
	if min(o.ConnectWithin, o.FirstWithin, o.IdleWithin, o.QuietFor, o.TurnWithin) < 0 {
		return errors.New("a deadline cannot be negative")
	}
	return hass.Options{URL: o.URL, Token: o.Token}.Check()
}

// isEntity reports whether id, the ID of a conversation agent, is the ID of an entity of
// Home Assistant. Only such an ID can take the place of a pipeline's ID.
func isEntity(id string) bool { return strings.HasPrefix(id, "conversation.") }

// Name returns "assist".
func (*Brain) Name() string { return "assist" }

// Forget makes the next turn of a conversation start a new conversation in Home Assistant.
func (b *Brain) Forget(conversation string) { b.conversations.forget(conversation) }

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

// Check returns an error of one sentence unless Home Assistant can be reached, accepts the
// token, and has the pipeline or agent. With REST, it does not check an agent that is not an
// entity. The next turn uses the same connection.
func (b *Brain) Check(ctx context.Context) error {
	if err := b.check(ctx); err != nil {
		return awayError(ctx, err)
	}
	return nil
}

// check is Check without the conversion of the error.
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
	conn, err := b.getConn(ctx)
	if err != nil {
		return err
	}
	_, err = conn.Pipeline(ctx, b.o.ConnectWithin, b.pipeline())
	return err
}

// pipeline returns the ID of the agent or pipeline to run; "" means the preferred pipeline.
func (b *Brain) pipeline() string { return cmp.Or(b.o.Agent, b.o.Pipeline) }

// awayError returns the error of ctx if ctx has ended, and otherwise err wrapped in
// agent.ErrAway, so that the next brain is asked.
func awayError(ctx context.Context, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return fmt.Errorf("%w: %w", agent.ErrAway, err)
}

// pingTimeout is the timeout of a ping of an idle connection.
const pingTimeout = time.Second

// getConn returns the current connection if it works, or a new one.
func (b *Brain) getConn(ctx context.Context) (*hass.Conn, error) {
	select {
	case b.connecting <- struct{}{}:
		defer func() { <-b.connecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn != nil {
		if conn.Err() == nil && (conn.Quiet() < b.o.QuietFor || conn.Ping(ctx, min(pingTimeout, b.o.ConnectWithin)) == nil) {
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
