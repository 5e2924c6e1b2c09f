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

// toolsAgain is the time after which rejected tools are offered again: the server may have been restarted
// with another template.
const toolsAgain = 5 * time.Minute

// finding is a change of the request that a refusal suggests.
type finding struct {
	rejections
	tool   string // name of the tool to leave out, or ""
	passes bool   // whether the change is for this turn only
	what   string // description of the change, for the log
	reason string // the server's message
}

// retry requests a message. It repeats a refused request after the pause that the server requests, or with
// the change that the refusal suggests. The change is remembered only if the repeated request succeeds,
// because servers sometimes blame the wrong option. retry returns errors of out unchanged, and other
// errors as explain returns them.
func (e *Engine) retry(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error, explain func(context.Context, error) error) (
	thinker.Stop, error) {
	var findings []finding
	var outError error
	spoke := false
	hear := func(piece thinker.Piece) error {
		spoke = spoke || piece.Text != "" || piece.Call != nil
		outError = out(piece)
		return outError
	}
	e.mu.Lock()
	without, leftOut := e.rejected, maps.Clone(e.leftOut)
	if time.Since(e.toolsRejected) >= toolsAgain {
		without &^= rejectsTools
	}
	e.mu.Unlock()
	patience := min(limit.Moment, e.o.FirstWithin)
	for try := 1; ; try++ {
		asked := p
		asked.Tools = slices.DeleteFunc(slices.Clone(p.Tools), func(t thinker.Tool) bool { return leftOut[t.Name] })
		stop, err := e.once(ctx, asked, without, hear)
		if err == nil || outError != nil {
			e.remember(findings, err == nil && len(asked.Tools) > 0 && without&rejectsTools == 0)
			return stop, outError
		}
		r := refused(err)
		if r == nil || try == limit.Tries || ctx.Err() != nil {
			return "", explain(ctx, err)
		}
		if pause, asked := pause(&r.Refusal); asked && pause <= patience {
			patience -= pause
			if err := remote.Sleep(ctx, pause); err != nil {
				return "", err
			}
			continue
		}
		found, ok := e.suggested(r, asked, without)
		if !ok || spoke {
			return "", explain(ctx, err)
		}
		if found.tool != "" { // remembered at once: the server may reject more tools than there are tries
			e.remember([]finding{found}, false)
		}
		if try == limit.Tries-1 && len(asked.Tools) > 0 && (found.tool != "" || found.rejections == 0) {
			found = finding{rejections: rejectsTools, passes: true, what: "the server has refused the tools in several ways; this turn goes without", reason: found.reason}
		}
		if findings, without = append(findings, found), without|found.rejections; found.tool != "" {
			if leftOut == nil {
				leftOut = map[string]bool{}
			}
			leftOut[found.tool] = true
		}
	}
}

// remember applies findings to all later requests, and logs each once. tools means that the server has just
// accepted tools.
func (e *Engine) remember(findings []finding, tools bool) {
	e.mu.Lock()
	again := tools && e.rejected&rejectsTools != 0
	if again {
		e.rejected &^= rejectsTools
	}
	e.mu.Unlock()
	if again {
		e.o.Log.Info("the model takes tools again", "model", e.o.Model, "url", remote.Address(e.base))
	}
	for _, f := range findings {
		e.mu.Lock()
		news := f.passes && f.what != "" || f.rejections&^e.rejected != 0 || f.tool != "" && !e.leftOut[f.tool]
		if !f.passes {
			e.rejected |= f.rejections
		}
		if f.tool != "" {
			if e.leftOut == nil {
				e.leftOut = map[string]bool{}
			}
			e.leftOut[f.tool] = true
		}
		if f.rejections == rejectsTools && !f.passes {
			e.toolsRejected, e.toolless = time.Now(), f.reason
		}
		e.mu.Unlock()
		if news {
			e.o.Log.Warn(f.what, "model", e.o.Model, "url", remote.Address(e.base), "said", e.server.Quote(f.reason))
		}
	}
}

// suggested returns the change of the request that a refusal suggests. ok is false if none exists.
func (e *Engine) suggested(r *remote.Fault, p thinker.Prompt, without rejections) (f finding, ok bool) {
	said := refusal.Refusal{Status: r.Status, Code: r.Code, Reason: r.Reason}
	tools := len(p.Tools) > 0 && without&rejectsTools == 0
	f.reason = r.Reason
	switch said.Meaning() {
	case refusal.BadCall:
		f.passes = true
		return f, true
	case refusal.NoTools:
		f.rejections, f.what, ok = rejectsTools, "the model cannot use tools; none are offered to it for five minutes", tools
	case refusal.BadSchema:
		var names []string
		for _, t := range p.Tools {
			names = append(names, t.Name)
		}
		if f.tool = said.Tool(names); f.tool != "" {
			f.what, ok = "the server does not take the schema of the tool "+f.tool+", which is left out from now on", true
		} else {
			f.rejections, f.passes, f.what, ok = rejectsTools, true, "the server does not take the schema of a tool; this turn goes without tools", tools
		}
	case refusal.NoEffort:
		f.rejections, f.what, ok = wantsNoEffort, "the model takes tools only with reasoning_effort none, which is sent from now on", true
	case refusal.NewLimit:
		f.rejections, f.what, ok = rejectsMaxTokens, "the server calls max_tokens max_completion_tokens", p.MaxTokens(e.o.MaxTokens) > 0
	case refusal.LimitTooHigh:
		f.rejections, f.what = rejectsLimit, "the limit max_tokens is too high for the model; it is left out from now on"
		ok = p.MaxTokens(e.o.MaxTokens) > 0
	case refusal.NoTemperature:
		f.rejections, f.what = rejectsTemperature, "the model takes no temperature; it is left out from now on"
		ok = p.Temperature(e.o.Temperature, highest) != nil && !e.native
	case refusal.NoThinking:
		f.rejections, f.what, ok = rejectsThinking, "the model takes no reasoning effort; it is left out from now on", e.o.ReasoningEffort != ""
	case refusal.NoOpaque:
		f.rejections, f.what, ok = rejectsOpaque, "the server does not take back the thoughts that it has sent; they are left out from now on", true
	}
	return f, ok && (f.rejections == 0 || without&f.rejections == 0)
}

// mentions reports whether a text contains one of the words.
func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
