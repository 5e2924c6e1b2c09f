package openai

import (
	"net/http"
	"strings"
)

// habits are what a server turned out not to take.
type habits struct {
	noTools, noTemperature, noThinking bool
	newLimit                           bool // max_completion_tokens
}

func (e *Engine) learned() habits {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.habits
}

// learn finds out of a refusal what to leave out, and says whether the request
// is worth repeating. Each finding is told once.
func (e *Engine) learn(r *refusal, used habits, tools bool) bool {
	if r.midway || r.status == http.StatusUnauthorized || r.status == http.StatusForbidden || r.status == http.StatusTooManyRequests {
		return false
	}
	said := strings.ToLower(r.said)
	next, what := used, ""
	switch {
	case tools && !used.noTools && aboutTools(said):
		next.noTools, what = true, "the model cannot use tools; none are offered to it from now on"
	case e.o.MaxTokens > 0 && !used.newLimit && strings.Contains(said, "max_completion_tokens"):
		next.newLimit, what = true, "the server calls max_tokens max_completion_tokens"
	case e.o.Temperature != nil && !used.noTemperature && strings.Contains(said, "temperature") && !e.native:
		next.noTemperature, what = true, "the model takes no temperature; it is left out from now on"
	case e.o.ReasoningEffort != "" && !used.noThinking &&
		(strings.Contains(said, "does not support thinking") || strings.Contains(said, "reasoning_effort") || strings.Contains(said, "think value")):
		next.noThinking, what = true, "the model takes no reasoning effort; it is left out from now on"
	default:
		return false
	}
	e.mu.Lock()
	before := e.habits
	e.habits = habits{
		noTools:       before.noTools || next.noTools,
		noTemperature: before.noTemperature || next.noTemperature,
		noThinking:    before.noThinking || next.noThinking,
		newLimit:      before.newLimit || next.newLimit,
	}
	news := e.habits != before
	e.mu.Unlock()
	if news {
		e.o.Log.Warn(what, "model", e.o.Model, "url", show(e.base), "said", e.quote(r.said))
	}
	return true
}

// aboutTools knows the ways in which servers say that tools are not for this
// model: Ollama ("does not support tools"), llama.cpp ("requires --jinja"),
// vLLM ("requires --enable-auto-tool-choice"), OpenRouter ("no endpoints found
// that support tool use").
func aboutTools(said string) bool {
	if !strings.Contains(said, "tool") && !strings.Contains(said, "function call") {
		return false
	}
	for _, word := range []string{"support", "require", "jinja", "not allowed", "not enabled"} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}
