// Package openai drives language models behind the chat completions API that
// OpenAI began and that llama.cpp, LocalAI, vLLM, LM Studio and others speak,
// and behind Ollama's own API where its settings are asked for.
//
// Ollama serves both: /v1/chat/completions, and /api/chat, which alone knows
// num_ctx and keep_alive. Where one of these is set and the address looks like
// Ollama's (port 11434, or "ollama" in the host's name), the second is used.
// Options.Dialect decides where the address does not show it.
//
// What a server turns out not to take (tools, a temperature, the older name of
// a limit) is left out from then on, and logged once. A model's
// thinking is read and never passed on.
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
	"perch/remote"
)

// highest is the temperature that the APIs take at most.
const highest = 2

// The dialects.
const (
	DialectOpenAI = "openai" // {url}/chat/completions, server-sent events
	DialectOllama = "ollama" // /api/chat, a line of JSON for each piece
)

// Options of the engine. URL and Model are needed.
type Options struct {
	URL   string // the base as the server's manual gives it, with its /v1
	Key   string // empty: none is sent
	Model string

	Temperature     *float64 // 0 to 2; nil leaves it to the server
	MaxTokens       int      // of one message; 0 leaves it to the server
	ReasoningEffort string   // "none", "low", "medium", ...; empty leaves it to the server
	KeepAlive       string   // Ollama: how long the model stays loaded, "10m", "-1" for ever
	NumCtx          int      // Ollama: the context's length in tokens
	Dialect         string   // empty: by the address
	Vision          bool     // the model can look at pictures
	// Extra is merged into each request's body, over what is there. It may not
	// hold what makes the conversation: model, messages, tools and stream.
	Extra map[string]any

	FirstWithin time.Duration // until a message begins; 0 is 30 s
	IdleWithin  time.Duration // between its pieces; 0 is remote.Patience
	Log         *slog.Logger  // nil: nothing is logged
	// Transport carries the requests; nil is one of the engine's own.
	Transport http.RoundTripper
}

// Bounds of what a server may send, in bytes.
const longestID = 4 << 10 // of a tool call

// Engine implements agent.Model and agent.Seer. It serves many turns at once.
type Engine struct {
	o      Options
	base   *url.URL // without a slash at its end
	root   *url.URL // base without /v1: where Ollama and llama.cpp keep the rest
	ollama bool     // it is Ollama, as far as the address or the options say
	native bool     // Ollama's own API
	server *remote.Client
	calls  atomic.Uint64 // ids invented

	mu       sync.Mutex
	habits   habits
	manner   manner
	toolless string // what the server said when it took no tools
}

// defaultFirst is longer than remote.Patience, because a model may have to be loaded.
const defaultFirst = 30 * time.Second

// New returns the engine. It asks the server nothing.
func New(o Options) (*Engine, error) {
	base, err := parseBase(o.URL)
	if err == nil {
		err = o.Check()
	}
	if err != nil {
		return nil, err
	}
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

func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimSpace(text))
	switch {
	case text == "":
		return nil, errors.New("url is missing; it is the server's base address, as in http://192.168.1.9:11434/v1")
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("url is no address of a server; it looks like http://192.168.1.9:11434/v1")
	case base.User != nil:
		return nil, errors.New("url holds a password; put the key into key or key_file")
	}
	base.Path, base.RawPath, base.Fragment = strings.TrimRight(base.Path, "/"), "", ""
	return base, nil
}

// wantsOllama reports whether an option belongs to Ollama's own API.
func (o Options) wantsOllama() bool { return o.NumCtx != 0 || o.KeepAlive != "" }

// isOllama reports whether the server is Ollama, as far as its address or the
// options say.
func (o Options) isOllama(base *url.URL) bool {
	return o.Dialect == DialectOllama || o.Dialect == "" && looksLikeOllama(base)
}

// Check reports what New refuses.
func (o Options) Check() error {
	base, err := parseBase(o.URL)
	switch {
	case err != nil:
		return err
	case o.Model == "":
		return errors.New("model is missing; the server lists its models at /models (llama.cpp takes any name)")
	case o.Temperature != nil && (*o.Temperature < 0 || *o.Temperature > highest):
		return fmt.Errorf("temperature is 0 to 2, not %g", *o.Temperature)
	case o.MaxTokens < 0 || o.NumCtx < 0:
		return errors.New("max_tokens and num_ctx are not negative")
	case o.FirstWithin < 0 || o.IdleWithin < 0:
		return errors.New("a deadline is not negative")
	case o.Dialect != "" && o.Dialect != DialectOpenAI && o.Dialect != DialectOllama:
		return fmt.Errorf("dialect is openai or ollama, not %q", o.Dialect)
	}
	if _, err := keepAlive(o.KeepAlive); err != nil {
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

func checkExtra(extra map[string]any) error {
	for _, ours := range []string{"model", "messages", "tools", "stream"} {
		if _, there := extra[ours]; there {
			return fmt.Errorf("extra may not hold %q, which is set for each request", ours)
		}
	}
	if options, there := extra["options"]; there {
		if _, ok := options.(map[string]any); !ok {
			return errors.New("options in extra are names with values, as in {top_k: 20}")
		}
	}
	if _, err := json.Marshal(extra); err != nil {
		return fmt.Errorf("extra cannot be written as JSON: %w", err)
	}
	return nil
}

// keepAlive is the text as Ollama takes it: a length of time, or a bare number
// of seconds, which it wants as a number. A negative one means for ever.
func keepAlive(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n, nil
	}
	if _, err := time.ParseDuration(text); err != nil {
		return nil, fmt.Errorf("keep_alive is a length of time such as 10m, or -1 for ever, not %q", text)
	}
	return text, nil
}

func looksLikeOllama(base *url.URL) bool {
	return base.Port() == "11434" || strings.Contains(strings.ToLower(base.Hostname()), "ollama")
}

// Name is "openai".
func (*Engine) Name() string { return "openai" }

// Close closes the connections that wait for the next turn.
func (e *Engine) Close() error {
	e.server.Close()
	return nil
}

// Continue implements agent.Model. A call whose arguments are no JSON is given
// as it came, and goes back to the server as "{}"; one without arguments has "{}". Where the server asks for none
// by an id, one is invented.
func (e *Engine) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	stop, err := e.persist(ctx, p, out)
	if err != nil {
		return "", e.explain(ctx, err)
	}
	return stop, nil
}
