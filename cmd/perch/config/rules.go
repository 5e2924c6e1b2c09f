package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/agent"
	"perch/device"
	"perch/perception"
)

// Rule says what is done when a robot senses something.
type Rule struct {
	Name   string           `yaml:"name"`
	When   whenConfig       `yaml:"when"`
	Every  time.Duration    `yaml:"every"` // 0 for everyRule
	Hours  perception.Hours `yaml:"hours"`
	InTalk bool             `yaml:"in_talk"`
	Do     []actConfig      `yaml:"do"`
}

type whenConfig struct {
	Event string                   `yaml:"event"`
	Robot string                   `yaml:"robot"`
	If    map[string]compareConfig `yaml:"if"`
}

// everyRule is how long a rule rests by default.
const everyRule = 10 * time.Second

// compareConfig is a condition of a value: {above: 10}, or the value itself.
type compareConfig struct {
	Is    any      `yaml:"is"`
	Not   any      `yaml:"not"`
	OneOf []any    `yaml:"one_of"`
	Above *float64 `yaml:"above"`
	Below *float64 `yaml:"below"`
}

// UnmarshalYAML implements yaml.Unmarshaler. A value that is no mapping sets Is.
func (c *compareConfig) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return n.Decode(&c.Is)
	}
	// The decoder does not look for unknown keys in a type with its own UnmarshalYAML.
	known := []string{"is", "not", "one_of", "above", "below"}
	var wrong yaml.TypeError
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(known, key.Value) {
			wrong.Errors = append(wrong.Errors, fmt.Sprintf("line %d: there is no key %q here; there are %s", key.Line, key.Value,
				strings.Join(known, ", ")))
		}
	}
	if len(wrong.Errors) > 0 {
		return &wrong
	}
	type plain compareConfig
	return n.Decode((*plain)(c))
}

// actConfig is one action: exactly one of its keys is set. The keys below lights, tool and publish
// are the fields of their types in lower case.
type actConfig struct {
	Say     *string              `yaml:"say"`
	Stop    bool                 `yaml:"stop"`
	Emotion *string              `yaml:"emotion"`
	Head    *headConfig          `yaml:"head"`
	Lights  *perception.Lights   `yaml:"lights"`
	Play    *string              `yaml:"play"`
	State   *string              `yaml:"state"`
	Tool    *perception.CallTool `yaml:"tool"`
	Publish *perception.Publish  `yaml:"publish"`
	Notify  *string              `yaml:"notify"`
}

type headConfig struct {
	Yaw   int  `yaml:"yaw"`
	Pitch *int `yaml:"pitch"`
	Speed int  `yaml:"speed"` // 0 for headSpeed
}

// headSpeed is the default of the robot's tool, in the firmware's unit.
const headSpeed = 150

// errOneAct is the error for an action with no key or several.
var errOneAct = errors.New("it does one thing: say, stop, emotion, head, lights, play, state, tool, publish or notify")

// build returns the action.
func (a actConfig) build() (perception.Act, error) {
	var all []perception.Act
	add := func(set bool, make func() perception.Act) {
		if set {
			all = append(all, make())
		}
	}
	add(a.Say != nil, func() perception.Act { return perception.Say{Text: *a.Say} })
	add(a.Stop, func() perception.Act { return perception.Abort{} })
	add(a.Emotion != nil, func() perception.Act { return perception.Feel{Emotion: *a.Emotion} })
	add(a.Head != nil, func() perception.Act {
		return perception.TurnHead{Yaw: a.Head.Yaw, Pitch: a.Head.Pitch, Speed: cmp.Or(a.Head.Speed, headSpeed)}
	})
	add(a.Lights != nil, func() perception.Act { return *a.Lights })
	add(a.Play != nil, func() perception.Act { return perception.Play{Sound: *a.Play} })
	add(a.State != nil, func() perception.Act { return perception.SetState{State: *a.State} })
	add(a.Tool != nil, func() perception.Act { return *a.Tool })
	add(a.Publish != nil, func() perception.Act { return *a.Publish })
	add(a.Notify != nil, func() perception.Act { return perception.Notify{Text: *a.Notify} })
	if len(all) != 1 {
		return nil, errOneAct
	}
	if feel, ok := all[0].(perception.Feel); ok && !IsEmotion(feel.Emotion) {
		return nil, fmt.Errorf("%.40q is no emotion of robots, such as happy, sad or surprised", feel.Emotion)
	}
	return all[0], nil
}

// EmotionNamed returns an emotion by its name in the firmware.
func EmotionNamed(name string) (e agent.Emotion, known bool) {
	all := agent.Emotions()
	i := slices.IndexFunc(all, func(e agent.Emotion) bool { return e.Name == name })
	if i >= 0 {
		e = all[i]
	}
	return e, i >= 0
}

// IsEmotion reports whether the firmware has an emotion of that name.
func IsEmotion(name string) bool {
	_, known := EmotionNamed(name)
	return known
}

// rule returns the rule in the form of package perception. It calls fault for each key that is wrong.
func (r Rule) rule(key string, find func(robot string) (device.ID, error), fault func(key string, err error)) perception.Rule {
	out := perception.Rule{Name: r.Name, Every: cmp.Or(r.Every, everyRule), Hours: r.Hours, InTalk: r.InTalk,
		When: perception.When{Event: r.When.Event, If: map[string]perception.Compare{}}}
	if r.When.Robot != "" {
		id, err := find(r.When.Robot)
		if err != nil {
			fault(key+".when.robot", err)
		}
		out.When.Robot = id
	}
	for name, c := range r.When.If {
		out.When.If[name] = perception.Compare(c)
	}
	for i, a := range r.Do {
		act, err := a.build()
		if err != nil {
			fault(fmt.Sprintf("%s.do.%d", key, i), err)
			act = perception.Abort{} // in its place, so that later faults name the right one
		}
		out.Do = append(out.Do, act)
	}
	return out
}
