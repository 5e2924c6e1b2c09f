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

// ErrNoTools is wrapped by the error of Check if the model works but cannot use tools. It is
// a warning and does not wrap agent.ErrAway, because the model can still answer.
var ErrNoTools = errors.New("the model cannot use tools")

// Deadlines of requests outside of turns.
const (
	checkWithin = 5 * time.Second
	warmWithin  = 2 * time.Minute // enough to load a large model from a slow disk
)

// Check tests whether the engine works. It requests the details of the model from Ollama, and the list of models
// from any other server; if the list lacks the model, it requests a message too. Its error wraps agent.ErrAway if
// the engine does not work, ErrNoTools if it works without tools, and agent.ErrBlind if it works without the
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

// Limits returns an error that wraps ErrNoTools and contains the server's message if the server has rejected tools
// in a turn, otherwise nil. The message sometimes names the remedy, such as llama.cpp's --jinja.
func (e *Engine) Limits() error {
	e.mu.Lock()
	reason, rejected := e.toolless, e.rejected&rejectsTools != 0
	e.mu.Unlock()
	if !rejected {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNoTools, e.o.Model+" at "+remote.Address(e.base)+": "+e.server.Quote(reason))
}

// checkOllama checks the capabilities of the model, which Ollama reports in the model's details.
func (e *Engine) checkOllama(ctx context.Context) error {
	data, err := e.fetch(ctx, e.root, "api/show", body{"model": e.o.Model})
	if err != nil {
		return e.explain(ctx, err)
	}
	var shown struct{ Capabilities []string }
	if err := json.Unmarshal(data, &shown); err != nil {
		return e.server.Fault("is not Ollama, although its address looks like Ollama's; set dialect to openai")
	}
	if shown.Capabilities == nil {
		return nil // an older Ollama does not report them
	}
	if !slices.Contains(shown.Capabilities, "tools") {
		err = fmt.Errorf("%w: %s at %s", ErrNoTools, e.o.Model, remote.Address(e.base))
	}
	if e.o.Vision && !slices.Contains(shown.Capabilities, "vision") {
		err = errors.Join(err, fmt.Errorf("%w: %s at %s cannot see pictures; remove vision", agent.ErrBlind, e.o.Model, remote.Address(e.base)))
	}
	return err
}

// ContextTokens returns the length of the model's context in tokens, or 0 if the server does not report it. With
// Ollama's own API, Options.NumCtx is the length. Otherwise Ollama reports the length for loaded models in /api/ps,
// llama.cpp in /props, and LM Studio in /api/v0/models.
func (e *Engine) ContextTokens(ctx context.Context) int {
	if e.o.NumCtx > 0 && e.native {
		return e.o.NumCtx
	}
	var response struct { // the fields of all three responses
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
			_ = json.Unmarshal(data, &response) // other data leaves response empty
		}
	}
	for _, m := range response.Models {
		if m.Name == e.o.Model || m.Name == e.o.Model+":latest" {
			return m.Context
		}
	}
	for _, m := range response.Data {
		if m.ID == e.o.Model && m.Loaded > 0 {
			return m.Loaded
		}
	}
	return response.Settings.Context
}

// checkModels checks that the server has the model, by the server's list of models and, if the
// model is not in the list, by requesting a message. It returns nil for a server that has no list.
func (e *Engine) checkModels(ctx context.Context) error {
	names, anyName, err := e.listModels(ctx)
	r := refused(err)
	switch {
	case r != nil && (r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed):
		return nil
	case err != nil:
		return e.explain(ctx, err)
	case len(names) > 0 && !anyName && !e.isListed(names) && !e.probe(ctx):
		return e.missingModelError(names)
	}
	return nil
}

// isListed reports whether the model is among names. It ignores a path before the name: some
// servers list models with a prefix that requests must not have, such as Google's models/.
func (e *Engine) isListed(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return path.Base(name) == path.Base(e.o.Model) })
}

// probe requests a message and reports whether the server begins to send it. Lists of models
// may omit routers and aliases, which requests can name.
func (e *Engine) probe(ctx context.Context) bool {
	hello := body{"model": e.o.Model, "stream": true, "messages": []body{{"role": "user", "content": "Say hello."}}}
	response, err := e.server.Call(ctx, request(e.base, "chat/completions", hello, 0))
	if err != nil {
		return false
	}
	defer response.Close() // the rest of the message is not read
	r := e.newMessageReader(response, func(thinker.Piece) error { return nil })
	first, err := r.firstByte()
	if err == nil && first == '{' {
		return r.readWhole() == nil
	}
	event, err := remote.NewEvents(r.in, limit.File).Next()
	return err == nil && r.addChunk(event) == nil && r.began
}

// listModels returns the names of the server's models. anyName is true for llama.cpp, which accepts any name for
// its single model.
func (e *Engine) listModels(ctx context.Context) (names []string, anyName bool, err error) {
	data, err := e.fetch(ctx, e.listURL(), "", nil)
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

// listURL returns the address of the server's list of models.
func (e *Engine) listURL() *url.URL {
	u := *e.base
	if e.native {
		u.Path = e.root.Path + "/v1"
	}
	u.Path += "/models"
	return &u
}

// fetch makes a request outside of turns and returns the body of the response.
func (e *Engine) fetch(ctx context.Context, base *url.URL, path string, b body) ([]byte, error) {
	return e.server.Fetch(ctx, request(base, path, b, warmWithin), limit.File)
}

// missingModelError returns the error for a model that is not among names, the models that the server lists.
func (e *Engine) missingModelError(names []string) error {
	more := ""
	if len(names) > limit.Named {
		more = fmt.Sprintf(" and %d more", len(names)-limit.Named)
		names = names[:limit.Named]
	}
	shown := make([]string, 0, len(names))
	for _, name := range names {
		shown = append(shown, e.server.Quote(name))
	}
	return e.server.Faultf("the server does not have the model %s; GET %s lists: %s%s", e.o.Model, remote.Address(e.listURL()), strings.Join(shown, ", "), more)
}

// notFound returns the error for a request that the server has refused because the path or the model does not
// exist. It requests the list of models to distinguish the two.
func (e *Engine) notFound(ctx context.Context, r *remote.Refusal) error {
	within, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	names, _, err := e.listModels(within)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && len(names) > 0 && !e.isListed(names):
		return e.missingModelError(names)
	case strings.Contains(strings.ToLower(r.Reason), "model"):
		return e.server.Faultf("the server does not have the model %s (%s); check model", e.o.Model, e.server.StatusText(*r))
	}
	return e.server.Faultf("there is no such API at %s (%s); is it the base address, with its /v1?",
		remote.Address(e.base), e.server.StatusText(*r))
}

// Warm has Ollama load the model for the time in Options.KeepAlive. Other servers have no request
// that loads the model: from these, Warm requests /health, without the key, and returns an error
// while llama.cpp is still loading its model.
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
	if _, err := e.fetch(within, e.root, "api/generate", b); err != nil {
		return e.explain(ctx, err)
	}
	return nil
}

// health returns an error if the server cannot be reached or responds with status 503, as llama.cpp does while it
// loads its model.
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
