package relay

import (
	"fmt"
	"slices"
	"strings"

	"perch/agent"
	"perch/event"
)

// vtubeModel describes what the model that is loaded in VTube Studio or nizima LIVE can show. For VTube
// Studio, the exported fields are decoded from several responses.
type vtubeModel struct {
	Loaded      bool              `json:"modelLoaded"`
	Name        string            `json:"modelName"`
	Expressions []vtubeExpression `json:"expressions"`
	Hotkeys     []vtubeHotkey     `json:"availableHotkeys"`
	Default     []vtubeParameter  `json:"defaultParameters"`
	Custom      []vtubeParameter  `json:"customParameters"`

	words words
}

// vtubeExpression is an expression of the model.
type vtubeExpression struct {
	Name string `json:"name"`
	File string `json:"file"` // such as "happy.exp3.json"
}

// vtubeHotkey is a hotkey of the model.
type vtubeHotkey struct {
	Name string `json:"name"`
	Type string `json:"type"`
	File string `json:"file"` // file of the expression that the hotkey switches, if any
	ID   string `json:"hotkeyID"`
}

// vtubeParameter is a parameter of VTube Studio.
type vtubeParameter struct {
	Name string `json:"name"`
}

// match returns the file of the expression that shows a name in a category of words, such as happy
// in the category face. If there is no such expression, it returns the ID of a hotkey; both results
// may be "". A hotkey may do anything, such as load another model. match therefore returns a hotkey
// only if it plays an animation or switches an expression, or if the owner has configured the
// hotkey's name as the word.
func (m vtubeModel) match(category, name string) (file, hotkey string) {
	candidates := m.words.candidates(category, name)
	if i := findName(namesOf(m.Expressions, func(e vtubeExpression) string { return e.Name }), candidates); i >= 0 {
		return m.Expressions[i].File, ""
	}
	i := findName(namesOf(m.Hotkeys, func(h vtubeHotkey) string { return h.Name }), candidates)
	if i < 0 {
		return "", ""
	}
	switch h := m.Hotkeys[i]; {
	case h.Type == "ToggleExpression":
		return h.File, "" // the hotkey would deactivate an expression that is already active
	case h.Type == "TriggerAnimation", h.Type == "ChangeIdleAnimation", strings.EqualFold(h.Name, m.words.get(category+"."+name)):
		return "", h.ID
	}
	return "", ""
}

func namesOf[T any](elements []T, name func(T) string) (names []string) {
	for _, e := range elements {
		names = append(names, name(e))
	}
	return names
}

// expressions returns the files of expressions and the IDs of hotkeys for the state, the face and the
// strongest feeling of a scene. It returns nothing for the zero Scene.
func (m vtubeModel) expressions(s Scene) (files, hotkeys []string) {
	if s == (Scene{}) {
		return nil, nil
	}
	for _, key := range [][2]string{{"state", string(s.State)}, {"face", s.Expression()}, {"feeling", s.Mood.Dominant}} {
		category, name := key[0], key[1]
		if name == "" {
			continue
		}
		file, hotkey := m.match(category, name)
		if file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
		if hotkey != "" && !slices.Contains(hotkeys, hotkey) {
			hotkeys = append(hotkeys, hotkey)
		}
	}
	return files, hotkeys
}

// vtubeStep is a request that changes the appearance of the model.
type vtubeStep struct {
	request string
	data    any // vtubeActivation or vtubeTrigger
}

// steps returns the requests for a change of scene. They activate new expressions before they
// deactivate old ones.
func (m vtubeModel) steps(scene, previous Scene) (steps []vtubeStep) {
	files, hotkeys := m.expressions(scene)
	oldFiles, oldHotkeys := m.expressions(previous)
	for _, file := range files {
		if !slices.Contains(oldFiles, file) {
			steps = append(steps, vtubeStep{"ExpressionActivation", vtubeActivation{file, true}})
		}
	}
	for _, hotkey := range hotkeys {
		if !slices.Contains(oldHotkeys, hotkey) {
			steps = append(steps, vtubeStep{"HotkeyTrigger", vtubeTrigger{hotkey}})
		}
	}
	for _, file := range oldFiles {
		if !slices.Contains(files, file) {
			steps = append(steps, vtubeStep{"ExpressionActivation", vtubeActivation{file, false}})
		}
	}
	return steps
}

// vtubeActivation is the data of a request that activates or deactivates an expression.
type vtubeActivation struct {
	File   string `json:"expressionFile"`
	Active bool   `json:"active"`
}

// vtubeTrigger is the data of a request that triggers a hotkey.
type vtubeTrigger struct {
	Hotkey string `json:"hotkeyID"`
}

// setValues returns the parameters whose values replace the values of a face tracker: the mouth, which
// is open to a level from 0 to 1, and the custom parameters. It omits values of 0.
func (m vtubeModel) setValues(scene Scene, level float64) (values []value) {
	for _, v := range append(customValues(scene), value{"MouthOpen", round(level)}) {
		if v.Value != 0 && m.hasParameter(v.ID) {
			values = append(values, v)
		}
	}
	return values
}

// addValues returns the parameters that the mood changes. Their values are added to the values of a
// face tracker, because trackers differ in the values of a face at rest.
func (m vtubeModel) addValues(scene Scene) (values []value) {
	for _, p := range offsets(scene.Mood) {
		scale := 1.0
		if strings.HasPrefix(p.id, "FaceAngle") {
			scale = maxAngle
		}
		if m.hasParameter(p.id) {
			values = append(values, value{p.id, round(p.by * scale)})
		}
	}
	return values
}

// hasParameter reports whether there is a default or custom parameter called name.
func (m vtubeModel) hasParameter(name string) bool {
	matches := func(p vtubeParameter) bool { return p.Name == name }
	return slices.ContainsFunc(m.Default, matches) || slices.ContainsFunc(m.Custom, matches)
}

// missingParameters returns the names of the custom parameters to create.
func (m vtubeModel) missingParameters() (names []string) {
	for _, v := range customValues(Scene{}) {
		if !m.hasParameter(v.ID) {
			names = append(names, v.ID)
		}
	}
	return names
}

// warning returns what the owner should know about the model, or nil. animations is the program's
// word for animations: hotkeys or motions.
func (m vtubeModel) warning(program, animations string) error {
	hasFace := slices.ContainsFunc(agent.Emotions(), func(e agent.Emotion) bool {
		file, hotkey := m.match("face", e.Name)
		return file != "" || hotkey != ""
	})
	switch {
	case !m.Loaded:
		return fmt.Errorf("no model is loaded in %s", program)
	case len(m.Expressions) == 0 && len(m.Hotkeys) == 0:
		return fmt.Errorf("the model %.60q has no expressions and no %s; only its mouth and head move", m.Name, animations)
	case !hasFace:
		return fmt.Errorf("no expression of the model %.60q and none of its %s has the name of a face, such as happy or sad; "+
			"rename some, or set words to their names", m.Name, animations)
	}
	return nil
}

// customValues returns the values of the custom parameters, which Perch creates: the strength of each
// feeling from 0 to 1, and the index of the state in states().
func customValues(s Scene) (values []value) {
	for _, f := range feelings()[1:] {
		values = append(values, value{"Stackchan" + capitalize(f), round(strengths(s.Mood.Feelings)[f])})
	}
	return append(values, value{customState, float64(max(0, slices.Index(states(), s.State)))})
}

// customState is the name of the custom parameter for the state.
const customState = "StackchanState"

// customMax returns the maximum value of a custom parameter.
func customMax(name string) int {
	if name == customState {
		return len(states()) - 1
	}
	return 1
}

// offset is how far the mood moves a part of the face from its rest.
type offset struct {
	id string  // name of the parameter in VTube Studio
	by float64 // fraction of the parameter's range, from -1 to 1
}

// maxAngle is the range of a head angle in degrees.
const maxAngle = 60

// offsets returns the offsets of all parts of the face that the mood moves.
func offsets(mood event.Mood) []offset {
	m, head := mood.Morphs, mood.Head
	frown := max(m.MouthFrown, (m.MouthFrownLeft+m.MouthFrownRight)/2)
	outer := (m.BrowOuterUpLeft + m.BrowOuterUpRight) / 2
	return slices.DeleteFunc([]offset{
		{"MouthSmile", m.MouthSmile - frown},
		{"Brows", max(m.BrowInnerUp, outer) - (m.BrowDownLeft+m.BrowDownRight)/2},
		{"BrowLeftY", max(m.BrowInnerUp, m.BrowOuterUpLeft) - m.BrowDownLeft},
		{"BrowRightY", max(m.BrowInnerUp, m.BrowOuterUpRight) - m.BrowDownRight},
		{"EyeOpenLeft", m.EyeWideLeft/2 - max(m.EyesClosed, m.EyeSquintLeft/2)},
		{"EyeOpenRight", m.EyeWideRight/2 - max(m.EyesClosed, m.EyeSquintRight/2)},
		{"CheekPuff", m.CheekPuff},
		{"FaceAngry", max(m.NoseSneerLeft, m.NoseSneerRight)},
		{"FaceAngleX", head.Yaw / maxAngle},
		{"FaceAngleY", -head.Lean / maxAngle},
		{"FaceAngleZ", head.Tilt / maxAngle},
	}, func(p offset) bool { return round(p.by) == 0 })
}
