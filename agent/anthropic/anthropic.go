// Package anthropic drives the models of Anthropic's Messages API with its official
// SDK, at Anthropic or behind a proxy with the same API.
//
// Nothing is read from the environment: the key and the address are those of the
// options. The SDK's telemetry is off, it retries a request at most once, and its
// transport bounds what is read.
//
// A reasoning model expects its thinking to be returned with the calls that it led to,
// verbatim, and with everything before it unchanged. Such a message is the Origin of its
// first call, and replaces the calls when they are sent back. Thinking is never spoken.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"perch/agent"
	"perch/agent/thinker"
	"perch/driver"
	"perch/limit"
	"perch/remote"
	"perch/secret"
)

// Home is the default address of the API.
const Home = "https://api.anthropic.com"

// Options of the engine. Model is required, and so is a key unless URL is a proxy's.
type Options struct {
	URL         string         `yaml:"url" doc:"A proxy's base address, with or without its /v1. If empty, Anthropic's own."`
	Model       string         `yaml:"model" doc:"The name of the model."`
	Key         string         `yaml:"key" doc:"The API key."` // sent as x-api-key
	KeyFile     string         `yaml:"key_file" doc:"A file that holds the key."`
	Vision      bool           `yaml:"vision" doc:"The model can look at pictures."`
	Temperature *float64       `yaml:"temperature" doc:"0 to 1; newer models take none. If left out, the model's choice."`
	MaxTokens   int            `yaml:"max_tokens" doc:"The longest message, reasoning included. If 0, 4096."`
	Effort      string         `yaml:"reasoning_effort" doc:"low to max. If empty, the model's choice."`
	Extra       map[string]any `yaml:"extra" doc:"Keys that are added to each request."`

	// FirstWithin includes the SDK's retry.
	FirstWithin time.Duration `yaml:"within" doc:"The longest time until the answer begins. If 0s, 10s, and 30s for the last brain of the list."`
	IdleWithin  time.Duration // between pieces, pings included; 0 is remote.Patience
	Log         *slog.Logger  // nil: nothing is logged
	// Transport carries the requests; nil means a transport that the engine makes.
	Transport http.RoundTripper
}

// Driver declares the model anthropic.
func Driver() thinker.ModelDriver {
	return driver.Of(thinker.ModelDriver{Kind: "anthropic", Runs: []string{"Anthropic, or a proxy of it"},
		Sample: `{kind: anthropic, model: claude-haiku-4-5, key_file: /etc/perch/secrets/brain, url: ""}    # url is a proxy's`},
		Options.with, func(o Options) (thinker.Model, error) { return New(o) })
}

func (o Options) with(s thinker.ModelSetup) (_ Options, err error) {
	o.Model, o.Temperature = cmp.Or(strings.TrimSpace(o.Model), s.Brain.Model), cmp.Or(o.Temperature, s.Brain.Temperature)
	o.MaxTokens, o.FirstWithin = cmp.Or(o.MaxTokens, s.Brain.MaxTokens), cmp.Or(o.FirstWithin, s.Within)
	o.IdleWithin, o.Log = o.FirstWithin, s.Log
	o.Key, err = secret.Read("key", o.Key, o.KeyFile)
	return o, err
}

// Engine implements thinker.Model and agent.Seer. It is safe for concurrent use.
type Engine struct {
	o      Options
	base   *url.URL
	http   *http.Client
	server remote.Server
	// Only these two services of the SDK's client: the whole adds 1 MB to the program.
	messages sdk.MessageService
	models   sdk.ModelService
	extra    []option.RequestOption

	mu       sync.Mutex
	rejected rejections
}

// Defaults and limits.
const (
	defaultFirst  = 30 * time.Second
	defaultTokens = 4096
	highest       = 1 // temperature
)

// New returns the engine. It sends no request.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	base, _ := parseBase(o.URL) // checked
	o.FirstWithin = cmp.Or(o.FirstWithin, defaultFirst)
	o.IdleWithin = cmp.Or(o.IdleWithin, remote.Patience)
	o.MaxTokens = cmp.Or(o.MaxTokens, defaultTokens)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Transport == nil {
		o.Transport = remote.NewTransport()
	}
	e := &Engine{o: o, base: base, http: remote.NewHTTP(&transport{o.Transport}), server: remote.Server{
		Address: remote.Address(base), Key: o.Key, Setting: "brains[..].key", Check: "the brain's settings", Kind: agent.ErrAway}}
	settings := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(),
		option.WithBaseURL(base.String()), option.WithHTTPClient(e.http), option.WithMaxRetries(1),
	}
	if o.Key != "" {
		settings = append(settings, option.WithAPIKey(o.Key))
	}
	e.messages, e.models = sdk.NewMessageService(settings...), sdk.NewModelService(settings...)
	for key, value := range o.Extra {
		e.extra = append(e.extra, option.WithJSONSet(key, value))
	}
	return e, nil
}

func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimSpace(cmp.Or(text, Home)))
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("url is no address of a server; leave it out for " + Home)
	case base.User != nil || base.RawQuery != "":
		return nil, errors.New("url holds a password or a query; put the key into key or key_file")
	}
	base.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/v1"), "/")
	base.RawPath, base.Fragment = "", ""
	return base, nil
}

// Check returns what New would refuse.
func (o Options) Check() error {
	base, err := parseBase(o.URL)
	switch {
	case err != nil:
		return err
	case o.Model == "":
		return errors.New("model is missing; claude-haiku-5-5, say")
	case o.Key == "" && remote.Address(base) == Home:
		return errors.New("the key is missing (brains[..].key); Anthropic gives none away")
	case strings.ContainsAny(o.Key, "\r\n"):
		return errors.New("the key (brains[..].key) has more than one line")
	case o.Temperature != nil && (*o.Temperature < 0 || *o.Temperature > highest):
		return fmt.Errorf("temperature is 0 to 1, not %g", *o.Temperature)
	case o.MaxTokens < 0:
		return errors.New("max_tokens is not negative")
	case o.FirstWithin < 0 || o.IdleWithin < 0:
		return errors.New("a deadline is not negative")
	}
	for key := range o.Extra {
		switch key {
		case "model", "messages", "system", "tools", "stream":
			return fmt.Errorf("extra may not hold %q, which is set for each request", key)
		}
		if strings.ContainsAny(key, `.*?|#@\:`) {
			return fmt.Errorf("extra holds %q, which is no name of a field", key)
		}
	}
	return nil
}

// Where returns the model and the server.
func (e *Engine) Where() string {
	base, _ := url.Parse(strings.TrimSpace(cmp.Or(e.o.URL, Home))) // checked by New
	return e.o.Model + " at " + remote.Address(base)
}

// Name is "anthropic".
func (*Engine) Name() string { return "anthropic" }

// Close closes idle connections.
func (e *Engine) Close() error {
	e.http.CloseIdleConnections()
	return nil
}

// Continue implements thinker.Model.
func (e *Engine) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	for try := 1; ; try++ {
		e.mu.Lock()
		without := e.rejected
		e.mu.Unlock()
		a := &answer{out: out}
		stop, err := e.once(ctx, p, without, a)
		switch {
		case err == nil || a.outError != nil:
			return stop, a.outError
		case try < limit.Tries && ctx.Err() == nil && a.spoken == 0 && e.learn(err, p, without):
		default:
			return "", e.explain(ctx, err)
		}
	}
}
