package openai

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"perch/agent/refusal"
	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// rejections is a set of options that the server has rejected.
type rejections uint8

const (
	rejectsTools rejections = 1 << iota
	rejectsTemperature
	rejectsThinking
	rejectsMaxTokens // requires the name max_completion_tokens
	wantsNoEffort    // accepts tools only with reasoning_effort none
	rejectsOpaque    // does not accept the thoughts that it has sent
	rejectsLimit     // the configured max_tokens is too high
)

// toolsRetry is the time after which tools are offered again to a server that has rejected them: the server
// may have been restarted with another template.
const toolsRetry = 5 * time.Minute

// suggestion is a change of the request that a refusal suggests.
type suggestion struct {
	rejections
	tool   string // name of the tool to leave out, or ""
	once   bool   // whether the change is for this turn only
	text   string // description of the change for the log; may be empty
	reason string // the server's message
}

// retry requests a message. It repeats a refused request after the pause that the server requests, or with
// the change that the refusal suggests. The change is remembered only if the repeated request succeeds,
// because servers sometimes blame the wrong option; only a tool that is left out is remembered at once. retry
// returns errors of out unchanged, and other errors as explain returns them.
func (e *Engine) retry(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error, explain func(context.Context, error) error) (
	thinker.Stop, error) {
	var suggestions []suggestion
	var outError error
	sent := false // whether text or a call was passed on
	send := func(piece thinker.Piece) error {
		sent = sent || piece.Text != "" || piece.Call != nil
		outError = out(piece)
		return outError
	}
	e.mu.Lock()
	without, leftOut := e.rejected, maps.Clone(e.leftOut)
	if time.Since(e.toolsRejected) >= toolsRetry {
		without &^= rejectsTools
	}
	e.mu.Unlock()
	pauseLeft := min(limit.Moment, e.o.FirstWithin) // total time for pauses
	for try := 1; ; try++ {
		changed := p
		changed.Tools = slices.DeleteFunc(slices.Clone(p.Tools), func(t thinker.Tool) bool { return leftOut[t.Name] })
		stop, err := e.requestMessage(ctx, changed, without, send)
		if err == nil || outError != nil {
			e.remember(suggestions, err == nil && len(changed.Tools) > 0 && without&rejectsTools == 0)
			return stop, outError
		}
		r := refused(err)
		if r == nil || try == limit.Tries || ctx.Err() != nil {
			return "", explain(ctx, err)
		}
		if pause, ok := retryPause(&r.Refusal); ok && pause <= pauseLeft {
			pauseLeft -= pause
			if err := remote.Sleep(ctx, pause); err != nil {
				return "", err
			}
			continue
		}
		found, ok := e.suggestedChange(r, changed, without)
		if !ok || sent {
			return "", explain(ctx, err)
		}
		if found.tool != "" { // remembered at once: the server may reject more tools than there are tries
			e.remember([]suggestion{found}, false)
		}
		if try == limit.Tries-1 && len(changed.Tools) > 0 && (found.tool != "" || found.rejections == 0) {
			found = suggestion{rejections: rejectsTools, once: true, text: "the server has refused the tools in several ways; this turn continues without tools", reason: found.reason}
		}
		if suggestions, without = append(suggestions, found), without|found.rejections; found.tool != "" {
			if leftOut == nil {
				leftOut = map[string]bool{}
			}
			leftOut[found.tool] = true
		}
	}
}

// remember applies suggestions to all later requests, except those with once. It logs the text of each suggestion
// that it had not applied before. toolsAccepted tells whether the server has just accepted a request with tools.
func (e *Engine) remember(suggestions []suggestion, toolsAccepted bool) {
	e.mu.Lock()
	restored := toolsAccepted && e.rejected&rejectsTools != 0
	if restored {
		e.rejected &^= rejectsTools
	}
	e.mu.Unlock()
	if restored {
		e.o.Log.Info("the model accepts tools again", "model", e.o.Model, "url", remote.Address(e.base))
	}
	for _, f := range suggestions {
		e.mu.Lock()
		isNew := f.once && f.text != "" || f.rejections&^e.rejected != 0 || f.tool != "" && !e.leftOut[f.tool]
		if !f.once {
			e.rejected |= f.rejections
		}
		if f.tool != "" {
			if e.leftOut == nil {
				e.leftOut = map[string]bool{}
			}
			e.leftOut[f.tool] = true
		}
		if f.rejections == rejectsTools && !f.once {
			e.toolsRejected, e.toolless = time.Now(), f.reason
		}
		e.mu.Unlock()
		if isNew {
			e.o.Log.Warn(f.text, "model", e.o.Model, "url", remote.Address(e.base), "server_message", e.server.Quote(f.reason))
		}
	}
}

// suggestedChange returns the change of the request that a refusal suggests. If the model has written an invalid
// call, the request is repeated without a change. ok is false if the refusal suggests no change, or a change that
// was already made.
func (e *Engine) suggestedChange(r *remote.Fault, p thinker.Prompt, without rejections) (f suggestion, ok bool) {
	parsed := refusal.Refusal{Status: r.Status, Code: r.Code, Reason: r.Reason}
	offered := len(p.Tools) > 0 && without&rejectsTools == 0
	f.reason = r.Reason
	switch parsed.Meaning() {
	case refusal.BadCall:
		f.once = true
		return f, true
	case refusal.NoTools:
		f.rejections, f.text, ok = rejectsTools, "the model cannot use tools; none are offered to it for five minutes", offered
	case refusal.BadSchema:
		var names []string
		for _, t := range p.Tools {
			names = append(names, t.Name)
		}
		if f.tool = parsed.Tool(names); f.tool != "" {
			f.text, ok = "the server does not accept the schema of the tool "+f.tool+", which is left out from now on", true
		} else {
			f.rejections, f.once, f.text, ok = rejectsTools, true, "the server does not accept the schema of a tool; this turn continues without tools", offered
		}
	case refusal.NoEffort:
		f.rejections, f.text, ok = wantsNoEffort, "the model accepts tools only with reasoning_effort none, which is sent from now on", true
	case refusal.NewLimit:
		f.rejections, f.text, ok = rejectsMaxTokens, "the server requires the name max_completion_tokens for max_tokens", p.MaxTokens(e.o.MaxTokens) > 0
	case refusal.LimitTooHigh:
		f.rejections, f.text = rejectsLimit, "the limit max_tokens is too high for the model; it is left out from now on"
		ok = p.MaxTokens(e.o.MaxTokens) > 0
	case refusal.NoTemperature:
		f.rejections, f.text = rejectsTemperature, "the model does not accept a temperature; it is left out from now on"
		ok = p.Temperature(e.o.Temperature, maxTemperature) != nil && !e.native
	case refusal.NoThinking:
		f.rejections, f.text, ok = rejectsThinking, "the model does not accept a reasoning effort; it is left out from now on", e.o.ReasoningEffort != ""
	case refusal.NoOpaque:
		f.rejections, f.text, ok = rejectsOpaque, "the server does not accept the thoughts that it has sent; they are left out from now on", true
	}
	return f, ok && (f.rejections == 0 || without&f.rejections == 0)
}

// mentions reports whether a text contains one of the words.
func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
