package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perch/agent"
	"perch/device"
)

// builtins are the skills that every character has, by name. sign-action is there
// if there is a key to sign with, and remember if there is a memory.
func builtins(o Options) map[string]Skill {
	all := map[string]Skill{}
	add := func(s Skill, schema string, run func(*Library, *performance) (Result, error)) {
		s.Version, s.Input, s.builtin = "1.0.0", json.RawMessage(schema), run
		all[s.Name] = s
	}
	add(Skill{Name: "greet", Description: "Greet somebody.", Gesture: "wave", Voice: "Hello, {{name}}!", Exposed: true},
		`{"type":"object","properties":{"name":{"type":"string"}}}`,
		func(*Library, *performance) (Result, error) { return felt(0.6, "") })
	add(Skill{Name: "think", Description: "Be seen to think about something.", Gesture: "think", Exposed: true},
		`{"type":"object","properties":{"thought":{"type":"string"}}}`,
		func(_ *Library, p *performance) (Result, error) { return felt(0, p.text("thought")) })
	add(Skill{Name: "help", Description: "Say what you know how to do.", Exposed: true}, `{"type":"object","properties":{}}`,
		func(l *Library, p *performance) (Result, error) { return felt(0.1, l.help(p.Agent)) })
	if o.Remember != nil {
		add(Skill{Name: "remember", Description: "Keep a fact for good.", Gesture: "nod"},
			`{"type":"object","properties":{"name":{"type":"string"},"content":{"type":"string"}},"required":["content"]}`, remember)
	}
	if o.Sign != nil {
		add(Skill{Name: "sign-action", Description: "Sign a message with the key of this appliance.", Gesture: "nod"},
			`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, sign)
	}
	return all
}

func felt(sentiment float64, output string) (Result, error) {
	return Result{Success: true, Output: output, Sentiment: &sentiment}, nil
}

// text is an argument as one line.
func (p *performance) text(name string) string {
	value, _ := p.args[name].(string)
	return device.Clip(agent.Speakable(value), mostOutput)
}

// help lists what a character knows how to do.
func (l *Library) help(character string) string {
	var names []string
	for _, s := range l.of(character) {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return "I know how to: " + strings.Join(names, ", ") + "."
}

func remember(l *Library, p *performance) (Result, error) {
	fact := p.text("content")
	if fact == "" {
		return Result{}, fmt.Errorf("%w: content is empty", ErrArguments)
	}
	if err := l.o.Remember(p.Call, p.text("name"), fact); err != nil {
		return Result{}, err
	}
	return felt(0.2, "I will remember that.")
}

// mostSigned bounds a message to be signed, in bytes.
const mostSigned = 1000

// sign signs a message, and publishes what was signed.
func sign(l *Library, p *performance) (Result, error) {
	message, _ := p.args["message"].(string)
	if message == "" || len(message) > mostSigned {
		return Result{}, fmt.Errorf("%w: a message has 1 to %d bytes", ErrArguments, mostSigned)
	}
	signed, err := l.o.Sign(message)
	if err != nil {
		return Result{}, fmt.Errorf("sign the message: %w", err)
	}
	if signed.Signature == "" {
		return Result{}, errors.New("the message was not signed: there is no key")
	}
	l.o.Publish(p.Robot, p.Session, signed)
	data, err := json.Marshal(signed)
	if err != nil {
		return Result{}, err
	}
	r, _ := felt(0.3, "I have signed it.")
	r.Data = data
	return r, nil
}
