package mood

import "perch/event"

// Indexes of the morph targets, the movable parts of a face, in the order of event.Morphs.
const (
	mouthSmile = iota
	mouthOpen
	mouthFrown
	mouthPressLeft
	mouthPressRight
	jawOpen
	browInnerUp
	browOuterUpLeft
	browOuterUpRight
	browDownLeft
	browDownRight
	eyeSquintLeft
	eyeSquintRight
	eyeWideLeft
	eyeWideRight
	eyesClosed
	cheekPuff
	cheekSquintLeft
	cheekSquintRight
	mouthFrownLeft
	mouthFrownRight
	noseSneerLeft
	noseSneerRight
	morphTargets // number of the constants above
)

// morphs are the weights of all morph targets, each from 0 to 1.
type morphs [morphTargets]float64

// targetMorphs returns the target weights of the feelings.
func (s State) targetMorphs() (m morphs) {
	concern, celebration, curiosity := s.feelings[Concern], s.feelings[Celebration], s.feelings[Curiosity]
	empathy, uncertain := s.feelings[Empathy], s.feelings[Uncertain]
	m[mouthSmile] = celebration * .85
	m[mouthOpen] = celebration * .2
	m[mouthFrown] = concern * .55
	m[mouthPressLeft], m[mouthPressRight] = uncertain*.35, uncertain*.35
	m[browInnerUp] = max(concern*.6, uncertain*.45, empathy*.5)
	m[browOuterUpLeft], m[browOuterUpRight] = curiosity*.7, curiosity*.5
	m[eyeSquintLeft], m[eyeSquintRight] = empathy*.4, empathy*.4
	m[eyesClosed] = s.feelings[Patience] * .15
	m[cheekPuff] = celebration * .2
	m[noseSneerLeft], m[noseSneerRight] = concern*.15, concern*.15
	if s.startleLeft > 0 {
		m[browInnerUp], m[mouthOpen] = max(m[browInnerUp], startledBrow), max(m[mouthOpen], startledJaw)
	}
	return m
}

// shownMorphs returns the visible weights: a mix of the weights of the feelings and the
// weights of the expression, with the mouth opened by talking.
func (s State) shownMorphs() (m morphs) {
	for i := range m {
		m[i] = s.morphs[i]*(1-s.cover) + s.presetMorphs[i]*s.cover
	}
	m[mouthOpen] = min(1, m[mouthOpen]+s.mouth)
	return m
}

// event returns the weights as published.
func (m morphs) event() event.Morphs {
	return event.Morphs{
		MouthSmile: m[mouthSmile], MouthOpen: m[mouthOpen], MouthFrown: m[mouthFrown], MouthPressLeft: m[mouthPressLeft],
		MouthPressRight: m[mouthPressRight], JawOpen: m[jawOpen], BrowInnerUp: m[browInnerUp], BrowOuterUpLeft: m[browOuterUpLeft],
		BrowOuterUpRight: m[browOuterUpRight], BrowDownLeft: m[browDownLeft], BrowDownRight: m[browDownRight],
		EyeSquintLeft: m[eyeSquintLeft], EyeSquintRight: m[eyeSquintRight], EyeWideLeft: m[eyeWideLeft], EyeWideRight: m[eyeWideRight],
		EyesClosed: m[eyesClosed], CheekPuff: m[cheekPuff], CheekSquintLeft: m[cheekSquintLeft], CheekSquintRight: m[cheekSquintRight],
		MouthFrownLeft: m[mouthFrownLeft], MouthFrownRight: m[mouthFrownRight], NoseSneerLeft: m[noseSneerLeft],
		NoseSneerRight: m[noseSneerRight],
	}
}

// Preset is a requested expression.
type Preset int

// The presets. Plain ends an expression: the feelings are shown again.
const (
	Plain Preset = iota // "neutral"
	Happy
	Sad
	Surprised
	Confused
	Focused
	presets // number of the constants above
)

// expression describes a preset.
type expression struct {
	name   string // name in events
	face   string // the firmware's name of the face
	morphs morphs
}

// expression returns the description of the preset.
func (p Preset) expression() expression {
	return [presets]expression{
		Plain:     {"neutral", "neutral", morphs{}},
		Happy:     {"happy", "happy", morphs{mouthSmile: 1, browInnerUp: .3, cheekSquintLeft: .4, cheekSquintRight: .4}},
		Sad:       {"sad", "sad", morphs{mouthFrownLeft: .8, mouthFrownRight: .8, browDownLeft: .6, browDownRight: .6}},
		Surprised: {"surprised", "surprised", morphs{jawOpen: .5, eyeWideLeft: .8, eyeWideRight: .8, browInnerUp: .9}},
		Confused:  {"confused", "confused", morphs{browInnerUp: .5, browOuterUpLeft: .4, mouthPressLeft: .3, mouthPressRight: .3}},
		Focused:   {"focused", "thinking", morphs{browDownLeft: .4, browDownRight: .4, eyeSquintLeft: .3, eyeSquintRight: .3}},
	}[p]
}

// PresetNamed returns the preset with this name. ok is false for an unknown name.
func PresetNamed(name string) (p Preset, ok bool) {
	for p = range presets {
		if p.expression().name == name {
			return p, true
		}
	}
	return Plain, false
}
