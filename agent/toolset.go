package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"perch/device"
	"perch/event"
)

// ToolSource is where tools come from that are neither the robot's nor the
// house's own, such as an MCP server. Its names are its own. Tools answers
// with what it has by the time ctx ends.
type ToolSource interface {
	Tools(ctx context.Context) []ModelTool
	Call(ctx context.Context, name string, args json.RawMessage) (text string, err error)
}

// What a model is told of tools, and by them, in bytes where nothing else is
// said. Descriptions are shorter where a robot gives them.
const (
	mostTools       = 100 // in all
	mostDescription = 1024
	mostSchema      = 8 << 10
	mostArguments   = 32 << 10
	mostAnswer      = 8 << 10
	mostDetail      = 200
	sourceWithin    = 300 * time.Millisecond // to say what it has
)

// toolset is what a turn may use.
type toolset struct {
	names   device.ModelNames
	offered []ModelTool
	byName  map[string]turnTool // by its own name
}

// turnTool is a tool within a turn.
type turnTool struct {
	ModelTool        // under its own name
	together  bool   // may run while others do
	agent     bool   // is another agent, at work on its own
	shown     string // what it is called where it is shown
	run       func(ctx context.Context, args json.RawMessage) (string, error)
}

// toolsOf collects what a turn may use: the house's own tools, then the
// robot's, then others'. One of the house's says what follows the turn.
func (k *Thinker) toolsOf(ctx context.Context, t Turn, after *End) toolset {
	all := k.ownTools(t, after)
	if t.Body != nil {
		all = append(all, k.robotTools(t.Body)...)
	}
	if !t.Guest { // who may not act in the house may not do so by others' tools
		all = append(all, k.sourceTools(ctx)...)
	}
	set := toolset{byName: map[string]turnTool{}}
	var kept []turnTool
	var named []device.Tool
	var left []string
	for _, tool := range all {
		if len(kept) == mostTools || len(tool.Schema) > mostSchema || !json.Valid(tool.Schema) {
			left = append(left, clip(tool.Name, mostDetail))
			continue
		}
		tool.shown = clip(tool.Name, mostDetail)
		for own, i := tool.Name, 2; set.byName[tool.Name].run != nil; i++ {
			tool.Name = fmt.Sprintf("%s#%d", own, i) // two sources have it
		}
		tool.Description = clip(plain(tool.Description), mostDescription)
		set.byName[tool.Name] = tool
		kept, named = append(kept, tool), append(named, device.Tool{Name: tool.Name})
	}
	k.tellLeft(left)
	set.names = device.NewModelNames(named)
	for _, tool := range kept {
		offer := tool.ModelTool
		offer.Name = set.names.Safe(tool.Name)
		set.offered = append(set.offered, offer)
	}
	return set
}

// mostOwn bounds what a robot says of a tool of its own, in letters.
const mostOwn = 500

// Described is what a robot says of a tool, as a model may read it: one line
// without control characters, and not long. A robot may be anybody's.
func Described(text string) string {
	text = plain(text)
	n := 0
	for at := range text {
		if n++; n > mostOwn {
			return text[:at]
		}
	}
	return text
}

// plain is a text in one line, of letters that can be seen.
func plain(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1 // turns the order of letters, or hides them
		}
		return r
	}, strings.ToValidUTF8(text, ""))), " ")
}

// robotTools are those the robot lists for anybody. Its reminders are left
// out where there are timers, which use them.
func (k *Thinker) robotTools(body Body) (all []turnTool) {
	for _, t := range body.Tools() {
		if t.UserOnly || k.Timers != nil && (strings.HasSuffix(t.Name, "_reminder") || strings.HasSuffix(t.Name, "_reminders")) {
			continue
		}
		schema := t.Schema
		schema.Type = "object"
		if schema.Properties == nil {
			schema.Properties = map[string]device.Argument{}
		}
		written, err := json.Marshal(schema)
		if err != nil {
			continue // a default that is no JSON; the tool cannot be described
		}
		all = append(all, turnTool{
			ModelTool: ModelTool{Name: t.Name, Description: Described(t.Description), Schema: written},
			run: func(ctx context.Context, args json.RawMessage) (string, error) {
				var named map[string]any
				if err := json.Unmarshal(args, &named); err != nil {
					return "", fmt.Errorf("read the arguments: %w", err)
				}
				result, err := body.Call(ctx, t.Name, named)
				if n := len(result.Pictures); n > 0 && err == nil && result.Text == "" {
					return "There is a picture, which cannot be shown here.", nil
				}
				return result.Text, err
			},
		})
	}
	return all
}

// sourceTools are those from elsewhere. All are asked at once: somebody waits.
func (k *Thinker) sourceTools(ctx context.Context) (all []turnTool) {
	ctx, cancel := context.WithTimeout(ctx, sourceWithin)
	defer cancel()
	found := make([][]ModelTool, len(k.Sources))
	var asking sync.WaitGroup
	for i, source := range k.Sources {
		asking.Go(func() { found[i] = source.Tools(ctx) })
	}
	asking.Wait()
	for i, source := range k.Sources {
		for _, t := range found[i] {
			all = append(all, turnTool{ModelTool: t, together: true, run: func(ctx context.Context, args json.RawMessage) (string, error) {
				return source.Call(ctx, t.Name, args)
			}})
		}
	}
	return all
}

// tellLeft tells of tools that are not offered, once while they are the same.
func (k *Thinker) tellLeft(names []string) {
	told := strings.Join(names, " ")
	k.left.mu.Lock()
	news := told != k.left.told
	k.left.told = told
	k.left.mu.Unlock()
	if news && len(names) > 0 {
		k.Log.Warn("some tools are not offered: there are too many, or a schema is too long or no JSON", "tools", len(names), "first", names[0])
	}
}

// run makes the calls of one message and returns what came back, in their
// order. What the robot and the house do is done one after the other; the
// rest meanwhile. It fails only where nobody listens any more.
func (th *thought) run(ctx context.Context, calls []ToolCall) ([]Message, error) {
	th.acted = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, failures := make([]Message, len(calls)), make([]error, len(calls))
	var others sync.WaitGroup
	answer := func(i int) {
		if answers[i], failures[i] = th.answer(ctx, calls[i]); failures[i] != nil {
			cancel()
		}
	}
	for i, call := range calls {
		if tool, _ := th.tools.find(call.Name); tool.together {
			others.Go(func() { answer(i) })
		}
	}
	for i, call := range calls {
		if tool, _ := th.tools.find(call.Name); !tool.together && ctx.Err() == nil {
			answer(i)
		}
	}
	others.Wait()
	for _, err := range failures {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	return answers, ctx.Err()
}

// find is the tool a model means.
func (s toolset) find(safe string) (turnTool, bool) {
	own, found := s.names.Own(safe)
	return s.byName[own], found
}

// answer makes one call, and tells of it. What goes wrong with the tool is
// told to the model; the error is that of who listens.
func (th *thought) answer(ctx context.Context, call ToolCall) (Message, error) {
	tool, found := th.tools.find(call.Name)
	if !found {
		tool.shown = clip(call.Name, mostDetail)
		tool.run = func(context.Context, json.RawMessage) (string, error) {
			return "", errNoTool
		}
	}
	status := event.ToolStatus{ID: rand.Text()[:12], Name: tool.shown, Status: event.ToolRunning, SubAgent: tool.agent}
	if err := th.status(status); err != nil {
		return Message{}, err
	}
	text, err := th.attempt(ctx, tool, call.Arguments)
	status.Status = event.ToolDone
	m := Message{Role: RoleTool, CallID: call.ID, Text: text}
	if err != nil {
		m.Text, m.Failed = "Error: "+clip(err.Error(), mostAnswer), true
		status.Status, status.Detail = event.ToolFailed, clip(speakable(err.Error()), mostDetail)
	}
	if ctx.Err() != nil {
		return Message{}, ctx.Err()
	}
	return m, th.status(status)
}

// attempt runs a tool within its time.
func (k *Thinker) attempt(ctx context.Context, tool turnTool, args json.RawMessage) (string, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if len(args) > mostArguments || args[0] != '{' || !json.Valid(args) {
		return "", fmt.Errorf("the arguments are not a JSON object of at most %d bytes", mostArguments)
	}
	ctx, cancel := context.WithTimeout(ctx, k.ToolWithin)
	defer cancel()
	text, err := tool.run(ctx, args)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("it did not answer within %s", k.ToolWithin)
	case err != nil:
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		text = "Done."
	}
	return clip(text, mostAnswer), nil
}

// clip is at most n bytes of a text.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
