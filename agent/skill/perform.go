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

// performance is a running skill.
type performance struct {
	Call
	ctx   context.Context
	skill Skill
	args  map[string]any
}

// unknownSentiment is the sentiment of being asked for an unknown skill.
const unknownSentiment = -0.3

// Perform performs a skill, and publishes its start and its end. A result without
// success is a failure with the output as error. An unknown skill's error wraps
// ErrUnknown. The arguments and a tool's answer are checked and bounded.
func (l *Library) Perform(ctx context.Context, c Call) (Result, error) {
	if err := elsewhere(c.Skill); err != nil {
		return Result{}, err
	}
	s, has := l.skillOf(c.Agent, c.Skill)
	if !has {
		feeling := unknownSentiment
		name := plain.Clip(agent.Speakable(c.Skill), mostNameLength)
		l.o.Publish(c.Robot, c.Session, event.SkillFailed{Skill: name, Error: ErrUnknown.Error(), By: c.by()})
		return Result{Output: ErrUnknown.Error(), Sentiment: &feeling}, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if c.Exposed && !s.Exposed {
		return Result{}, ErrHidden
	}
	if c.Untrusted && (s.builtin == nil || s.Name == "sign-action") {
		return Result{}, ErrDenied
	}
	return l.work(ctx, s, c, func(p *performance) (Result, error) {
		if err := fits(s.input(), p.args); err != nil {
			return Result{}, err
		}
		if s.builtin != nil {
			return s.builtin(l, p)
		}
		for _, t := range s.Tools {
			if t.Name == s.Handler {
				return l.use(p, t)
			}
		}
		return Result{Success: true}, nil // it consists of its gesture and its voice only
	})
}

// work calls do between the skill's start and its end.
func (l *Library) work(ctx context.Context, s Skill, c Call, do func(*performance) (Result, error)) (Result, error) {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	default:
		return Result{}, ErrBusy
	}
	p := &performance{Call: c, ctx: ctx, skill: s}
	var err error
	if p.args, err = arguments(c.Args); err != nil {
		return Result{}, err
	}
	written, err := json.Marshal(p.args)
	if err != nil {
		return Result{}, err
	}
	l.o.Publish(c.Robot, c.Session, event.SkillStarted{Skill: s.Name, Args: written, Gesture: s.Gesture, By: c.by()})
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
	if r.Output == "" && s.Voice != "" {
		r.Output = fill(s.Voice, p.args, r)
	}
	r.Output = plain.Clip(r.Output, limit.Data)
	l.o.Publish(c.Robot, c.Session, event.SkillDone{Skill: s.Name, Output: r.Output, Sentiment: r.Sentiment, By: c.by()})
	return r, nil
}

// arguments decodes the arguments of a skill.
func arguments(raw json.RawMessage) (map[string]any, error) {
	args := map[string]any{}
	if len(raw) == 0 || string(raw) == "null" {
		return args, nil
	}
	if len(raw) > limit.Instructions {
		return nil, fmt.Errorf("%w: they have more than %d bytes", ErrArguments, limit.Instructions)
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, fmt.Errorf("%w: they are no JSON object", ErrArguments)
	}
	return args, nil
}

// fill replaces {{names}} in a pattern by values of the arguments, or else of the
// result, whose text is {{output}}. Unknown names are removed.
func fill(pattern string, args map[string]any, r Result) string {
	found := map[string]any{"output": r.Output}
	if json.Unmarshal(r.Data, &found) != nil || found == nil { // a result that is not an object has no names
		found = map[string]any{"output": r.Output}
	}
	var b strings.Builder
	for {
		before, rest, begun := strings.Cut(pattern, "{{")
		b.WriteString(before)
		name, after, ended := strings.Cut(rest, "}}")
		if !begun || !ended {
			break
		}
		name = strings.TrimSpace(name)
		value, given := args[name]
		if !given {
			value = found[name]
		}
		switch value := value.(type) {
		case nil:
		case float64:
			b.WriteString(strconv.FormatFloat(value, 'f', -1, 64))
		default:
			fmt.Fprint(&b, value)
		}
		pattern = after
	}
	// A removed name leaves no space before punctuation.
	return strings.NewReplacer(", !", "!", ", .", ".", ", ?", "?", " ,", ",", " .", ".", " !", "!", " ?", "?").Replace(agent.Speakable(b.String()))
}

// use calls the tool's endpoint or server.
func (l *Library) use(p *performance, t Tool) (Result, error) {
	if err := fits(t.Schema, p.args); err != nil {
		return Result{}, err
	}
	if t.Server != "" {
		source := l.servers[p.skill.Name+"/"+t.Server]
		if source == nil {
			return Result{}, fmt.Errorf("the MCP server %s of the skill %s cannot be used here", t.Server, p.skill.Name)
		}
		written, err := json.Marshal(p.args)
		if err != nil {
			return Result{}, err
		}
		text, err := source.Call(p.ctx, t.Server+"."+t.Name, written)
		return Result{Success: err == nil, Output: text}, err
	}
	return l.post(p, t)
}

// post calls an HTTP endpoint. It answers with a result in JSON, or with plain text,
// which becomes the output.
func (l *Library) post(p *performance, t Tool) (Result, error) {
	base, err := url.Parse(t.URL)
	if err != nil {
		return Result{}, err
	}
	body, err := json.Marshal(map[string]any{"skill": p.skill.Name, "tool": t.Name, "args": p.args,
		"agentId": cmp.Or(p.Agent, agent.DefaultCharacter)})
	if err != nil {
		return Result{}, err
	}
	answer, err := l.client.Call(p.ctx, remote.Request{Method: http.MethodPost, Base: base, ContentType: "application/json", Body: body,
		Within: l.o.Within})
	if err != nil {
		return Result{}, err
	}
	defer answer.Close()
	data, err := answer.Whole(limit.Body)
	if err != nil {
		return Result{}, err
	}
	kind, _ := answer.Kind()
	if kind != "application/json" {
		return Result{Success: true, Output: agent.Speakable(plain.Clip(string(data), limit.Data))}, nil
	}
	r := Result{Success: true}
	if err := json.Unmarshal(data, &r); err != nil {
		return Result{}, fmt.Errorf("the endpoint of %s does not answer with {success, output, sentiment, data}", t.Name)
	}
	if r.Sentiment != nil {
		limited := min(max(*r.Sentiment, -1), 1)
		r.Sentiment = &limited
	}
	r.Output = agent.Speakable(plain.Clip(r.Output, limit.Data))
	return r, nil
}

// elsewhere returns why a known skill of the agent system is not available here.
func elsewhere(name string) error {
	if name == "present-model" || name == "validate-model" {
		return fmt.Errorf("%w here: %s is done by the program that shows the agent's model, which a robot has not", ErrElsewhere, name)
	}
	return nil
}
