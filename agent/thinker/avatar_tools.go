package thinker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perch/agent"
	"perch/event"
	"perch/plain"
)

// turnHooks let a tool affect its turn.
type turnHooks struct {
	after *agent.End // what the robot does after the turn; end_talk sets it
	// reply sends replies, in addition to those in the model's text. It is safe for
	// concurrent use during the turn. It is nil if nobody receives replies.
	reply func(...agent.Reply) error
}

const (
	minWave, defaultWave, maxWave = 500, 1500, 5000 // duration of wave, in milliseconds
	loopFor                       = 10_000          // duration of a looping gesture, in milliseconds
	maxAloud                      = 2000            // length of the text of speak, in bytes
)

// expressions maps the presets of setExpression to the robots' faces.
func expressions() map[string]agent.Emotion {
	return map[string]agent.Emotion{
		"neutral": agent.Neutral, "happy": {Name: "happy", Emoji: "😊"}, "sad": {Name: "sad", Emoji: "😢"},
		"surprised": {Name: "surprised", Emoji: "😮"}, "confused": {Name: "confused", Emoji: "🙄"}, "focused": {Name: "thinking", Emoji: "🤔"},
	}
}

// avatarTools returns the tools of a visible agent: wave, lookAt, play_clip, setExpression
// and speak, with the names and schemas of agent-manifest/0.1, a format for characters. A manifest may
// allow only some of these tools and of remember.
func (k *Brain) avatarTools(t agent.Turn, hooks turnHooks) (all []turnTool) {
	offer := func(name, description, schema string, run func(context.Context, json.RawMessage) (string, error)) {
		if k.mayUse(t, name) {
			all = append(all, newTool(name, description, schema, run))
		}
	}
	if k.Publish == nil || t.Untrusted {
		return nil // the agent is invisible, or a stranger could control the owner's avatar
	}
	offer("wave", "Wave: a greeting, a farewell, or to be noticed.",
		`{"type":"object","properties":{"duration_ms":{"type":"integer","minimum":500,"maximum":5000,"default":1500}}}`,
		actionFunc(func(a struct {
			Duration *float64 `json:"duration_ms"`
		}) error {
			length := float64(defaultWave)
			if a.Duration != nil {
				length = min(max(*a.Duration, minWave), maxWave)
			}
			k.publish(t, event.Gesture{Name: "wave", Duration: int64(length), By: event.ByModel})
			return nil
		}))
	offer("lookAt", "Look somewhere else: at the person, at the camera, or straight ahead.",
		`{"type":"object","properties":{"target":{"type":"string","enum":["user","camera","center"]}},"required":["target"]}`,
		actionFunc(func(a struct{ Target string }) error {
			if !slices.Contains([]string{"user", "camera", "center"}, a.Target) {
				return fmt.Errorf("target is user, camera or center, not %.40q", a.Target)
			}
			k.publish(t, event.LookAt{Target: a.Target, By: event.ByModel})
			return nil
		}))
	offer("play_clip", "Make a gesture: "+strings.Join(k.clips(t), ", ")+".",
		`{"type":"object","properties":{"name":{"type":"string"},"loop":{"type":"boolean","default":false},`+
			`"fade_ms":{"type":"integer","minimum":0,"default":200}},"required":["name"]}`,
		actionFunc(func(a struct {
			Name string
			Loop bool
		}) error {
			name, err := k.clip(t, a.Name)
			if err != nil {
				return err
			}
			g := event.Gesture{Name: name, By: event.ByModel}
			if a.Loop {
				g.Duration = loopFor
			}
			k.publish(t, g)
			return nil
		}))
	offer("setExpression", "Show a face for a moment, over what you feel.",
		`{"type":"object","properties":{"preset":{"type":"string","enum":["neutral","happy","sad","surprised","confused","focused"]},`+
			`"intensity":{"type":"number","minimum":0,"maximum":1,"default":1}},"required":["preset"]}`,
		actionFunc(func(a struct {
			Preset    string
			Intensity *float64
		}) error {
			return k.express(t, hooks, a.Preset, a.Intensity)
		}))
	if hooks.reply != nil {
		offer("speak", "Say a text aloud at once. What you write as your answer is spoken anyway; do not say it twice.",
			`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`,
			actionFunc(func(a struct{ Text string }) error {
				sentences := sayReplies(a.Text)
				if len(sentences) == 0 || len(a.Text) > maxAloud {
					return fmt.Errorf("text has 1 to %d bytes", maxAloud)
				}
				return hooks.reply(sentences...)
			}))
	}
	return all
}

// gestures returns the names of the gestures that every character can make.
func (k *Brain) gestures() []string {
	if k.Gestures == nil {
		return nil
	}
	return k.Gestures()
}

// clips returns the names that play_clip accepts in a turn: those of gestures, of the character's own animations,
// and of the clips of these animations.
func (k *Brain) clips(t agent.Turn) []string {
	names, own := slices.Clone(k.gestures()), k.personaOf(t).Clips
	for _, slot := range slices.Sorted(maps.Keys(own)) {
		for _, name := range []string{slot, own[slot]} {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// clip returns the gesture for a name that the model has passed to play_clip, or an error if clips does not return
// the name. For an animation of the character it returns the animation's clip, because programs that show the
// character know the animation by the name of the clip. But if the animation has the name of a gesture that every
// character can make, clip returns that gesture, unless the animation's clip is such a gesture too.
func (k *Brain) clip(t agent.Turn, clip string) (string, error) {
	name, _ := event.GestureName(clip)
	if names := k.clips(t); !slices.Contains(names, name) {
		return "", fmt.Errorf("there is no clip %.40q; there are: %s", clip, plain.Clip(strings.Join(names, ", "), maxDescription))
	}
	gestures := k.gestures()
	if to := k.personaOf(t).Clips[name]; to != "" && (slices.Contains(gestures, to) || !slices.Contains(gestures, name)) {
		return to, nil
	}
	return name, nil
}

// sayReplies returns the sentences of a text as replies, without emoji.
func sayReplies(text string) (replies []agent.Reply) {
	_, text = agent.SplitEmotion(agent.Speakable(text))
	for _, sentence := range Sentences(text) {
		replies = append(replies, agent.Say{Text: sentence})
	}
	return replies
}

// actionFunc is toolFunc for a tool without a result.
func actionFunc[A any](run func(A) error) func(context.Context, json.RawMessage) (string, error) {
	return toolFunc(func(_ context.Context, a A) (string, error) { return `{"ok":true}`, run(a) })
}

// express runs the tool setExpression. It publishes the expression, and sends the face as a reply unless the
// strength is 0. A nil strength means 1.
func (k *Brain) express(t agent.Turn, hooks turnHooks, preset string, strength *float64) error {
	face, known := expressions()[preset]
	if !known {
		return fmt.Errorf("preset is neutral, happy, sad, surprised, confused or focused, not %.40q", preset)
	}
	intensity := 1.0
	if strength != nil {
		intensity = min(max(*strength, 0), 1)
	}
	k.publish(t, event.Expression{Preset: preset, Intensity: intensity, By: event.ByModel})
	if hooks.reply == nil || intensity == 0 {
		return nil
	}
	return hooks.reply(agent.Felt{Emotion: face, Intensity: intensity})
}

// mayUse reports whether the character of a turn may use a built-in tool.
func (k *Brain) mayUse(t agent.Turn, name string) bool {
	tools := k.personaOf(t).Tools
	return tools == nil || slices.Contains(tools, name)
}

// publish publishes an event of a turn. In a text chat with a robot's agent, t.Publish publishes the event only
// for the chat, so publish publishes it for the robot too.
func (k *Brain) publish(t agent.Turn, e event.Event) {
	if t.Publish == nil {
		k.Publish(t.Robot, t.Session, e)
		return
	}
	t.Publish(e)
	if t.Robot != "" && t.Body == nil {
		k.Publish(t.Robot, "", e)
	}
}

const rememberSchema = `{"type":"object","properties":{"key":{"type":"string","description":"short snake_case name, such as user_role; ` +
	`a newer fact of the same key replaces it"},"name":{"type":"string"},"description":{"type":"string","description":"one line"},` +
	`"type":{"type":"string","enum":["user","feedback","project","reference"]},` +
	`"body":{"type":"string","description":"the fact, in one sentence that can be understood alone"},` +
	`"tags":{"type":"array","items":{"type":"string"}},"important":{"type":"boolean"}},"required":["key","name","description","type","body"]}`

// remember runs the tool remember.
func (k *Brain) remember(t agent.Turn, f agent.Fact) (string, error) {
	e, err := f.Entry()
	if err != nil {
		return "", err
	}
	e.Robot, e.Session, e.Source = t.Robot, t.Session, "tool"
	if _, err := k.Memory.Of(t).Remember(e, t.Now); err != nil {
		return "", err
	}
	return "Remembered.", nil
}
