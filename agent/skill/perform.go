package skill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"perch/agent"
	"perch/event"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// performance is one run of a skill.
type performance struct {
	Call
	ctx   context.Context // context of the call
	skill Skill
	args  map[string]any // the decoded Call.Args
}

// unknownSentiment is the sentiment of the result for an unknown skill.
const unknownSentiment = -0.3

// Perform performs a skill and publishes its start and its end. A tool's result without
// Success is returned as an error with the output as its message. If the character does not
// have the skill, Perform publishes a failure, and returns an error that wraps ErrUnknown
// and a result with an output and a sentiment. If the skill is not started for another reason,
// Perform publishes nothing; the error is or wraps ErrElsewhere, ErrHidden, ErrDenied, ErrBusy or
// ErrArguments.
func (l *Library) Perform(ctx context.Context, c Call) (Result, error) {
	if err := checkElsewhere(c.Skill); err != nil {
		return Result{}, err
	}
	s, ok := l.skillOf(c.Agent, c.Skill)
	if !ok {
		sentiment := unknownSentiment
		name := plain.Clip(agent.Speakable(c.Skill), maxNameLength)
		l.o.Publish(c.Robot, c.Session, event.SkillFailed{Skill: name, Error: ErrUnknown.Error(), By: c.by()})
		return Result{Output: ErrUnknown.Error(), Sentiment: &sentiment}, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if c.Exposed && !s.Exposed {
		return Result{}, ErrHidden
	}
	if c.Untrusted && (s.builtin == nil || s.Name == "sign-action") {
		return Result{}, ErrDenied
	}
	return l.run(ctx, s, c, func(p *performance) (Result, error) {
		if err := checkArguments(s.input(), p.args); err != nil {
			return Result{}, err
		}
		if s.builtin != nil {
			return s.builtin(l, p)
		}
		for _, t := range s.Tools {
			if t.Name == s.Handler {
				return l.callTool(p, t)
			}
		}
		return Result{Success: true}, nil // without a handler, a skill only gestures and speaks
	})
}

// run publishes the start of a skill and its gesture, calls do and publishes the end. It
// does nothing but return an error if too many skills are running or the arguments are not
// a JSON object.
func (l *Library) run(ctx context.Context, s Skill, c Call, do func(*performance) (Result, error)) (Result, error) {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	default:
		return Result{}, ErrBusy
	}
	p := &performance{Call: c, ctx: ctx, skill: s}
	var err error
	if p.args, err = decodeArguments(c.Args); err != nil {
		return Result{}, err
	}
	encoded, err := json.Marshal(p.args)
	if err != nil {
		return Result{}, err
	}
	l.o.Publish(c.Robot, c.Session, event.SkillStarted{Skill: s.Name, Args: encoded, Gesture: s.Gesture, By: c.by()})
	if s.Gesture != "" {
		l.o.Publish(c.Robot, c.Session, event.Gesture{Name: s.Gesture, By: event.BySkill, Skill: s.Name})
	}
	r, err := do(p)
	if err == nil && !r.Success {
		err = errors.New(cmp.Or(r.Output, "the skill did not succeed"))
	}
	if err != nil {
		l.o.Publish(c.Robot, c.Session, event.SkillFailed{Skill: s.Name, Error: plain.Clip(agent.Speakable(err.Error()), limit.Data), By: c.by()})
		return Result{}, err
	}
	r.Speech = plain.Clip(fillPattern(s.Voice, p.args, r), limit.Data)
	r.Output = plain.Clip(cmp.Or(r.Output, r.Speech), limit.Data)
	done := event.SkillDone{Skill: s.Name, Output: r.Output, Sentiment: r.Sentiment, By: c.by()}
	if len(r.Data) <= limit.Said {
		done.Data = r.Data
	}
	l.o.Publish(c.Robot, c.Session, done)
	return r, nil
}

// decodeArguments decodes the arguments of a skill. An empty text or null means no arguments.
// Errors wrap ErrArguments.
func decodeArguments(raw json.RawMessage) (map[string]any, error) {
	args := map[string]any{}
	if len(raw) == 0 || string(raw) == "null" {
		return args, nil
	}
	if len(raw) > limit.Instructions {
		return nil, fmt.Errorf("%w: they have more than %d bytes", ErrArguments, limit.Instructions)
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, fmt.Errorf("%w: they are not a JSON object", ErrArguments)
	}
	return args, nil
}

// fillPattern replaces each {{name}} in a pattern by the argument with this name or,
// without such an argument, by the value with this name in the result's data. Otherwise
// {{output}} is replaced by the result's output, and unknown names are removed.
func fillPattern(pattern string, args map[string]any, r Result) string {
	values := map[string]any{"output": r.Output}
	if json.Unmarshal(r.Data, &values) != nil || values == nil { // the data is not an object
		values = map[string]any{"output": r.Output}
	}
	text := variableFormat().ReplaceAllStringFunc(pattern, func(variable string) string {
		name := strings.TrimSpace(variable[2 : len(variable)-2])
		value, ok := args[name]
		if !ok {
			value = values[name]
		}
		switch value := value.(type) {
		case nil:
			return ""
		case float64:
			return strconv.FormatFloat(value, 'f', -1, 64)
		}
		return fmt.Sprint(value)
	})
	// Remove the commas and spaces that a removed name has left before punctuation.
	return strings.NewReplacer(", !", "!", ", .", ".", ", ?", "?", " ,", ",", " .", ".", " !", "!", " ?", "?").Replace(agent.Speakable(text))
}

// callTool checks the arguments of a tool, and calls the tool's endpoint or MCP server.
func (l *Library) callTool(p *performance, t Tool) (Result, error) {
	if err := checkArguments(t.Schema, p.args); err != nil {
		return Result{}, err
	}
	if t.Server != "" {
		source := l.servers[p.skill.Name+"/"+t.Server]
		if source == nil {
			return Result{}, fmt.Errorf("the MCP server %s of the skill %s cannot be used here", t.Server, p.skill.Name)
		}
		encoded, err := json.Marshal(p.args)
		if err != nil {
			return Result{}, err
		}
		text, err := source.Call(p.ctx, t.Server+"."+t.Name, encoded)
		return Result{Success: err == nil, Output: text}, err
	}
	return l.callEndpoint(p, t)
}

// callEndpoint calls a tool's HTTP endpoint. A response of the type application/json is a Result.
// The text of any other response becomes the output.
func (l *Library) callEndpoint(p *performance, t Tool) (Result, error) {
	base, err := url.Parse(t.URL)
	if err != nil {
		return Result{}, err
	}
	body, err := json.Marshal(map[string]any{"skill": p.skill.Name, "tool": t.Name, "args": p.args,
		"agentId": cmp.Or(p.Agent, agent.DefaultCharacter)})
	if err != nil {
		return Result{}, err
	}
	response, err := l.client.Call(p.ctx, remote.Request{Method: http.MethodPost, Base: base, ContentType: "application/json", Body: body,
		Within: l.o.Within})
	if err != nil {
		return Result{}, err
	}
	defer response.Close()
	data, err := response.Whole(limit.Body)
	if err != nil {
		return Result{}, err
	}
	contentType, _ := response.Kind()
	if contentType != "application/json" {
		return Result{Success: true, Output: agent.Speakable(plain.Clip(string(data), limit.Data))}, nil
	}
	r := Result{Success: true}
	if err := json.Unmarshal(data, &r); err != nil {
		return Result{}, fmt.Errorf("the endpoint of %s did not return {success, output, sentiment, data}", t.Name)
	}
	if r.Sentiment != nil {
		clamped := min(max(*r.Sentiment, -1), 1)
		r.Sentiment = &clamped
	}
	r.Output = agent.Speakable(plain.Clip(r.Output, limit.Data))
	return r, nil
}

// checkElsewhere returns an error that wraps ErrElsewhere if name is a skill that only viewers
// (programs that show the agent) implement.
func checkElsewhere(name string) error {
	if name == "present-model" || name == "validate-model" {
		return fmt.Errorf("%w here: %s needs a program that shows the agent's model", ErrElsewhere, name)
	}
	return nil
}
