package openai

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// rejections are the options that the server has rejected.
type rejections uint8

const (
	rejectsTools rejections = 1 << iota
	rejectsTemperature
	rejectsThinking
	rejectsMaxTokens // expects max_completion_tokens
)

// finding is an unsupported option that a refusal suggests.
type finding struct {
	rejections
	what   string // description of the option
	reason string // the server's message
}

// retry requests a message, and repeats the request after a pause that the server asks
// for, or without an option that it rejects. The rejection is remembered only if the
// repeated request succeeds, because servers sometimes blame the wrong option. An error
// of out is returned unchanged, any other by explain.
func (e *Engine) retry(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error, explain func(context.Context, error) error) (
	thinker.Stop, error) {
	var findings []finding
	var outError error
	spoke := false
	hear := func(piece thinker.Piece) error {
		spoke = true
		outError = out(piece)
		return outError
	}
	e.mu.Lock()
	without := e.rejected
	e.mu.Unlock()
	patience := min(limit.Moment, e.o.FirstWithin)
	for try := 1; ; try++ {
		stop, err := e.once(ctx, p, without, hear)
		if err == nil || outError != nil {
			e.remember(findings)
			return stop, outError
		}
		r := refused(err)
		if r == nil || try == limit.Tries || ctx.Err() != nil {
			return "", explain(ctx, err)
		}
		if pause, asked := pause(r); asked && pause <= patience {
			patience -= pause
			if err := remote.Sleep(ctx, pause); err != nil {
				return "", err
			}
			continue
		}
		found, ok := e.suggested(r, p, without)
		if !ok || spoke {
			return "", explain(ctx, err)
		}
		findings, without = append(findings, found), without|found.rejections
	}
}

// remember applies findings to all later requests. Each is logged once.
func (e *Engine) remember(findings []finding) {
	for _, f := range findings {
		e.mu.Lock()
		news := f.rejections&^e.rejected != 0
		e.rejected |= f.rejections
		if news && f.rejections == rejectsTools {
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
func (e *Engine) suggested(r *remote.Refusal, p thinker.Prompt, without rejections) (finding, bool) {
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden || r.Status == http.StatusTooManyRequests {
		return finding{}, false
	}
	reason := strings.ToLower(r.Reason)
	for _, f := range []struct {
		option    rejections
		suggested bool
		what      string
	}{
		{rejectsTools, len(p.Tools) > 0 && aboutTools(reason), "the model cannot use tools; none are offered to it from now on"},
		{rejectsMaxTokens, p.MaxTokens(e.o.MaxTokens) > 0 && strings.Contains(reason, "max_completion_tokens"),
			"the server calls max_tokens max_completion_tokens"},
		{rejectsTemperature, p.Temperature(e.o.Temperature, highest) != nil && strings.Contains(reason, "temperature") && !e.native,
			"the model takes no temperature; it is left out from now on"},
		{rejectsThinking, e.o.ReasoningEffort != "" && mentions(reason, "does not support thinking", "reasoning_effort", "think value"),
			"the model takes no reasoning effort; it is left out from now on"},
	} {
		if f.suggested && without&f.option == 0 {
			return finding{f.option, f.what, r.Reason}, true
		}
	}
	return finding{}, false
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
