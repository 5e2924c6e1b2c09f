package relay

import (
	"fmt"
	"slices"
	"strings"

	"perch/agent"
	"perch/event"
)

// vtubeModel describes what the model loaded in VTube Studio can show.
type vtubeModel struct {
	Loaded      bool              `json:"modelLoaded"`
	Name        string            `json:"modelName"`
	Expressions []vtubeExpression `json:"expressions"`
	Hotkeys     []vtubeHotkey     `json:"availableHotkeys"`
	Default     []vtubeParameter  `json:"defaultParameters"`
	Custom      []vtubeParameter  `json:"customParameters"`

	words words
}

type vtubeExpression struct {
	Name string `json:"name"`
	File string `json:"file"` // "happy.exp3.json"
}

type vtubeHotkey struct {
	Name string `json:"name"`
	Type string `json:"type"`
	File string `json:"file"` // the expression's file, where the hotkey switches one
	ID   string `json:"hotkeyID"`
}

type vtubeParameter struct {
	Name string `json:"name"`
}

// match returns the expression that shows something, or else the hotkey. Hotkeys that are not
// in the owner's words count only if they play an animation or switch an expression: others
// change the scene.
func (m vtubeModel) match(of, name string) (file, hotkey string) {
	candidates := m.words.candidates(of, name)
	if i := named(namesOf(m.Expressions, func(e vtubeExpression) string { return e.Name }), candidates); i >= 0 {
		return m.Expressions[i].File, ""
	}
	i := named(namesOf(m.Hotkeys, func(h vtubeHotkey) string { return h.Name }), candidates)
	if i < 0 {
		return "", ""
	}
	switch h := m.Hotkeys[i]; {
	case h.Type == "ToggleExpression":
		return h.File, "" // by its file, since toggling gives no definite result
	case h.Type == "TriggerAnimation", h.Type == "ChangeIdleAnimation", strings.EqualFold(h.Name, m.words.of(of+"."+name)):
		return "", h.ID
	}
	return "", ""
}

// namesOf returns the name of each element.
func namesOf[T any](all []T, name func(T) string) (names []string) {
	for _, one := range all {
		names = append(names, name(one))
	}
	return names
}

// expressions returns the expressions and hotkeys for a scene: those of its state, its face and
// the strongest feeling. The zero Scene has none.
func (m vtubeModel) expressions(s Scene) (files, hotkeys []string) {
	if s == (Scene{}) {
		return nil, nil
	}
	for _, shown := range [][2]string{{"state", string(s.State)}, {"face", s.Expression()}, {"feeling", s.Mood.Dominant}} {
		if shown[1] == "" {
			continue
		}
		file, hotkey := m.match(shown[0], shown[1])
		if file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
		if hotkey != "" && !slices.Contains(hotkeys, hotkey) {
			hotkeys = append(hotkeys, hotkey)
		}
	}
	return files, hotkeys
}

// vtubeStep is a request that changes what is seen.
type vtubeStep struct {
	request string
	data    any
}

// steps returns the requests for a change of scene. New expressions are switched on before old
// ones are switched off.
func (m vtubeModel) steps(is, was Scene) (all []vtubeStep) {
	files, hotkeys := m.expressions(is)
	oldFiles, oldHotkeys := m.expressions(was)
	for _, file := range files {
		if !slices.Contains(oldFiles, file) {
			all = append(all, vtubeStep{"ExpressionActivation", vtubeActivation{file, true}})
		}
	}
	for _, hotkey := range hotkeys {
		if !slices.Contains(oldHotkeys, hotkey) {
			all = append(all, vtubeStep{"HotkeyTrigger", vtubeTrigger{hotkey}})
		}
	}
	for _, file := range oldFiles {
		if !slices.Contains(files, file) {
			all = append(all, vtubeStep{"ExpressionActivation", vtubeActivation{file, false}})
		}
	}
	return all
}

type vtubeActivation struct {
	File   string `json:"expressionFile"`
	Active bool   `json:"active"`
}

type vtubeTrigger struct {
	Hotkey string `json:"hotkeyID"`
}

// setValues returns the parameters that only Perch sets: the open mouth and the custom
// parameters.
func (m vtubeModel) setValues(is Scene, level float64) (all []value) {
	for _, one := range append(customValues(is), value{"MouthOpen", round(level)}) {
		if one.Value != 0 && m.hasParameter(one.ID) {
			all = append(all, one)
		}
	}
	return all
}

// addValues returns how the mood moves the face. The values are added to the tracker's, since a
// face at rest differs between trackers.
func (m vtubeModel) addValues(is Scene) (all []value) {
	for _, p := range pushes(is.Mood) {
		reach := 1.0
		if strings.HasPrefix(p.id, "FaceAngle") {
			reach = fullTurn
		}
		if m.hasParameter(p.id) {
			all = append(all, value{p.id, round(p.by * reach)})
		}
	}
	return all
}

func (m vtubeModel) hasParameter(parameter string) bool {
	is := func(p vtubeParameter) bool { return p.Name == parameter }
	return slices.ContainsFunc(m.Default, is) || slices.ContainsFunc(m.Custom, is)
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

// warning returns what the owner ought to know about the model; plays names what plays the
// program's animations: hotkeys or motions.
func (m vtubeModel) warning(program, plays string) error {
	known := slices.ContainsFunc(agent.Emotions(), func(e agent.Emotion) bool {
		file, hotkey := m.match("face", e.Name)
		return file != "" || hotkey != ""
	})
	switch {
	case !m.Loaded:
		return fmt.Errorf("no model is loaded in %s", program)
	case len(m.Expressions) == 0 && len(m.Hotkeys) == 0:
		return fmt.Errorf("the model %.60q has no expressions and no %s; only its mouth and head move", m.Name, plays)
	case !known:
		return fmt.Errorf("the model %.60q has no expression, and nothing among its %s, that is called as a face is, such as happy or sad; "+
			"rename some, or name them in words", m.Name, plays)
	}
	return nil
}

// customValues returns the parameters that VTube Studio has for Perch alone: each feeling from
// 0 to 1, and the index of the state in states.
func customValues(s Scene) []value {
	var all []value
	for _, f := range feelings()[1:] {
		all = append(all, value{"Stackchan" + capital(f), round(strengths(s.Mood.Feelings)[f])})
	}
	return append(all, value{customState, float64(max(0, slices.Index(states(), s.State)))})
}

const customState = "StackchanState"

// customMost returns the highest value of a custom parameter.
func customMost(name string) int {
	if name == customState {
		return len(states()) - 1
	}
	return 1
}

// push is how far the mood moves one part of the face, from -1 to 1 of its range.
type push struct {
	id string // as VTube Studio calls it
	by float64
}

// fullTurn is the range of a head angle in degrees.
const fullTurn = 60

// pushes returns the parts of the face that the mood moves.
func pushes(mood event.Mood) []push {
	m, head := mood.Morphs, mood.Head
	frown := max(m.MouthFrown, (m.MouthFrownLeft+m.MouthFrownRight)/2)
	outer := (m.BrowOuterUpLeft + m.BrowOuterUpRight) / 2
	return slices.DeleteFunc([]push{
		{"MouthSmile", m.MouthSmile - frown},
		{"Brows", max(m.BrowInnerUp, outer) - (m.BrowDownLeft+m.BrowDownRight)/2},
		{"BrowLeftY", max(m.BrowInnerUp, m.BrowOuterUpLeft) - m.BrowDownLeft},
		{"BrowRightY", max(m.BrowInnerUp, m.BrowOuterUpRight) - m.BrowDownRight},
		{"EyeOpenLeft", m.EyeWideLeft/2 - max(m.EyesClosed, m.EyeSquintLeft/2)},
		{"EyeOpenRight", m.EyeWideRight/2 - max(m.EyesClosed, m.EyeSquintRight/2)},
		{"CheekPuff", m.CheekPuff},
		{"FaceAngry", max(m.NoseSneerLeft, m.NoseSneerRight)},
		{"FaceAngleX", head.Yaw / fullTurn},
		{"FaceAngleY", -head.Lean / fullTurn},
		{"FaceAngleZ", head.Tilt / fullTurn},
	}, func(p push) bool { return round(p.by) == 0 })
}
