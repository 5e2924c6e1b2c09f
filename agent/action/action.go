// Package action represents what an agent does as actions of the three.ws agent system,
// which have one of fourteen types. Of converts Perch's events to actions, and Action.Event
// converts the actions of viewers to events. A viewer is a program that shows a character. A
// Log stores the latest actions of each character, and Rates limits the rate of viewers'
// actions. The HTTP API for viewers and the diary use the package.
//
// Nothing in the package opens a connection or reads a clock.
package action

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Type is the type of an action.
type Type string

// The types.
const (
	Speak        Type = "speak"
	Think        Type = "think"
	Gesture      Type = "gesture"
	Emote        Type = "emote"
	LookAt       Type = "look-at"
	PerformSkill Type = "perform-skill"
	SkillDone    Type = "skill-done"
	SkillError   Type = "skill-error"
	Remember     Type = "remember"
	Sign         Type = "sign"
	LoadStart    Type = "load-start"
	LoadEnd      Type = "load-end"
	Validate     Type = "validate"
	Presence     Type = "presence"
)

// Types returns all types.
func Types() []Type {
	return []Type{Speak, Think, Gesture, Emote, LookAt, PerformSkill, SkillDone, SkillError, Remember, Sign, LoadStart, LoadEnd, Validate, Presence}
}

// Valid reports whether t is one of Types.
func (t Type) Valid() bool { return slices.Contains(Types(), t) }

// Action is one action of an agent.
type Action struct {
	Type      Type            `json:"type"`
	Payload   json.RawMessage `json:"payload"`     // a JSON object with fields that depend on the type
	Timestamp int64           `json:"timestamp"`   // milliseconds since 1970
	Agent     string          `json:"agentId"`     // ID of the character
	Skill     *string         `json:"sourceSkill"` // name of the running skill, or null
}

// Sentiment returns the sentiment of a text, from -1 to 1.
type Sentiment func(text string) float64

// Limits of a viewer's action.
const (
	maxGestureDuration = 60_000    // milliseconds
	maxFindings        = 1_000_000 // errors, or warnings, of a validation
)

// The payloads as the agent system defines them, with the additional field By. By is
// event.ByViewer if a viewer has reported the action; some events have other values, such as
// event.ByModel. Action.Event ignores By.
type (
	speech struct {
		Text      string  `json:"text"`
		Sentiment float64 `json:"sentiment"` // from -1 to 1
		By        string  `json:"by,omitempty"`
	}
	thought struct {
		Thought string `json:"thought"`
		Brain   string `json:"brain,omitempty"`
		By      string `json:"by,omitempty"`
	}
	gesture struct {
		Name     string  `json:"name"`
		Duration float64 `json:"duration,omitempty"` // milliseconds
		By       string  `json:"by,omitempty"`
	}
	emote struct {
		Trigger string   `json:"trigger"`
		Weight  *float64 `json:"weight"` // from 0 to 1
		By      string   `json:"by,omitempty"`
	}
	look struct {
		Target string `json:"target"`
		By     string `json:"by,omitempty"`
	}
	perform struct {
		Skill string          `json:"skill"`
		Args  json.RawMessage `json:"args,omitempty"`
		Hint  string          `json:"animationHint,omitempty"`
		By    string          `json:"by,omitempty"`
	}
	result struct {
		Success   *bool           `json:"success"`
		Output    string          `json:"output"`
		Sentiment *float64        `json:"sentiment,omitempty"`
		Data      json.RawMessage `json:"data,omitempty"`
	}
	done struct {
		Skill  string `json:"skill"`
		Result result `json:"result"`
		By     string `json:"by,omitempty"`
	}
	failure struct {
		Skill string `json:"skill"`
		Error string `json:"error"`
		By    string `json:"by,omitempty"`
	}
	memory struct {
		Type    string `json:"type"`
		Content string `json:"content"`
		Name    string `json:"name,omitempty"`
		ID      string `json:"id,omitempty"`
		Body    string `json:"body,omitempty"` // some viewers send this instead of content
		By      string `json:"by,omitempty"`
	}
	signature struct {
		Message   string `json:"message"`
		Address   string `json:"address"`
		Signature string `json:"signature,omitempty"`
		By        string `json:"by,omitempty"`
	}
	load struct {
		URI   string `json:"uri"`
		Error string `json:"error,omitempty"`
		By    string `json:"by,omitempty"`
	}
	validation struct {
		Errors   count  `json:"errors"`
		Warnings count  `json:"warnings"`
		By       string `json:"by,omitempty"`
	}
	state struct {
		State string `json:"state"`
		By    string `json:"by,omitempty"`
	}
)

// count is the number of errors, or of warnings, that a validation has found.
type count int

// UnmarshalJSON parses a number, or a list whose elements it counts.
func (c *count) UnmarshalJSON(text []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil {
		*c = count(len(list))
		return nil
	}
	return json.Unmarshal(text, (*int)(c))
}

// Of returns the action that an event reports. agent is the ID of the acting character. ok is
// false if the event does not report an action. sentiment may be nil, which makes every text
// neutral.
func Of(e event.Envelope, agent string, sentiment Sentiment) (a Action, ok bool) {
	kind, payload, skill := fromEvent(e.Event, sentiment)
	if kind == "" {
		return Action{}, false
	}
	text, err := json.Marshal(payload)
	if err != nil { // the arguments of a skill are not valid JSON
		return Action{}, false
	}
	a = Action{Type: kind, Payload: text, Timestamp: e.At.UnixMilli(), Agent: agent}
	if skill != "" {
		a.Skill = &skill
	}
	return a, true
}

// fromEvent returns the type, the payload and the skill of the action that an event reports.
// The type is "" if the event does not report an action.
func fromEvent(e event.Event, sentiment Sentiment) (kind Type, payload any, skill string) {
	switch e := e.(type) {
	case event.Said:
		s := speech{Text: plain.Clip(e.Text, limit.Text), By: e.By}
		if sentiment != nil {
			s.Sentiment = sentiment(s.Text)
		}
		return Speak, s, ""
	case event.ThinkingStarted:
		return Think, thought{Brain: e.Brain}, ""
	case event.Thought:
		return Think, thought{Thought: plain.Clip(e.Text, limit.Text), By: e.By}, ""
	case event.Gesture:
		return Gesture, gesture{plain.Clip(e.Name, limit.Name), float64(e.Duration), e.By}, e.Skill
	case event.Emote:
		return Emote, emote{plain.Clip(e.Trigger, limit.Name), &e.Weight, event.ByViewer}, ""
	case event.LookAt:
		target := e.Target
		if target == "center" {
			target = "model" // the name in the agent system
		}
		return LookAt, look{target, e.By}, ""
	case event.Remembered:
		return Remember, memory{Type: e.Type, Content: plain.Clip(e.Body, limit.Text), Name: plain.Clip(e.Name, limit.Name), ID: e.ID, By: e.By}, ""
	case event.Signed:
		return Sign, signature{plain.Clip(e.Message, limit.Text), plain.Clip(e.Address, limit.Name), plain.Clip(e.Signature, limit.Name), e.By}, ""
	case event.SkillStarted:
		p := perform{Skill: plain.Clip(e.Skill, limit.Name), Hint: plain.Clip(e.Gesture, limit.Name), By: e.By}
		if len(e.Args) <= limit.Said {
			p.Args = e.Args
		}
		return PerformSkill, p, e.Skill
	case event.SkillDone:
		success := true
		return SkillDone, done{plain.Clip(e.Skill, limit.Name), result{&success, plain.Clip(e.Output, limit.Text), e.Sentiment, e.Data}, e.By}, e.Skill
	case event.SkillFailed:
		return SkillError, failure{plain.Clip(e.Skill, limit.Name), plain.Clip(e.Error, limit.Text), e.By}, e.Skill
	case event.LoadStarted:
		return LoadStart, load{URI: plain.Clip(e.URI, limit.Line), By: event.ByViewer}, ""
	case event.LoadEnded:
		return LoadEnd, load{plain.Clip(e.URI, limit.Line), plain.Clip(e.Error, limit.Text), event.ByViewer}, ""
	case event.Validated:
		return Validate, validation{count(e.Errors), count(e.Warnings), event.ByViewer}, ""
	case event.Presence:
		return Presence, state{plain.Clip(e.State, limit.Name), e.By}, ""
	}
	return "", nil, ""
}

// Private reports whether only the owner may see actions of a type, because the actions
// contain remembered facts or signed messages.
func (t Type) Private() bool { return t == Remember || t == Sign }

// Shown returns the form of the action that a viewer may see: without the arguments, the output
// and the data of a skill. ok is false if the type is private.
func (a Action) Shown() (shown Action, ok bool) {
	switch a.Type {
	case PerformSkill:
		a.Payload = editPayload(a.Payload, func(p *perform) { p.Args = nil })
	case SkillDone:
		a.Payload = editPayload(a.Payload, func(p *done) { p.Result.Output, p.Result.Data = "", nil })
	}
	return a, !a.Type.Private()
}

// editPayload decodes a payload, calls edit and encodes it again. It returns an empty object
// for an invalid payload.
func editPayload[P any](payload json.RawMessage, edit func(*P)) json.RawMessage {
	var p P
	decodeErr := json.Unmarshal(payload, &p)
	edit(&p)
	text, err := json.Marshal(p)
	if decodeErr != nil || err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// ErrBad is wrapped by the errors for an invalid action.
var ErrBad = errors.New("not an action")

// bad returns an error that wraps ErrBad.
func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBad, fmt.Sprintf(format, args...))
}

// Event returns the event for a viewer's action. Errors wrap ErrBad and name the invalid
// field.
func (a Action) Event() (event.Event, error) {
	e, err := toEvent(a.Type, a.Payload)
	if g, ok := e.(event.Gesture); ok && a.Skill != nil {
		g.Skill = plain.Clip(*a.Skill, limit.Name)
		e = g
	}
	return e, err
}

// typeNames returns the names of all types, separated by commas.
func typeNames() string {
	var names []string
	for _, t := range Types() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// toEvent returns the event for a type and a payload from a viewer.
func toEvent(kind Type, payload json.RawMessage) (event.Event, error) {
	switch kind {
	case Speak:
		return decodePayload(payload, func(p speech) (event.Event, error) {
			return event.Said{Text: p.Text, By: event.ByViewer}, requireText("text", p.Text, limit.Text)
		})
	case Think:
		return decodePayload(payload, func(p thought) (event.Event, error) {
			return event.Thought{Text: p.Thought, By: event.ByViewer}, requireText("thought", p.Thought, limit.Text)
		})
	case Gesture:
		return decodePayload(payload, gesture.event)
	case Emote:
		return decodePayload(payload, emote.event)
	case LookAt:
		return decodePayload(payload, look.event)
	case Remember:
		return decodePayload(payload, memory.event)
	case Sign:
		return decodePayload(payload, signature.event)
	case PerformSkill:
		return decodePayload(payload, perform.event)
	case SkillDone:
		return decodePayload(payload, done.event)
	case SkillError:
		return decodePayload(payload, func(p failure) (event.Event, error) {
			return event.SkillFailed{Skill: p.Skill, Error: p.Error, By: event.ByViewer},
				errors.Join(requireText("skill", p.Skill, limit.Name), checkLength("error", p.Error, limit.Text))
		})
	case LoadStart:
		return decodePayload(payload, func(p load) (event.Event, error) {
			return event.LoadStarted{URI: p.URI}, requireText("uri", p.URI, limit.Line)
		})
	case LoadEnd:
		return decodePayload(payload, func(p load) (event.Event, error) {
			return event.LoadEnded{URI: p.URI, Error: p.Error}, errors.Join(checkLength("uri", p.URI, limit.Line), checkLength("error", p.Error, limit.Text))
		})
	case Validate:
		return decodePayload(payload, validation.event)
	case Presence:
		return decodePayload(payload, func(p state) (event.Event, error) {
			return event.Presence{State: p.State, By: event.ByViewer}, requireText("state", p.State, limit.Name)
		})
	}
	return nil, bad("there is no type %.40q; the types are %s", kind, typeNames())
}

// decodePayload decodes a payload and converts it to an event.
func decodePayload[P any](payload json.RawMessage, toEvent func(P) (event.Event, error)) (event.Event, error) {
	var p P
	if len(payload) == 0 || payload[0] != '{' {
		return nil, bad("payload is an object")
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		var typeErr *json.UnmarshalTypeError
		if errors.As(err, &typeErr) && typeErr.Field != "" {
			return nil, bad("payload.%.60s may not be a JSON %s", typeErr.Field, typeErr.Value)
		}
		return nil, bad("payload is not the expected object for this type")
	}
	e, err := toEvent(p)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (p gesture) event() (event.Event, error) {
	err := requireText("name", p.Name, limit.Name)
	if !(p.Duration >= 0 && p.Duration <= maxGestureDuration) {
		err = errors.Join(err, bad("payload.duration is milliseconds, from 0 to %d", maxGestureDuration))
	}
	return event.Gesture{Name: p.Name, Duration: int64(p.Duration), By: event.ByViewer}, err
}

// defaultWeight is the weight of an emote that has no weight.
const defaultWeight = .7

func (p emote) event() (event.Event, error) {
	weight := defaultWeight
	if p.Weight != nil {
		weight = *p.Weight
	}
	switch p.Trigger {
	case "concern", "celebration", "patience", "curiosity", "empathy", "uncertain":
	default:
		return nil, bad("payload.trigger is concern, celebration, patience, curiosity, empathy or uncertain, not %.40q", p.Trigger)
	}
	if !(weight >= 0 && weight <= 1) {
		return nil, bad("payload.weight is a number from 0 to 1")
	}
	return event.Emote{Trigger: p.Trigger, Weight: weight}, nil
}

func (p look) event() (event.Event, error) {
	switch p.Target {
	case "user", "camera", "center", "model":
		return event.LookAt{Target: p.Target, By: event.ByViewer}, nil
	}
	return nil, bad("payload.target is model, user, camera or center, not %.40q", p.Target)
}

func (p perform) event() (event.Event, error) {
	err := errors.Join(requireText("skill", p.Skill, limit.Name), checkLength("animationHint", p.Hint, limit.Name))
	if len(p.Args) > limit.Said {
		err = errors.Join(err, bad("payload.args has at most %d bytes", limit.Said))
	}
	if len(p.Args) > 0 && string(p.Args) != "null" && p.Args[0] != '{' {
		err = errors.Join(err, bad("payload.args is an object"))
	}
	return event.SkillStarted{Skill: p.Skill, Args: p.Args, Gesture: p.Hint, By: event.ByViewer}, err
}

func (p done) event() (event.Event, error) {
	err := errors.Join(requireText("skill", p.Skill, limit.Name), checkLength("result.output", p.Result.Output, limit.Text))
	if s := p.Result.Sentiment; s != nil && !(math.Abs(*s) <= 1) {
		err = errors.Join(err, bad("payload.result.sentiment is a number from -1 to 1"))
	}
	if len(p.Result.Data) > limit.Said {
		err = errors.Join(err, bad("payload.result.data has at most %d bytes", limit.Said))
	}
	if p.Result.Success != nil && !*p.Result.Success {
		return event.SkillFailed{Skill: p.Skill, Error: p.Result.Output, By: event.ByViewer}, err
	}
	return event.SkillDone{Skill: p.Skill, Output: p.Result.Output, Sentiment: p.Result.Sentiment, Data: p.Result.Data, By: event.ByViewer}, err
}

func (p memory) event() (event.Event, error) {
	p.Content, p.Type = cmp.Or(p.Content, p.Body), cmp.Or(p.Type, "user")
	switch p.Type {
	case "user", "feedback", "project", "reference":
	default:
		return nil, bad("payload.type is user, feedback, project or reference, not %.40q", p.Type)
	}
	return event.Remembered{Type: p.Type, Name: p.Name, Body: p.Content, By: event.ByViewer},
		errors.Join(requireText("content", p.Content, limit.Text), checkLength("name", p.Name, limit.Name))
}

// applianceAddressPrefix is the prefix of the address of Perch's own key (see package diary).
// Viewers use other keys and may not claim such an address.
const applianceAddressPrefix = "ed25519:"

func (p signature) event() (event.Event, error) {
	err := errors.Join(requireText("message", p.Message, limit.Text), requireText("address", p.Address, limit.Name), checkLength("signature", p.Signature, limit.Name))
	if strings.ContainsFunc(p.Address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		err = errors.Join(err, bad("payload.address is not one word of ASCII"))
	}
	if strings.HasPrefix(strings.ToLower(p.Address), applianceAddressPrefix) {
		err = errors.Join(err, bad("payload.address must not begin with %s, which is for the appliance's key", applianceAddressPrefix))
	}
	return event.Signed{Message: p.Message, Address: p.Address, Signature: p.Signature, By: event.ByViewer}, err
}

func (p validation) event() (event.Event, error) {
	if p.Errors < 0 || p.Warnings < 0 || p.Errors > maxFindings || p.Warnings > maxFindings {
		return nil, bad("payload.errors and payload.warnings are numbers from 0 to %d, or lists", maxFindings)
	}
	return event.Validated{Errors: int(p.Errors), Warnings: int(p.Warnings)}, nil
}

// requireText checks that a text field is not empty and has at most maxBytes bytes.
func requireText(field, text string, maxBytes int) error {
	if strings.TrimSpace(text) == "" {
		return bad("payload.%s is needed", field)
	}
	return checkLength(field, text, maxBytes)
}

// checkLength checks that a text field has at most maxBytes bytes.
func checkLength(field, text string, maxBytes int) error {
	if len(text) > maxBytes {
		return bad("payload.%s has at most %d bytes, not %d", field, maxBytes, len(text))
	}
	return nil
}
