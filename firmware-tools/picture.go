package main

import (
	"fmt"
	"strings"
	"unicode"

	"perch/command"
	"perch/firmware-tools/simrobot"
)

// picture formats a conversation for a terminal: a line for each observation, preceded by the
// robot's face at that moment. The face also shows the direction of the robot's head.
type picture struct {
	screen   command.Screen
	emotion  string // key of features
	speaking bool
	yaw      int // degrees; negative is left
}

// features maps an emotion to its eyes and its mouth. Emotions that are not in the map look neutral.
// The characters are ASCII, so that each takes one column on every console.
var features = map[string][2]string{
	"happy": {"^^", "u"}, "laughing": {"^^", "D"}, "funny": {"^^", "D"}, "loving": {"**", "u"}, "kissy": {"**", "*"}, "delicious": {"^^", "p"},
	"winking": {"^-", "u"}, "cool": {"==", "_"}, "confident": {"==", "u"}, "relaxed": {"--", "u"}, "silly": {"@@", "p"},
	"sad": {";;", "n"}, "crying": {"TT", "n"}, "angry": {"><", "n"}, "embarrassed": {"//", "~"},
	"surprised": {"OO", "o"}, "shocked": {"OO", "O"}, "thinking": {"''", "~"}, "doubtful": {"''", "n"}, "confused": {"o.", "~"},
	"sleepy": {"--", "."},
}

// update changes the picture according to an observation.
func (p *picture) update(h simrobot.Observation) {
	switch h := h.(type) {
	case simrobot.EmotionShown:
		p.emotion = h.Face
	case simrobot.Entered:
		p.speaking = h.State == simrobot.Speaking
		if h.State == simrobot.Listening {
			p.emotion = "neutral" // as in the firmware
		}
	case simrobot.HeadMoved:
		p.yaw = h.Yaw
	case simrobot.HungUp:
		p.emotion = "sleepy"
	}
}

// face returns the robot's face in seven columns. The mouth is open while the robot speaks. If the
// head is turned, an angle bracket points to the robot's left or right. The robot's left is on the
// left of the screen, although the left of a real robot is on the viewer's right.
func (p *picture) face() string {
	eyes, mouth := "oo", "_"
	if f, ok := features[p.emotion]; ok {
		eyes, mouth = f[0], f[1]
	}
	if p.speaking {
		mouth = "o"
	}
	left, right := " ", " "
	if p.yaw < 0 {
		left = "<"
	} else if p.yaw > 0 {
		right = ">"
	}
	return left + "(" + eyes[:1] + mouth + eyes[1:] + ")" + right
}

// labels maps the actor and the action of a log line to a label that a first-time viewer
// understands, and to its ANSI colour.
var labels = map[string]struct{ text, colour string }{
	"robot says":  {"you say", "1;36"},
	"perch heard": {"it hears", "36"},
	"perch feels": {"it feels", "33"},
	"perch says":  {"it says", "1;32"},
	"perch hello": {"connects", "2"},
	"robot tool":  {"it does", "35"},
	"robot moves": {"it moves", "35"},
	"robot sets":  {"it sets", "35"},
	"robot lists": {"it can do", "2"},
}

// line returns the line to print for an observation: the face and the text, cut to the width of
// the screen.
func (p *picture) line(actor, action, words string) string {
	label, ok := labels[actor+" "+action]
	if !ok {
		label.text, label.colour = action, "2"
	}
	if strings.Contains(action, ":") {
		label.text = "boots" // in the line about a check-in the action is the robot's MAC address
	}
	// The last column stays free: some terminals wrap after a full line.
	text := truncate(fmt.Sprintf("%-9s  %s", label.text, words), p.screen.Width-len("<(o_o)>  ")-1)
	if p.screen.Colour {
		return fmt.Sprintf("\x1b[1;33m%s\x1b[0m  \x1b[%sm%s\x1b[0m", p.face(), label.colour, text)
	}
	return strings.TrimRight(p.face()+"  "+text, " ")
}

// truncate cuts a text to at most columns columns. A text that was cut ends with an ellipsis.
func truncate(text string, columns int) string {
	used, end := 0, 0
	for i, r := range text {
		n := runeWidth(r)
		if used+n > columns {
			return text[:end] + "…"
		}
		if used += n; used < columns {
			end = i + len(string(r))
		}
	}
	return text
}

// runeWidth returns the number of columns of a character, or the larger number if terminals
// differ.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || r >= 0xfe00 && r <= 0xfe0f:
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2600 && r <= 0x27bf, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f000:
		return 2
	}
	return 1
}
