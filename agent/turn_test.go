package agent_test

import (
	"strings"
	"testing"

	"perch/agent"
	"perch/event"
)

// TestTheGesturesOfCues: a name has one form for robots and skins alike.
func TestTheGesturesOfCues(t *testing.T) {
	for value, want := range map[string]string{"wave": "wave", " Wave": "wave", "my_clip-2": "my_clip-2",
		strings.Repeat("a", 40): strings.Repeat("a", 40),
		strings.Repeat("a", 41): "", "": "", "sit down": "", "wave\n": "wave", "wäve": "", "../x": ""} {
		g, is := agent.Cue{Kind: "anim", Value: value}.Gesture()
		if is != (want != "") || is && g != (event.Gesture{Name: want, By: event.ByModel}) {
			t.Errorf("%q is %+v, %t", value, g, is)
		}
	}
	if _, is := (agent.Cue{Kind: "pause", Value: "wave"}).Gesture(); is {
		t.Error("a pause is a gesture")
	}
}
