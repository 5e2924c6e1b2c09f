package thinker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// ToolSource provides further tools, such as the tools of an MCP server.
type ToolSource interface {
	// Tools returns the tools under their original names. If ctx ends before the source has listed
	// all its tools, Tools returns the tools listed so far.
	Tools(ctx context.Context) []Tool
	// Call runs the tool with this name.
	Call(ctx context.Context, name string, args json.RawMessage) (text string, err error)
}

// Bounds of tools and their descriptions.
const (
	maxTools       = 100                    // number of tools
	maxDescription = 1024                   // length of a description, in bytes
	maxOwn         = 500                    // length of a description by a robot, in letters
	sourceWithin   = 300 * time.Millisecond // time for a source to list its tools
)

// toolset holds the tools of one turn.
type toolset struct {
	names   device.ModelNames
	offered []Tool
	byName  map[string]turnTool // key: original name
}

// turnTool is a tool within a turn.
type turnTool struct {
	Tool            // with its original name
	together bool   // whether it may run concurrently with others
	agent    bool   // whether it is another agent
	shown    string // name on screens
	private  bool   // whether screens must not show the arguments
	run      func(ctx context.Context, args json.RawMessage) (string, error)
}

// toolsOf collects the tools of a turn: of the appliance, of the robot, of the sources and of skills.
// Tools of the appliance and of skills use hooks. At most maxTools tools are offered; those with an
// invalid or too long schema are left out.
func (k *Brain) toolsOf(ctx context.Context, t agent.Turn, hooks turnHooks) toolset {
	all := k.ownTools(t, hooks)
	if t.Body != nil {
		all = append(all, k.robotTools(t.Body)...)
	}
	if !t.Untrusted { // the tools of sources may control the home
		all = append(all, k.sourceTools(ctx)...)
	}
	all = k.withSkills(t, hooks, all)
	set := toolset{byName: map[string]turnTool{}}
	var accepted []turnTool
	var named []device.Tool
	var omitted []string
	for _, tool := range all {
		if len(accepted) == maxTools || len(tool.Schema) > limit.Result || !json.Valid(tool.Schema) {
			omitted = append(omitted, plain.Clip(tool.Name, limit.Name))
			continue
		}
		tool.shown = plain.Clip(tool.Name, limit.Name)
		for own, i := tool.Name, 2; set.byName[tool.Name].run != nil; i++ {
			tool.Name = fmt.Sprintf("%s#%d", own, i) // another source has a tool with the same name
		}
		tool.Description = plain.Clip(plain.Text(plain.Line(agent.Speakable(tool.Description))), maxDescription)
		set.byName[tool.Name] = tool
		accepted, named = append(accepted, tool), append(named, device.Tool{Name: tool.Name})
	}
	k.logLeftOut(omitted)
	set.names = device.NewModelNames(named)
	for _, tool := range accepted {
		offer := tool.Tool
		offer.Name, offer.Schema = set.names.Safe(tool.Name), completeSchema(tool.Schema)
		set.offered = append(set.offered, offer)
	}
	return set
}

// ToolDescription returns a robot's description of a tool as one line of at most maxOwn letters without control
// characters. The description is not trusted, because the robot may not be the owner's.
func ToolDescription(text string) string {
	text = plain.Text(plain.Line(agent.Speakable(text)))
	n := 0
	for at := range text {
		if n++; n > maxOwn {
			return text[:at]
		}
	}
	return text
}

// robotTools returns the tools of a robot. If the brain has timers, the robot's tools for reminders are left out,
// because only Options.Timers may call them.
func (k *Brain) robotTools(body agent.Body) (all []turnTool) {
	for _, t := range body.Tools() {
		if k.Timers != nil && (strings.HasSuffix(t.Name, "_reminder") || strings.HasSuffix(t.Name, "_reminders")) {
			continue
		}
		schema := t.Schema
		schema.Type = "object"
		if schema.Properties == nil {
			schema.Properties = map[string]device.Argument{}
		}
		written, err := json.Marshal(schema)
		if err != nil {
			continue // a default value is not JSON
		}
		all = append(all, turnTool{
			Tool: Tool{Name: t.Name, Description: ToolDescription(t.Description), Schema: written},
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

// sourceTools returns the tools of the sources. It queries them concurrently, because a person waits.
func (k *Brain) sourceTools(ctx context.Context) (all []turnTool) {
	ctx, cancel := context.WithTimeout(ctx, sourceWithin)
	defer cancel()
	found := make([][]Tool, len(k.Sources))
	var queries sync.WaitGroup
	for i, source := range k.Sources {
		queries.Go(func() { found[i] = source.Tools(ctx) })
	}
	queries.Wait()
	for i, source := range k.Sources {
		for _, t := range found[i] {
			all = append(all, turnTool{Tool: t, together: true, run: func(ctx context.Context, args json.RawMessage) (string, error) {
				return source.Call(ctx, t.Name, args)
			}})
		}
	}
	return all
}

// logLeftOut logs how many tools are not offered, and the first of these names, if names has changed since the last call.
func (k *Brain) logLeftOut(names []string) {
	all := strings.Join(names, " ")
	if before, _ := k.leftOut.Swap(all).(string); before != all && len(names) > 0 {
		k.Log.Warn("some tools are not offered: there are too many, or a schema is too long or not JSON", "tools", len(names), "first", names[0])
	}
}

// run makes the calls of one message and returns their results in the same order.
// Calls of tools that may not run together run one after the other, all others concurrently.
// It fails only if ctx ends or sending replies fails.
func (r *turnRun) run(ctx context.Context, calls []ToolCall) ([]Message, error) {
	if err := r.turn.Settle(ctx); err != nil {
		return nil, err
	}
	r.acted = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, failures := make([]Message, len(calls)), make([]error, len(calls))
	var others sync.WaitGroup
	answer := func(i int) {
		if answers[i], failures[i] = r.answer(ctx, calls[i]); failures[i] != nil {
			cancel()
		}
	}
	for i, call := range calls {
		if tool, _ := r.tools.lookup(call.Name); tool.together {
			others.Go(func() { answer(i) })
		}
	}
	for i, call := range calls {
		if tool, _ := r.tools.lookup(call.Name); !tool.together && ctx.Err() == nil {
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

// lookup returns the tool for the name in a call of the model.
func (s toolset) lookup(safe string) (turnTool, bool) {
	own, found := s.names.Own(safe)
	return s.byName[own], found
}

// answer makes one call, and sends its status as replies. A tool's error becomes the result for the model.
// answer fails only if sending a reply fails or ctx ends.
func (r *turnRun) answer(ctx context.Context, call ToolCall) (Message, error) {
	tool, found := r.tools.lookup(call.Name)
	if !found {
		tool.shown = plain.Clip(call.Name, limit.Name)
		tool.run = func(context.Context, json.RawMessage) (string, error) {
			return "", errNoTool
		}
	}
	status := event.ToolStatus{ID: rand.Text()[:12], Name: tool.shown, Status: event.ToolRunning, SubAgent: tool.agent}
	if !tool.private {
		status.Detail = argumentSummary(call.Arguments)
	}
	if err := r.send(agent.ToolStatus{ToolStatus: status}); err != nil {
		return Message{}, err
	}
	text, err := runTool(ctx, tool, call.Arguments)
	status.Status = event.ToolDone
	m := Message{Role: RoleTool, CallID: call.ID, Text: text}
	if err != nil {
		m.Text, m.Failed = "Error: "+plain.Clip(err.Error(), limit.Result), true
		status.Status, status.Detail = event.ToolFailed, plain.Clip(agent.Speakable(err.Error()), limit.Name)
	}
	if ctx.Err() != nil {
		return Message{}, ctx.Err()
	}
	return m, r.send(agent.ToolStatus{ToolStatus: status})
}

// argumentSummary returns the arguments of a call as one line for screens, without texts that look like keys.
func argumentSummary(args json.RawMessage) string {
	var values map[string]any
	if json.Unmarshal(args, &values) != nil {
		return ""
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, isText := values[key].(string)
		if !isText {
			encoded, _ := json.Marshal(values[key]) // cannot fail: the value was decoded from JSON
			value = string(encoded)
		}
		if len(values) > 1 {
			value = key + ": " + value
		}
		parts = append(parts, value)
	}
	return plain.Text(plain.Line(remote.Redact(strings.Join(parts, ", "), limit.Name)))
}

// runTool runs a tool within toolWithin. args may be empty or null, which means no arguments.
func runTool(ctx context.Context, tool turnTool, args json.RawMessage) (string, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if len(args) > limit.Instructions || args[0] != '{' || !json.Valid(args) {
		return "", fmt.Errorf("the arguments are not a JSON object of at most %d bytes", limit.Instructions)
	}
	ctx, cancel := context.WithTimeout(ctx, toolWithin)
	defer cancel()
	text, err := tool.run(ctx, args)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("it did not answer within %s", toolWithin)
	case err != nil:
		return "", err
	}
	return plain.Clip(cmp.Or(strings.TrimSpace(text), "Done."), limit.Result), nil
}

// TurnTools offers the tools of a turn to a model that does not belong to the Brain, such as a coding agent. They
// are the same tools that the Brain offers its own model. A TurnTools is safe for concurrent use.
type TurnTools struct {
	set   toolset
	slot  chan struct{} // held by a call that may not run concurrently with others
	acted atomic.Bool   // whether a tool has run

	after agent.End    // what the robot does after the turn; guarded by slot
	end   atomic.Value // copy of after that Outcome may read at any time
}

// TurnTools collects the tools of a turn. The tools send replies through reply, which must
// be safe for concurrent use until the turn ends. If reply is nil, the tool speak is left out,
// and the other tools send no replies.
func (k *Brain) TurnTools(ctx context.Context, t agent.Turn, reply func(...agent.Reply) error) *TurnTools {
	u := &TurnTools{slot: make(chan struct{}, 1)}
	u.set = k.toolsOf(ctx, t, turnHooks{&u.after, reply})
	return u
}

// Offered lists the tools, under names that all models accept.
func (u *TurnTools) Offered() []Tool { return u.set.offered }

// Acted reports whether a tool has run.
func (u *TurnTools) Acted() bool { return u.acted.Load() }

// Outcome returns how the turn ends if a tool has set it, otherwise "".
func (u *TurnTools) Outcome() agent.End {
	end, _ := u.end.Load().(agent.End)
	return end
}

// errNoTool is the result of a call to a tool that was not offered.
var errNoTool = errors.New("there is no such tool; use one of those offered")

// Call runs a tool. Its error is written for the model.
func (u *TurnTools) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	tool, found := u.set.lookup(name)
	if !found {
		return "", errNoTool
	}
	if !tool.together {
		select {
		case u.slot <- struct{}{}:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		defer func() {
			u.end.Store(u.after)
			<-u.slot
		}()
	}
	u.acted.Store(true)
	text, err := runTool(ctx, tool, args)
	if err != nil {
		err = errors.New(plain.Clip(err.Error(), limit.Result))
	}
	return text, err
}
