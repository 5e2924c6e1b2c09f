package skin

import (
	"net/http"
	"strings"
	"testing"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// TestMoodsNeedSubscription tests that moods, gestures and looks are sent only to skins that subscribe to them.
func TestMoodsNeedSubscription(t *testing.T) {
	h := newHarness(t)
	usual, c := h.connect(t), h.connect(t)
	c.send(`{"type":"subscribe","events":["gesture","look_at","mood","said","notification"]}`)
	c.answered()
	h.happens("", "s", event.Gesture{Name: "wave", Duration: 1500, By: event.ByModel}, event.LookAt{Target: "user", By: event.ByModel},
		event.Mood{Dominant: "celebration", Face: "happy", Feelings: event.Feelings{Celebration: .7}, Morphs: event.Morphs{MouthSmile: .6}},
		event.Said{Text: "Hello."}, event.Said{Text: "I report it.", By: event.ByViewer})
	got := strings.Join(c.until(), "\n")
	for _, want := range []string{`"duration_ms":1500`, `"target":"user"`, `"celebration":0.7`, `"mouthSmile":0.6`, `"session_id":"s"`,
		`"text":"Hello."`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if strings.Contains(got, "I report it.") {
		t.Error("a skin is sent what another has reported to say")
	}
	if got := strings.Join(usual.until(), "\n"); strings.Contains(got, "celebration") || strings.Contains(got, "wave") ||
		strings.Contains(got, "Hello.") {
		t.Errorf("a skin that did not ask for it is sent %s", got)
	}
	late := h.connect(t)
	late.send(`{"type":"subscribe","events":["mood","notification"]}`)
	if got := strings.Join(late.answered(), "\n"); !strings.Contains(got, `"dominant":"celebration"`) {
		t.Errorf("a skin that comes later is sent %s", got)
	}
}

// TestGestureInJoinedTalk tests that a gesture in a robot's conversation is published for the chat, and for the
// robot if the robot is adopted.
func TestGestureInJoinedTalk(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = []agent.Reply{agent.Cue{Kind: "anim", Value: "wave"}, agent.Cue{Kind: "pause", Value: "1"}, agent.Say{Text: "Hello."},
		agent.Done{}}
	for robot, makes := range map[device.ID]bool{robotA: true, stranger: false} {
		c := h.connect(t)
		c.send(`{"type":"subscribe","events":["gesture","notification"]}`)
		c.answered()
		if answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", "robot:"+string(robot)); answer.StatusCode != 200 {
			t.Fatal(body)
		}
		var ofChat, ofRobot int
		for _, f := range c.until() {
			if strings.Contains(f, `"name":"wave"`) && strings.Contains(f, `"session_id":"`) {
				ofChat++
			}
			if strings.Contains(f, `"name":"wave"`) && strings.Contains(f, `"robot":"`+string(robot)+`"`) {
				ofRobot++
			}
		}
		if ofChat != 1 || ofRobot != map[bool]int{true: 1}[makes] {
			t.Errorf("%s: the chat shows %d waves, and the robot makes %d", robot, ofChat, ofRobot)
		}
	}
}
