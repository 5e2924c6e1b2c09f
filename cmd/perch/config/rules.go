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

// Rule is a rule of the owner: actions for an event that a robot senses.
type Rule struct {
	Name   string           `yaml:"name"`
	When   whenConfig       `yaml:"when"`
	Every  time.Duration    `yaml:"every"` // minimum time between two runs of the rule; 0 means defaultEvery
	Hours  perception.Hours `yaml:"hours"`
	InTalk bool             `yaml:"in_talk"`
	Do     []actConfig      `yaml:"do"`
}

// whenConfig describes the events that trigger a rule.
type whenConfig struct {
	Event string                   `yaml:"event"`
	Robot string                   `yaml:"robot"`
	If    map[string]compareConfig `yaml:"if"`
}

// defaultEvery is the default of Rule.Every.
const defaultEvery = 10 * time.Second

// compareConfig is a condition on a value of an event. In YAML it is a mapping such as {above: 10}, or the text,
// number or bool that the event's value must equal.
type compareConfig struct {
	Is    any      `yaml:"is"`
	Not   any      `yaml:"not"`
	OneOf []any    `yaml:"one_of"`
	Above *float64 `yaml:"above"`
	Below *float64 `yaml:"below"`
}

// UnmarshalYAML implements yaml.Unmarshaler. A value that is not a mapping is decoded into Is.
func (c *compareConfig) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return n.Decode(&c.Is)
	}
	// The YAML library does not report unknown keys of a type that has its own UnmarshalYAML.
	keys := []string{"is", "not", "one_of", "above", "below"}
	var typeErr yaml.TypeError
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(keys, key.Value) {
			typeErr.Errors = append(typeErr.Errors, fmt.Sprintf("line %d: there is no key %q here; there are %s", key.Line, key.Value,
				strings.Join(keys, ", ")))
		}
	}
	if len(typeErr.Errors) > 0 {
		return &typeErr
	}
	type withoutUnmarshal compareConfig
	return n.Decode((*withoutUnmarshal)(c))
}

// actConfig is one action: exactly one of its fields is set. In the configuration, lights, tool and
// publish hold the field names of their Go types in lower case.
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

// headConfig is a turn of the head.
type headConfig struct {
	Yaw   int  `yaml:"yaw"`   // in degrees
	Pitch *int `yaml:"pitch"` // in degrees
	Speed int  `yaml:"speed"` // in the firmware's unit; 0 means defaultHeadSpeed
}

// defaultHeadSpeed is the default speed in the firmware.
const defaultHeadSpeed = 150

// errOneAct is the error of an action with no key or with several.
var errOneAct = errors.New("it does one thing: say, stop, emotion, head, lights, play, state, tool, publish or notify")

// build returns the action in the form of package perception. It returns errOneAct if a has no action or
// several, and an error for an unknown emotion.
func (a actConfig) build() (perception.Act, error) {
	var acts []perception.Act
	add := func(isSet bool, newAct func() perception.Act) {
		if isSet {
			acts = append(acts, newAct())
		}
	}
	add(a.Say != nil, func() perception.Act { return perception.Say{Text: *a.Say} })
	add(a.Stop, func() perception.Act { return perception.Abort{} })
	add(a.Emotion != nil, func() perception.Act { return perception.Feel{Emotion: *a.Emotion} })
	add(a.Head != nil, func() perception.Act {
		return perception.TurnHead{Yaw: a.Head.Yaw, Pitch: a.Head.Pitch, Speed: cmp.Or(a.Head.Speed, defaultHeadSpeed)}
	})
	add(a.Lights != nil, func() perception.Act { return *a.Lights })
	add(a.Play != nil, func() perception.Act { return perception.Play{Sound: *a.Play} })
	add(a.State != nil, func() perception.Act { return perception.SetState{State: *a.State} })
	add(a.Tool != nil, func() perception.Act { return *a.Tool })
	add(a.Publish != nil, func() perception.Act { return *a.Publish })
	add(a.Notify != nil, func() perception.Act { return perception.Notify{Text: *a.Notify} })
	if len(acts) != 1 {
		return nil, errOneAct
	}
	if feel, ok := acts[0].(perception.Feel); ok && !IsEmotion(feel.Emotion) {
		return nil, fmt.Errorf("%.40q is not an emotion of robots, such as happy, sad or surprised", feel.Emotion)
	}
	return acts[0], nil
}

// EmotionNamed returns the emotion that the firmware calls name. ok is false if the firmware has no
// such emotion.
func EmotionNamed(name string) (e agent.Emotion, ok bool) {
	emotions := agent.Emotions()
	i := slices.IndexFunc(emotions, func(e agent.Emotion) bool { return e.Name == name })
	if i >= 0 {
		e = emotions[i]
	}
	return e, i >= 0
}

// IsEmotion reports whether the firmware has an emotion with a name.
func IsEmotion(name string) bool {
	_, ok := EmotionNamed(name)
	return ok
}

// build returns the rule in the form of package perception. key is the path of the rule. build calls
// fault for each invalid key.
func (r Rule) build(key string, find func(robot string) (device.ID, error), fault func(key string, err error)) perception.Rule {
	rule := perception.Rule{Name: r.Name, Every: cmp.Or(r.Every, defaultEvery), Hours: r.Hours, InTalk: r.InTalk,
		When: perception.When{Event: r.When.Event, If: map[string]perception.Compare{}}}
	if r.When.Robot != "" {
		id, err := find(r.When.Robot)
		if err != nil {
			fault(key+".when.robot", err)
		}
		rule.When.Robot = id
	}
	for name, c := range r.When.If {
		rule.When.If[name] = perception.Compare(c)
	}
	for i, a := range r.Do {
		act, err := a.build()
		if err != nil {
			fault(fmt.Sprintf("%s.do.%d", key, i), err)
			act = perception.Abort{} // a placeholder that keeps the indexes of later actions right
		}
		rule.Do = append(rule.Do, act)
	}
	return rule
}
