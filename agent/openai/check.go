package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// ErrNoTools is wrapped by Check if the model answers but cannot use tools. It is a
// warning and does not wrap agent.ErrAway, because the model can still talk.
var ErrNoTools = errors.New("the model cannot use tools")

// Deadlines of requests outside of turns.
const (
	checkWithin = 5 * time.Second
	warmWithin  = 2 * time.Minute // a large model from a slow disk
)

// Check tests with one cheap request whether the engine works. Its error wraps agent.ErrAway if the engine
// does not work, ErrNoTools if it works without tools, and agent.ErrBlind if it works without the
// configured vision.
func (e *Engine) Check(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	var err error
	if e.ollama {
		err = e.checkOllama(within)
	} else {
		err = e.checkModels(within)
	}
	if ctx.Err() == nil && within.Err() != nil {
		return e.server.Fault("does not answer within " + checkWithin.String() + "; is the machine on?")
	}
	if err == nil {
		err = e.Limits()
	}
	return err
}

// Limits returns ErrNoTools with the server's message if the server has rejected tools in a turn. The message
// sometimes names the remedy, such as llama.cpp's --jinja.
func (e *Engine) Limits() error {
	e.mu.Lock()
	reason, none := e.toolless, e.rejected&rejectsTools != 0
	e.mu.Unlock()
	if !none {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNoTools, e.o.Model+" at "+remote.Address(e.base)+": "+e.server.Quote(reason))
}

// checkOllama requests the model's details, which include its capabilities.
func (e *Engine) checkOllama(ctx context.Context) error {
	data, err := e.ask(ctx, e.root, "api/show", body{"model": e.o.Model})
	if err != nil {
		return e.explain(ctx, err)
	}
	var shown struct{ Capabilities []string }
	if err := json.Unmarshal(data, &shown); err != nil {
		return e.server.Fault("is not Ollama, though its address looks so; set dialect to openai")
	}
	if shown.Capabilities == nil {
		return nil // an older Ollama does not report them
	}
	if !slices.Contains(shown.Capabilities, "tools") {
		err = fmt.Errorf("%w: %s at %s", ErrNoTools, e.o.Model, remote.Address(e.base))
	}
	if e.o.Vision && !slices.Contains(shown.Capabilities, "vision") {
		err = errors.Join(err, fmt.Errorf("%w: %s at %s has no eyes; take vision out", agent.ErrBlind, e.o.Model, remote.Address(e.base)))
	}
	return err
}

// ContextTokens returns the length of the model's context, or 0 if the server does not report it. Ollama reports
// it for loaded models in /api/ps, llama.cpp in /props, and LM Studio in /api/v0/models.
func (e *Engine) ContextTokens(ctx context.Context) int {
	if e.o.NumCtx > 0 && e.native {
		return e.o.NumCtx
	}
	var told struct {
		Models []struct { // Ollama
			Name    string
			Context int `json:"context_length"`
		}
		Settings struct { // llama.cpp
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Data []struct { // LM Studio
			ID     string
			Loaded int `json:"loaded_context_length"`
		}
	}
	for _, path := range []string{"api/ps", "props", "api/v0/models"} {
		if e.ollama != (path == "api/ps") {
			continue
		}
		data, err := e.server.Fetch(ctx, request(e.root, path, nil, checkWithin), limit.File)
		if err == nil {
			_ = json.Unmarshal(data, &told) // other responses leave told empty
		}
	}
	for _, m := range told.Models {
		if m.Name == e.o.Model || m.Name == e.o.Model+":latest" {
			return m.Context
		}
	}
	for _, m := range told.Data {
		if m.ID == e.o.Model && m.Loaded > 0 {
			return m.Loaded
		}
	}
	return told.Settings.Context
}

// checkModels looks for the model in the server's list. A server without a list counts
// as reachable.
func (e *Engine) checkModels(ctx context.Context) error {
	names, anyName, err := e.models(ctx)
	r := refused(err)
	switch {
	case r != nil && (r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed):
		return nil
	case err != nil:
		return e.explain(ctx, err)
	case len(names) > 0 && !anyName && !e.listed(names) && !e.probe(ctx):
		return e.noModel(names)
	}
	return nil
}

// listed reports whether the model is among the names. Some servers list it with a path
// prefix that requests must not have, such as Google's models/.
func (e *Engine) listed(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return path.Base(name) == path.Base(e.o.Model) })
}

// probe requests a message, because lists omit the routers and aliases of some servers.
// It reports whether an answer begins.
func (e *Engine) probe(ctx context.Context) bool {
	hello := body{"model": e.o.Model, "stream": true, "messages": []body{{"role": "user", "content": "Say hello."}}}
	response, err := e.server.Call(ctx, request(e.base, "chat/completions", hello, 0))
	if err != nil {
		return false
	}
	defer response.Close() // the rest of the message is not read
	a := e.newAnswer(response, func(thinker.Piece) error { return nil })
	first, err := a.first()
	if err == nil && first == '{' {
		return a.whole() == nil
	}
	begun, err := remote.NewEvents(a.in, limit.File).Next()
	return err == nil && a.chunk(begun) == nil && a.began
}

// models lists the server's models. anyName is true for llama.cpp, which accepts any name for its one model.
func (e *Engine) models(ctx context.Context) (names []string, anyName bool, err error) {
	data, err := e.ask(ctx, e.list(), "", nil)
	if err != nil {
		return nil, false, err
	}
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			OwnedBy string `json:"owned_by"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, false, errGarbage
	}
	for _, m := range list.Data {
		names = append(names, m.ID)
		anyName = anyName || m.OwnedBy == "llamacpp" && len(list.Data) == 1
	}
	return names, anyName, nil
}

// list returns the address of the server's list of models.
func (e *Engine) list() *url.URL {
	u := *e.base
	if e.native {
		u.Path = e.root.Path + "/v1"
	}
	u.Path += "/models"
	return &u
}

// ask makes a small request and returns the body of the response.
func (e *Engine) ask(ctx context.Context, base *url.URL, path string, b body) ([]byte, error) {
	return e.server.Fetch(ctx, request(base, path, b, warmWithin), limit.File)
}

// noModel returns the error for a model that the server does not list among names.
func (e *Engine) noModel(names []string) error {
	more := ""
	if len(names) > limit.Named {
		more = fmt.Sprintf(" and %d more", len(names)-limit.Named)
		names = names[:limit.Named]
	}
	shown := make([]string, 0, len(names))
	for _, name := range names {
		shown = append(shown, e.server.Quote(name))
	}
	return e.server.Faultf("the model %s is not there; GET %s lists: %s%s", e.o.Model, remote.Address(e.list()), strings.Join(shown, ", "), more)
}

// notFound distinguishes a missing model from a wrong address.
func (e *Engine) notFound(ctx context.Context, r *remote.Refusal) error {
	within, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	names, _, err := e.models(within)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && len(names) > 0 && !e.listed(names):
		return e.noModel(names)
	case strings.Contains(strings.ToLower(r.Reason), "model"):
		return e.server.Faultf("the model %s is not there (%s); check model", e.o.Model, e.server.StatusText(*r))
	}
	return e.server.Faultf("there is no such API at %s (%s); is it the base address, with its /v1?",
		remote.Address(e.base), e.server.StatusText(*r))
}

// Warm loads the model while the person is still speaking. Ollama loads it, for as long
// as keep_alive says; other servers are asked for /health, which llama.cpp answers with
// 503 while it loads and which is harmless elsewhere. The key is not sent with it.
func (e *Engine) Warm(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	if !e.ollama {
		return e.health(within)
	}
	b := body{"model": e.o.Model, "stream": false}
	if len(e.nativeOptions(b)) == 0 {
		delete(b, "options")
	}
	if _, err := e.ask(within, e.root, "api/generate", b); err != nil {
		return e.explain(ctx, err)
	}
	return nil
}

// health waits until llama.cpp has loaded its model.
func (e *Engine) health(ctx context.Context) error {
	root := *e.root
	root.RawQuery = "" // it may contain a key
	response, err := e.server.Call(ctx, remote.Request{Method: http.MethodGet, Base: &root, Path: "health", Bare: true, Within: warmWithin})
	switch r := refused(err); {
	case err == nil:
		_, _ = response.Whole(limit.Data) // so that the connection can be reused
		response.Close()
	case r == nil:
		return e.explain(ctx, err)
	case r.Status == http.StatusServiceUnavailable:
		return e.server.Faultf("the model %s is still being loaded, or %s is overloaded", e.o.Model, remote.Address(e.base))
	}
	return nil
}
