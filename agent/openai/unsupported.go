package openai

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// habits records the options that the server has rejected.
type habits struct {
	noTools, noTemperature, noThinking bool
	newLimit                           bool // expects max_completion_tokens
}

func (h habits) and(more habits) habits {
	return habits{
		noTools:       h.noTools || more.noTools,
		noTemperature: h.noTemperature || more.noTemperature,
		noThinking:    h.noThinking || more.noThinking,
		newLimit:      h.newLimit || more.newLimit,
	}
}

// finding is an unsupported option that a refusal suggests.
type finding struct {
	habits
	what   string // description of the option
	reason string // the server's message
}

// retry requests a message, and repeats the request after a pause that the server asks
// for, or without an option that it rejects. The rejection is remembered only if the
// repeated request succeeds, because servers sometimes blame the wrong option.
func (e *Engine) retry(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	var findings []finding
	e.mu.Lock()
	used := e.habits
	e.mu.Unlock()
	patience := min(limit.Moment, e.o.FirstWithin)
	for try := 1; ; try++ {
		stop, err := e.once(ctx, p, used, out)
		var listener outError
		if err == nil || errors.As(err, &listener) {
			e.remember(findings)
			return stop, err
		}
		r := refused(err)
		if r == nil || try == limit.Tries || ctx.Err() != nil {
			return stop, err
		}
		if pause, asked := r.pause(); asked && pause <= patience {
			patience -= pause
			if err := remote.Sleep(ctx, pause); err != nil {
				return "", err
			}
			continue
		}
		found, ok := e.suggested(r, p, used)
		if !ok {
			return stop, err
		}
		findings, used = append(findings, found), used.and(found.habits)
	}
}

// remember applies findings to all later requests. Each is logged once.
func (e *Engine) remember(findings []finding) {
	for _, f := range findings {
		e.mu.Lock()
		before := e.habits
		e.habits = before.and(f.habits)
		news := e.habits != before
		if news && f.noTools {
			e.toolless = f.reason
		}
		e.mu.Unlock()
		if news {
			e.o.Log.Warn(f.what, "model", e.o.Model, "url", remote.Address(e.base), "said", e.server.Quote(f.reason))
		}
	}
}

// suggested returns the option to leave out after a refusal. ok is false if repeating
// the request makes no sense.
func (e *Engine) suggested(r *refusal, p thinker.Prompt, used habits) (finding, bool) {
	if r.midway || r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden || r.Status == http.StatusTooManyRequests {
		return finding{}, false
	}
	reason := strings.ToLower(r.Reason)
	f := finding{reason: r.Reason}
	switch {
	case len(p.Tools) > 0 && !used.noTools && aboutTools(reason):
		f.noTools, f.what = true, "the model cannot use tools; none are offered to it from now on"
	case p.MaxTokens(e.o.MaxTokens) > 0 && !used.newLimit && strings.Contains(reason, "max_completion_tokens"):
		f.newLimit, f.what = true, "the server calls max_tokens max_completion_tokens"
	case p.Temperature(e.o.Temperature, highest) != nil && !used.noTemperature && strings.Contains(reason, "temperature") && !e.native:
		f.noTemperature, f.what = true, "the model takes no temperature; it is left out from now on"
	case e.o.ReasoningEffort != "" && !used.noThinking && mentions(reason, "does not support thinking", "reasoning_effort", "think value"):
		f.noThinking, f.what = true, "the model takes no reasoning effort; it is left out from now on"
	default:
		return finding{}, false
	}
	return f, true
}

// aboutTools recognizes servers' messages that the model does not support tools: Ollama
// ("does not support tools"), llama.cpp ("tools param requires --jinja flag"), vLLM
// ("requires --enable-auto-tool-choice"), OpenRouter ("no endpoints found that support
// tool use"). LM Studio only reports that the model's template failed, which tools may
// have caused.
func aboutTools(reason string) bool {
	return mentions(reason, "rendering prompt with jinja template") ||
		mentions(reason, "tool", "function call") && mentions(reason, "support", "require", "jinja", "not allowed", "not enabled")
}

// mentions reports whether a text contains one of the words.
func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
