package homeassistant

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"perch/event"
)

// TestMusicIsChosen tests the select of the owner's music: its options, its state, and its commands, which are not kept
// for later.
func TestMusicIsChosen(t *testing.T) {
	b, h, e, _ := mirrored(t, func(h *harness) { h.music = []string{"jazz", "it's news"} })
	h.hello(chan1, "s1")
	e.await(state1, has(`"connected":true`, `"music":"off"`))
	e.await(config1, func(payload string) bool {
		var d struct {
			Components map[string]struct {
				Options  []string
				Template string `json:"value_template"`
			}
		}
		return json.Unmarshal([]byte(payload), &d) == nil && strings.Join(d.Components["music"].Options, ", ") == "off, jazz, it's news" &&
			strings.Contains(d.Components["music"].Template, `'it\'s news'`)
	})
	h.happens(chan1, "s1", event.Music{Name: "jazz", State: event.MusicPlaying})
	e.await(state1, has(`"music":"jazz"`, `"agent_state":"idle"`))
	h.happens(chan1, "s1", event.Music{Name: "jazz", State: event.MusicPaused}, event.Music{Name: "jazz", State: event.MusicStopped})
	e.await(state1, has(`"music":"off"`))
	b.publish("perch/a0b1c2d3e4f4/music/set", "it's news")
	h.talk.await(t, "play it's news")
	b.publish("perch/a0b1c2d3e4f4/music/set", "off")
	h.talk.await(t, "stop music")
	e.forget()
	b.publish("perch/a0b1c2d3e4f4/music/set", "")
	e.await(conversation1, has(`"event_type":"command_rejected"`, `"thing":"music"`, "the name of the music is needed"))
	h.talk.open(chan1, false)
	e.forget()
	b.publish("perch/a0b1c2d3e4f4/music/set", "jazz")
	e.await(conversation1, has(`"event_type":"command_rejected"`, "music is not kept for later"))
	b.publish("perch/a0b1c2d3e4f4/music/set", "off") // is silent already
}

// TestWithoutMusicNothingIsAnnounced tests that music which the owner does not have is in neither the discovery nor the state.
func TestWithoutMusicNothingIsAnnounced(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		h.hello(chan1, "s1")
		time.Sleep(time.Second)
		for _, topic := range []string{state1, config1} {
			if payload := s.last(topic); payload == "" || strings.Contains(payload, "music") {
				t.Errorf("%s has %s", topic, payload)
			}
		}
	})
}
