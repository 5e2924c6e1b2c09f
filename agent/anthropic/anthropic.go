// Package anthropic implements thinker.Model with Anthropic's Messages API and the official
// SDK. The server is Anthropic's, or a proxy with the same API.
//
// The key and the address come from the options, never from the environment. The SDK's
// telemetry is off. The SDK retries a request at most once, and reads a limited number of
// bytes.
//
// If a reasoning model calls tools, the next request must repeat the model's message with
// the thinking, word for word, and must not change anything before this message. The engine
// therefore stores such a message in the field Origin of the message's first call, and
// sends it in place of the calls. Thinking is never spoken.
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

// Home is the address of Anthropic's own server, the default.
const Home = "https://api.anthropic.com"

// Options are the options of an Engine. Model is required. Key is required unless URL is
// the address of a proxy.
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

	// FirstWithin is the maximum wait for the first byte of a response, including the SDK's
	// retry.
	FirstWithin time.Duration `yaml:"within" doc:"The longest time until the answer begins. If 0s, 10s, and 30s for the last brain of the list."`
	IdleWithin  time.Duration // maximum pause between two events of a message, pings included; 0 means remote.Patience
	Log         *slog.Logger  // nil for no log
	// Transport carries the requests; nil means remote.NewTransport().
	Transport http.RoundTripper
}

// Driver declares the kind of model anthropic.
func Driver() thinker.ModelDriver {
	return driver.Of(thinker.ModelDriver{Kind: "anthropic", Runs: []string{"Anthropic, or a proxy of it"},
		Summary: "Claude, a language model of Anthropic, a cloud; you need an account there.", Billed: true,
		Sample: `{kind: anthropic, model: claude-haiku-4-5, key_file: /etc/perch/secrets/brain, url: ""}    # url is a proxy's`},
		Options.withSetup, func(o Options) (thinker.Model, error) { return New(o) })
}

// withSetup returns the options with the defaults of a model's setup, and with the key.
func (o Options) withSetup(s thinker.ModelSetup) (_ Options, err error) {
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
	// The SDK's whole client would add 1 MB to the program, so only two of its services are used.
	messages sdk.MessageService
	models   sdk.ModelService
	extra    []option.RequestOption // Options.Extra

	mu       sync.Mutex
	rejected rejections // options that are no longer sent
}

// Defaults and limits.
const (
	defaultFirstWithin = 30 * time.Second
	defaultMaxTokens   = 4096
	maxTemperature     = 1
)

// New returns an engine. It sends no request.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	base, _ := parseBase(o.URL) // valid, since Check has parsed it
	o.FirstWithin = cmp.Or(o.FirstWithin, defaultFirstWithin)
	o.IdleWithin = cmp.Or(o.IdleWithin, remote.Patience)
	o.MaxTokens = cmp.Or(o.MaxTokens, defaultMaxTokens)
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

// parseBase parses the address of the API and removes a trailing /v1. An empty text means Home.
func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimSpace(cmp.Or(text, Home)))
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("url is not the address of a server; leave it out for " + Home)
	case base.User != nil || base.RawQuery != "":
		return nil, errors.New("url holds a password or a query; put the key into key or key_file")
	}
	base.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/v1"), "/")
	base.RawPath, base.Fragment = "", ""
	return base, nil
}

// Check returns an error if an option is missing or invalid.
func (o Options) Check() error {
	base, err := parseBase(o.URL)
	switch {
	case err != nil:
		return err
	case o.Model == "":
		return errors.New("model is missing; an example is claude-haiku-4-5")
	case o.Key == "" && remote.Address(base) == Home:
		return errors.New("the key is missing (brains[..].key); Anthropic requires one")
	case strings.ContainsAny(o.Key, "\r\n"):
		return errors.New("the key (brains[..].key) has more than one line")
	case o.Temperature != nil && (*o.Temperature < 0 || *o.Temperature > maxTemperature):
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

// Where returns the model and the server's address, such as "m at https://api.anthropic.com".
func (e *Engine) Where() string {
	base, _ := url.Parse(strings.TrimSpace(cmp.Or(e.o.URL, Home))) // valid, since New has parsed it
	return e.o.Model + " at " + remote.Address(base)
}

// Name returns "anthropic".
func (*Engine) Name() string { return "anthropic" }

// Close closes idle connections.
func (e *Engine) Close() error {
	e.http.CloseIdleConnections()
	return nil
}

// Continue implements thinker.Model. If the model rejects an option or the thinking in the
// prompt, Continue repeats the request without the rejected part, unless text was already
// passed to out. It makes at most limit.Tries attempts.
func (e *Engine) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	for try := 1; ; try++ {
		e.mu.Lock()
		without := e.rejected
		e.mu.Unlock()
		r := &response{out: out}
		stop, err := e.sendRequest(ctx, p, without, r)
		switch {
		case err == nil || r.outError != nil:
			return stop, r.outError
		case try < limit.Tries && ctx.Err() == nil && r.textBytes == 0 && e.learnRejection(err, p, without):
		default:
			return "", e.explain(ctx, err)
		}
	}
}
