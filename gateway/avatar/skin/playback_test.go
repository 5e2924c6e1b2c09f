package skin

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
	"perch/voice"
)

// TestTurnsArePublishedAtTheSpeedOfSpeech tests that the events of a turn are published at the speed of speech
// although the agent answers at once.
func TestTurnsArePublishedAtTheSpeedOfSpeech(t *testing.T) {
	const one = 360 * time.Millisecond // duration of "One." or "Two."
	replies := []agent.Reply{agent.Felt{Emotion: agent.Emotion{Name: "happy"}}, agent.Say{Text: "One."},
		agent.ToolStatus{ToolStatus: event.ToolStatus{ID: "t", Name: "look", Status: event.ToolRunning}},
		agent.ToolStatus{ToolStatus: event.ToolStatus{ID: "t", Name: "look", Status: event.ToolDone}},
		agent.Felt{Emotion: agent.Emotion{Name: "sad"}}, agent.Cue{Kind: "anim", Value: "wave"}, agent.Say{Text: "Two."}, agent.Done{}}
	const begins = "0s heard, 0s thinking_started, 0s emotion, 0s speaking_started, 0s said"
	for name, c := range map[string]struct {
		again time.Duration // time of a second turn; 0 for a single turn
		leave bool          // the client disconnects after the last reply
		sound time.Duration // duration of the sound of each sentence; 0 if the client plays no sound
		quiet bool          // the client is interrupted while it plays the first sentence
		want  string
	}{
		"a turn": {0, false, 0, false, begins + ", 360ms tool_status, 360ms tool_status, 360ms emotion, 360ms gesture, 360ms said, 720ms turn_ended"},
		"a turn whose client plays its sound": {0, false, 2 * time.Second, false,
			begins + ", 2s tool_status, 2s tool_status, 2s emotion, 2s gesture, 2s said, 4s turn_ended"},
		"a client that is interrupted": {0, false, 2 * time.Second, true, begins + ", 2s tool_status, 2s tool_status, 2s turn_ended"},
		"a client that leaves":         {0, true, 0, false, begins + ", 0s tool_status, 0s tool_status, 0s turn_ended"},
		"a turn that ends the one before": {100 * time.Millisecond, false, 0, false, begins + ", 100ms tool_status, 100ms tool_status, 100ms turn_ended, " +
			"100ms heard, 100ms thinking_started, 100ms emotion, 100ms speaking_started, 100ms said, " +
			"460ms tool_status, 460ms tool_status, 460ms emotion, 460ms gesture, 460ms said, 820ms turn_ended"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bus := event.NewBus()
				o := bare(bus, agent.NewBoard())
				o.Loudness = &voice.Loudness{}
				o.Loudness.Level("vtb_x") // a program uses the loudness
				o.Mind = agent.NewMind(agent.Always(&brain{replies: replies}), agent.NewMemory(&storetest.Table[agent.Entry]{}), bus, o.Log)
				s, reader, began, sound := New(o), bus.Read(), time.Now(), time.Now()
				ask := func() {
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					err := s.runTurn(ctx, question{conversation: conversation{session: "vtb_x", key: "x", named: true}, text: "hello"}, func(r agent.Reply) error {
						switch r.(type) {
						case agent.Say:
							if sound = sound.Add(c.sound); c.sound > 0 {
								o.Loudness.SetEnd("vtb_x", sound)
							}
						case agent.Done:
							if c.leave {
								leave()
							}
						}
						return nil
					})
					if !c.leave {
						must.Succeed(t, err)
					}
				}
				if ask(); c.again > 0 {
					time.Sleep(c.again)
					ask()
				}
				time.Sleep(one / 4)
				if level, _ := o.Loudness.Level("vtb_x"); (level > 0) != (!c.leave && c.sound == 0) {
					t.Errorf("its mouth is open by %g", level)
				}
				if c.quiet {
					o.Loudness.SetEnd("vtb_x", time.Time{})
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if level, _ := o.Loudness.Level("vtb_x"); level != 0 || len(s.playing) > 0 {
					t.Errorf("in the end its mouth is open by %g, and %d turns are played", level, len(s.playing))
				}
				bus.Close()
				var got []string
				reader.Each(context.Background(), func(e event.Envelope) {
					got = append(got, fmt.Sprint(e.At.Sub(began), " ", event.Kind(e.Event)))
				})
				if all := strings.Join(got, ", "); all != c.want {
					t.Errorf("published are\n%s, want\n%s", all, c.want)
				}
			})
		})
	}
}

// TestPlaybacksAreBounded tests that the number of playbacks is bounded if a program starts ever new conversations.
func TestPlaybacksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := event.NewBus()
		defer bus.Close()
		o := bare(bus, agent.NewBoard())
		o.Loudness = &voice.Loudness{}
		o.Mind = agent.NewMind(agent.Always(&brain{replies: []agent.Reply{agent.Say{Text: strings.Repeat("long ", 500)}, agent.Say{Text: "end"},
			agent.Done{}}}), agent.NewMemory(&storetest.Table[agent.Entry]{}), bus, o.Log)
		s := New(o)
		for n := range 3 * maxPlaying {
			c := conversation{session: fmt.Sprint("vtb_", n), key: fmt.Sprint(n), named: true}
			must.Succeed(t, s.runTurn(t.Context(), question{conversation: c, text: "hello"}, func(agent.Reply) error { return nil }))
			time.Sleep(time.Millisecond)
		}
		s.mu.Lock()
		if _, oldest := s.playing["0"]; len(s.playing) != maxPlaying || oldest {
			t.Errorf("%d turns are played, the oldest %t", len(s.playing), oldest)
		}
		s.mu.Unlock()
		time.Sleep(time.Hour)
	})
}
