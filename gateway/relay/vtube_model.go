package relay

import (
	"fmt"
	"slices"
	"strings"

	"perch/agent"
	"perch/event"
)

// vtubeModel is what the model that is loaded in VTube Studio can show, as VTube Studio
// tells it.
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
	File string `json:"file"` // the expression's, where it switches one
	ID   string `json:"hotkeyID"`
}

type vtubeParameter struct {
	Name string `json:"name"`
}

// meant is the expression that shows something, or else the hotkey. Of what is not in an
// owner's words, only hotkeys that play an animation or switch an expression are
// meant: others change the scene.
func (m vtubeModel) meant(of, name string) (file, hotkey string) {
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
		return h.File, "" // by its name, since to toggle is to not know what follows
	case h.Type == "TriggerAnimation", h.Type == "ChangeIdleAnimation", strings.EqualFold(h.Name, m.words.of(of+"."+name)):
		return "", h.ID
	}
	return "", ""
}

// namesOf are the names of all.
func namesOf[T any](all []T, name func(T) string) (names []string) {
	for _, one := range all {
		names = append(names, name(one))
	}
	return names
}

// looks are the expressions and hotkeys for a scene: of its state, its face and what the
// agent feels. The zero Scene, of which nobody was told, has none.
func (m vtubeModel) looks(s Scene) (files, hotkeys []string) {
	if s == (Scene{}) {
		return nil, nil
	}
	for _, shown := range [][2]string{{"state", string(s.State)}, {"face", s.Expression()}, {"feeling", s.Mood.Dominant}} {
		if shown[1] == "" {
			continue
		}
		file, hotkey := m.meant(shown[0], shown[1])
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

// steps are what the model is told of a change: first what shows, then what shows no more.
func (m vtubeModel) steps(is, was Scene) (all []vtubeStep) {
	files, hotkeys := m.looks(is)
	oldFiles, oldHotkeys := m.looks(was)
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

// sets are the parameters that are the agent's alone: the mouth while it speaks, and the
// custom ones.
func (m vtubeModel) sets(is Scene, level float64) (all []value) {
	for _, one := range append(customValues(is), value{"MouthOpen", round(level)}) {
		if one.Value != 0 && m.has(one.ID) {
			all = append(all, one)
		}
	}
	return all
}

// adds are how the mood moves the face. They are added to what a tracker says, since what
// a face at rest is differs between trackers.
func (m vtubeModel) adds(is Scene) (all []value) {
	for _, p := range pushes(is.Mood) {
		reach := 1.0
		if strings.HasPrefix(p.id, "FaceAngle") {
			reach = fullTurn
		}
		if m.has(p.id) {
			all = append(all, value{p.id, round(p.by * reach)})
		}
	}
	return all
}

func (m vtubeModel) has(parameter string) bool {
	is := func(p vtubeParameter) bool { return p.Name == parameter }
	return slices.ContainsFunc(m.Default, is) || slices.ContainsFunc(m.Custom, is)
}

// lacks are the custom parameters that are to be made.
func (m vtubeModel) lacks() (names []string) {
	for _, v := range customValues(Scene{}) {
		if !m.has(v.ID) {
			names = append(names, v.ID)
		}
	}
	return names
}

// note is what the owner ought to know of a model in a program, which plays animations
// by its hotkeys or motions.
func (m vtubeModel) note(program, plays string) error {
	known := slices.ContainsFunc(agent.Emotions(), func(e agent.Emotion) bool {
		file, hotkey := m.meant("face", e.Name)
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

// customValues are the parameters that VTube Studio has only for Perch: what the agent
// feels, each from 0 to 1, and the number of its state in the list of states.
func customValues(s Scene) []value {
	var all []value
	for _, f := range feelings()[1:] {
		all = append(all, value{"Stackchan" + capital(f), round(strengths(s.Mood.Feelings)[f])})
	}
	return append(all, value{customState, float64(max(0, slices.Index(states(), s.State)))})
}

const customState = "StackchanState"

// customMost is the highest value of a custom parameter.
func customMost(name string) int {
	if name == customState {
		return len(states()) - 1
	}
	return 1
}

// push is how far the mood moves one part of the face, by the part's full range: from -1
// to 1.
type push struct {
	id string // as VTube Studio calls it
	by float64
}

// fullTurn is the range of an angle of the head, in degrees.
const fullTurn = 60

// pushes are the parts of the face that the mood moves.
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
