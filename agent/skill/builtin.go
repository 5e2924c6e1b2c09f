package skill

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"perch/agent"
	"perch/language"
	"perch/limit"
	"perch/plain"
)

// builtins returns the built-in skills, which every character has, by name.
func builtins() map[string]Skill {
	skills := map[string]Skill{}
	add := func(s Skill, schema string, run func(*Library, *performance) (Result, error)) {
		s.Version, s.Input, s.builtin = "1.0.0", json.RawMessage(schema), run
		skills[s.Name] = s
	}
	add(Skill{Name: "greet", Description: "Greet somebody.", Gesture: "wave", Exposed: true},
		`{"type":"object","properties":{"name":{"type":"string"}}}`, greet)
	add(Skill{Name: "think", Description: "Be seen to think about something.", Gesture: "think", Exposed: true},
		`{"type":"object","properties":{"thought":{"type":"string"}}}`,
		func(_ *Library, p *performance) (Result, error) { return succeed(0, p.text("thought")) })
	add(Skill{Name: "help", Description: "Say what you know how to do.", Exposed: true}, `{"type":"object","properties":{}}`,
		func(l *Library, p *performance) (Result, error) { return succeed(0.1, l.help(p)) })
	add(Skill{Name: "remember", Description: "Keep a fact for good.", Gesture: "nod"},
		`{"type":"object","properties":{"name":{"type":"string"},"content":{"type":"string"}},"required":["content"]}`, remember)
	add(Skill{Name: "sign-action", Description: "Sign a message with the key of this appliance.", Gesture: "nod"},
		`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, sign)
	return skills
}

// succeed returns the result of a successful skill. The error is always nil.
func succeed(sentiment float64, output string) (Result, error) {
	return Result{Success: true, Output: output, Sentiment: &sentiment}, nil
}

// text returns a text argument as one line of at most limit.Data bytes, or "" if the argument is
// missing or not a text.
func (p *performance) text(name string) string {
	value, _ := p.args[name].(string)
	return plain.Clip(agent.Speakable(value), limit.Data)
}

// phrases returns the words in the language of a performance or, if it has none, in the
// configured language.
func (l *Library) phrases(p *performance) *language.Words {
	return l.words.In(cmp.Or(p.Language, l.o.Language()))
}

func greet(l *Library, p *performance) (Result, error) {
	if name := p.text("name"); name != "" {
		return succeed(0.6, l.phrases(p).Message("skill.hello_to", "name", name))
	}
	return succeed(0.6, l.phrases(p).Message("skill.hello"))
}

// help returns a sentence that lists the character's skills.
func (l *Library) help(p *performance) string {
	phrases := l.phrases(p)
	var names []string
	for _, s := range l.skillsOf(p.Agent) {
		name := s.Name
		if key := "skill_names." + s.Name; phrases.Has(key) {
			name = phrases.Message(key)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return phrases.Message("skill.knows", "skills", strings.Join(names, phrases.Message("skill.between")))
}

func remember(l *Library, p *performance) (Result, error) {
	fact := p.text("content")
	if fact == "" {
		return Result{}, fmt.Errorf("%w: content is empty", ErrArguments)
	}
	if err := l.o.Remember(p.Call, p.text("name"), fact); err != nil {
		return Result{}, err
	}
	return succeed(0.2, l.phrases(p).Message("skill.kept"))
}

// maxSigned is the largest size of a message to sign, in bytes.
const maxSigned = 1000

// sign performs the skill sign-action: it signs a message and publishes the signed message.
func sign(l *Library, p *performance) (Result, error) {
	message, _ := p.args["message"].(string)
	if message == "" || len(message) > maxSigned {
		return Result{}, fmt.Errorf("%w: a message has 1 to %d bytes", ErrArguments, maxSigned)
	}
	signed, err := l.o.Sign(message)
	if err != nil {
		return Result{}, fmt.Errorf("sign the message: %w", err)
	}
	l.o.Publish(p.Robot, p.Session, signed)
	data, err := json.Marshal(signed)
	if err != nil {
		return Result{}, err
	}
	r, _ := succeed(0.3, l.phrases(p).Message("skill.signed"))
	r.Data = data
	return r, nil
}
