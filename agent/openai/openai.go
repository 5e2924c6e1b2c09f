// Package openai implements thinker.Model with the chat completions API of OpenAI, which
// llama.cpp, LocalAI, vLLM, LM Studio and others also have, and with Ollama's own API.
//
// Ollama has both APIs: /v1/chat/completions, and its own /api/chat, which num_ctx and
// keep_alive require. The package uses Ollama's own API if one of these is set and the
// address looks like Ollama's: it has the port 11434, or "ollama" in the host name.
// Options.Dialect overrides this guess.
//
// An option that the server rejects (tools, a temperature, the old name of a limit) is
// left out of later requests, and logged once; tools are offered again after five minutes.
// Thoughts in a separate field are passed on as thoughts, not as text.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/driver"
	"perch/remote"
	"perch/secret"
)

// maxTemperature is the maximum temperature that the APIs accept.
const maxTemperature = 2

// The dialects.
const (
	DialectOpenAI = "openai" // {url}/chat/completions, server-sent events
	DialectOllama = "ollama" // /api/chat, a line of JSON for each piece
)

// Options are the options of an Engine. URL and Model are required.
type Options struct {
	URL             string   `yaml:"url" doc:"The server's base address, as its manual gives it, with its /v1."`
	Model           string   `yaml:"model" doc:"The name of the model."`
	Key             string   `yaml:"key" doc:"The server's API key, if it wants one."`
	KeyFile         string   `yaml:"key_file" doc:"A file that holds the key."`
	Vision          bool     `yaml:"vision" doc:"The model can look at pictures."`
	Temperature     *float64 `yaml:"temperature" doc:"0 to 2. If left out, the server's choice."`
	MaxTokens       int      `yaml:"max_tokens" doc:"The longest message. If 0, the server's choice."`
	ReasoningEffort string   `yaml:"reasoning_effort" doc:"none, low, medium, ...: for servers that support it."`
	KeepAlive       string   `yaml:"keep_alive" doc:"How long Ollama keeps the model loaded: 10m, or -1 for ever."`
	NumCtx          int      `yaml:"num_ctx" doc:"The length of Ollama's context in tokens."`
	Dialect         string   `yaml:"dialect" doc:"openai or ollama, if the address does not show which it is." oneof:"openai ollama"`
	// Extra must not contain the keys model, messages, tools and stream.
	Extra map[string]any `yaml:"extra" doc:"Keys that are added to each request."`

	FirstWithin time.Duration `yaml:"within" doc:"The longest time until the answer begins. If 0s, 10s, and 30s for the last brain of the list."`
	IdleWithin  time.Duration // maximum time between two pieces of a response; 0 means remote.Patience
	Log         *slog.Logger  // nil means that nothing is logged
	// Transport carries the requests; nil means the result of remote.NewTransport.
	Transport http.RoundTripper
}

// Driver declares the model openai.
func Driver() thinker.ModelDriver {
	return driver.Of(thinker.ModelDriver{Kind: "openai",
		Runs:    []string{"a server with OpenAI's API: speaches, whisper.cpp, kokoro, LocalAI, the cloud", "Ollama, llama.cpp"},
		Summary: "A language model: Ollama or llama.cpp in your home, or a cloud with OpenAI's interface.",
		Sample: `{kind: openai, url: "http://192.168.1.9:11434/v1", model: "qwen3:4b", keep_alive: 10m, num_ctx: 8192}    # Ollama
{kind: openai, url: "https://api.openai.com/v1", model: gpt-4o-mini, key: "", key_file: /etc/perch/secrets/brain, vision: true, temperature: 0.7, max_tokens: 400}
{kind: openai, url: "http://192.168.1.9:8080/v1", model: any, dialect: openai, reasoning_effort: none, extra: {cache_prompt: true}}    # llama.cpp`},
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

// maxID is the maximum length of the ID of a tool call, in bytes.
const maxID = 4 << 10

// Engine implements thinker.Model and agent.Seer. It is safe for concurrent use.
type Engine struct {
	o      Options
	base   *url.URL // without a trailing slash
	root   *url.URL // base without /v1, for other APIs of Ollama and llama.cpp
	ollama bool     // whether the server is Ollama, by its address or the options
	native bool     // whether to use Ollama's own API
	server *remote.Client
	calls  atomic.Uint64 // number of generated IDs of calls

	mu            sync.Mutex
	rejected      rejections
	leftOut       map[string]bool // tools that the server has rejected because of their schemas
	toolsRejected time.Time       // when the server last rejected all tools
	toolless      string          // the server's message at that time
}

// defaultFirst is the default of Options.FirstWithin. It is longer than remote.Patience, because the server may
// have to load the model.
const defaultFirst = 30 * time.Second

// New returns an engine without sending a request.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	base, _ := parseBase(o.URL) // valid, since Check has parsed it
	o.Extra = maps.Clone(o.Extra)
	root := *base
	root.Path = strings.TrimRight(strings.TrimSuffix(base.Path, "/v1"), "/")
	e := &Engine{o: o, base: base, root: &root, ollama: o.isOllama(base)}
	e.native = o.Dialect == DialectOllama || e.ollama && o.wantsOllama()
	e.o.FirstWithin = cmp.Or(e.o.FirstWithin, defaultFirst)
	e.o.IdleWithin = cmp.Or(e.o.IdleWithin, remote.Patience)
	e.o.Log = cmp.Or(e.o.Log, slog.New(slog.DiscardHandler))
	e.server = remote.NewClient(remote.Options{
		Server: remote.Server{Address: remote.Address(base), Key: o.Key, Setting: "brains[..].key", Check: "the brain's settings",
			Kind: agent.ErrAway},
		Base: base, Header: http.Header{"User-Agent": {"perch"}}, First: e.o.FirstWithin, Idle: e.o.IdleWithin, Transport: e.o.Transport,
	})
	return e, nil
}

// parseBase parses the base address of a server; see remote.ParseBase.
func parseBase(text string) (*url.URL, error) {
	return remote.ParseBase(text, "http://192.168.1.9:11434/v1")
}

// wantsOllama reports whether an option requires Ollama's own API.
func (o Options) wantsOllama() bool { return o.NumCtx != 0 || o.KeepAlive != "" }

// isOllama reports whether the server is Ollama, by the options or its address.
func (o Options) isOllama(base *url.URL) bool {
	return o.Dialect == DialectOllama || o.Dialect == "" && looksLikeOllama(base)
}

// Check returns an error if an option is missing or invalid.
func (o Options) Check() error {
	base, err := parseBase(o.URL)
	switch {
	case err != nil:
		return err
	case o.Model == "":
		return errors.New("model is missing; the server lists its models at /models (llama.cpp takes any name)")
	case o.Temperature != nil && (*o.Temperature < 0 || *o.Temperature > maxTemperature):
		return fmt.Errorf("temperature is 0 to 2, not %g", *o.Temperature)
	case o.MaxTokens < 0 || o.NumCtx < 0:
		return errors.New("max_tokens and num_ctx are not negative")
	case o.FirstWithin < 0 || o.IdleWithin < 0:
		return errors.New("a deadline is not negative")
	case o.Dialect != "" && o.Dialect != DialectOpenAI && o.Dialect != DialectOllama:
		return fmt.Errorf("dialect is openai or ollama, not %q", o.Dialect)
	}
	if _, err := parseKeepAlive(o.KeepAlive); err != nil {
		return err
	}
	if err := checkExtra(o.Extra); err != nil {
		return err
	}
	if o.wantsOllama() && !o.isOllama(base) {
		return fmt.Errorf("num_ctx and keep_alive belong to Ollama's own API, and %s does not look like Ollama; "+
			"set dialect to ollama, or leave them out", remote.Address(base))
	}
	return nil
}

// checkExtra returns an error if extra has keys that the engine sets, or cannot be sent.
func checkExtra(extra map[string]any) error {
	for _, reserved := range []string{"model", "messages", "tools", "stream"} {
		if _, exists := extra[reserved]; exists {
			return fmt.Errorf("extra may not hold %q, which is set for each request", reserved)
		}
	}
	if options, exists := extra["options"]; exists {
		if _, ok := options.(map[string]any); !ok {
			return errors.New("options in extra must be names with values, as in {top_k: 20}")
		}
	}
	if _, err := json.Marshal(extra); err != nil {
		return fmt.Errorf("extra cannot be written as JSON: %w", err)
	}
	return nil
}

// parseKeepAlive returns the value of keep_alive for a request: a number of seconds as an
// int, a duration such as "10m" as a string, or nil if text is empty.
func parseKeepAlive(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n, nil
	}
	if _, err := time.ParseDuration(text); err != nil {
		return nil, fmt.Errorf("keep_alive must be a duration such as 10m, or -1 for ever, not %q", text)
	}
	return text, nil
}

// looksLikeOllama reports whether an address has Ollama's port, or a host name with "ollama".
func looksLikeOllama(base *url.URL) bool {
	return base.Port() == "11434" || strings.Contains(strings.ToLower(base.Hostname()), "ollama")
}

// Where returns the name of the model and the address of the server.
func (e *Engine) Where() string { return e.o.Model + " at " + remote.Address(e.base) }

// Name implements thinker.Model.
func (*Engine) Name() string { return "openai" }

// Close cancels running requests and closes all connections.
func (e *Engine) Close() error {
	e.server.Close()
	return nil
}

// Continue implements thinker.Model. Arguments that are not JSON are passed on unchanged,
// and sent back to the server as "{}"; missing arguments become "{}". A call without an ID
// gets a generated one.
func (e *Engine) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	return e.retry(ctx, p, out, e.explain)
}
