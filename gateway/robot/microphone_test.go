package robot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/voice"
)

// TestTyped checks that a typed text begins a turn, and that the text with which a robot wakes does not.
func TestTyped(t *testing.T) {
	listened := func(k *talk) { k.listen(xiaozhi.Auto) }
	streaming := func(k *talk) { k.listen(xiaozhi.Auto); k.quiet(3 * time.Second) }
	preRoll := func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.say(xiaozhi.ListenStop{})
		for i := range 33 {
			k.put(frame{audio: xiaozhi.Audio{Opus: k.packets[i%len(k.packets)]}})
		}
	}
	for name, c := range map[string]struct {
		before func(*talk)
		detect xiaozhi.ListenDetect
		want   []string // texts that the mind is given
	}{
		"marked, at once":           {func(*talk) {}, xiaozhi.ListenDetect{Text: "hello", Typed: true}, []string{"hello"}},
		"a wake word":               {func(*talk) {}, xiaozhi.ListenDetect{Text: "hello"}, nil},
		"after listening":           {listened, xiaozhi.ListenDetect{Text: "hello"}, []string{"hello"}},
		"while a microphone runs":   {streaming, xiaozhi.ListenDetect{Text: "hello"}, []string{"hello"}},
		"a wake word and its sound": {preRoll, xiaozhi.ListenDetect{Text: "hello"}, nil},
		"marked all the same":       {preRoll, xiaozhi.ListenDetect{Text: "hello", Typed: true}, []string{"hello"}},
		"a face":                    {listened, xiaozhi.ListenDetect{Text: "face"}, nil},
		"nothing":                   {listened, xiaozhi.ListenDetect{Typed: true}, nil},
		"lines":                     {listened, xiaozhi.ListenDetect{Text: "a\r\n\x1bb", Typed: true}, []string{"a   b"}},
		"a book":                    {listened, xiaozhi.ListenDetect{Text: strings.Repeat("é", 20000), Typed: true}, []string{strings.Repeat("é", 1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			var given []string
			mind := &scriptedMind{answer: func(_ context.Context, turn agent.Turn, out func(agent.Reply) error) error {
				given = append(given, turn.Text)
				return out(agent.Done{End: agent.Continue})
			}}
			talking(t, mind, func(k *talk) {
				c.before(k)
				k.happened()
				k.say(c.detect)
				k.pass(time.Second)
				if !slices.Equal(given, c.want) {
					t.Errorf("the mind was given %q, want %q", given, c.want)
				}
				if woken := slices.Contains(k.happened(), "perceived"); woken != (c.want == nil && c.detect.Text != "") {
					t.Errorf("perceived: %v", woken)
				}
			})
		})
	}
}

// TestEndlessStreamIsListenedTo checks that after the robot's speech in auto mode, sound that arrives in real time counts
// as an open microphone, and that nothing else does.
func TestEndlessStreamIsListenedTo(t *testing.T) {
	burst := func(k *talk) {
		for range 33 {
			k.put(frame{audio: xiaozhi.Audio{Opus: k.silence[0]}})
		}
	}
	for name, c := range map[string]struct {
		mode  xiaozhi.Mode
		after func(*talk)
		want  bool
	}{
		"a second of it": {xiaozhi.Auto, func(k *talk) { k.quiet(1200 * time.Millisecond) }, true},
		"half a second":  {xiaozhi.Auto, func(k *talk) { k.quiet(600 * time.Millisecond) }, false},
		"with gaps": {xiaozhi.Auto, func(k *talk) {
			k.quiet(600 * time.Millisecond)
			time.Sleep(time.Second)
			k.quiet(600 * time.Millisecond)
		}, false},
		"at once": {xiaozhi.Auto, burst, false},
		"one packet a second": {xiaozhi.Auto, func(k *talk) {
			for range 5 {
				k.quiet(60 * time.Millisecond)
				time.Sleep(time.Second)
			}
		}, false},
		"two bursts":           {xiaozhi.Auto, func(k *talk) { burst(k); time.Sleep(1100 * time.Millisecond); burst(k) }, false},
		"by hand":              {xiaozhi.Manual, func(k *talk) { k.quiet(3 * time.Second) }, false},
		"after it said stop":   {xiaozhi.Auto, func(k *talk) { k.say(xiaozhi.ListenStop{}); k.quiet(3 * time.Second) }, false},
		"after it interrupted": {xiaozhi.Auto, func(k *talk) { k.say(xiaozhi.Abort{}); k.quiet(1200 * time.Millisecond) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer("Yes."), func(k *talk) {
				k.hears(c.mode, "x")
				k.say(xiaozhi.ListenStop{}) // ends the utterance in manual mode
				time.Sleep(3 * time.Second)
				if c.mode == xiaozhi.Auto {
					k.listen(c.mode)
					k.recognizer.transcripts = understood("y")
					k.channel.forget()
					k.someWords()
					for range 100 { // sound during the turn does not count
						if strings.HasSuffix(k.channel.story(), "tts stop") {
							break
						}
						k.quiet(voice.FrameDuration)
					}
				}
				k.happened()
				c.after(k)
				synctest.Wait()
				if heard := slices.Contains(k.happened(), "listening_started"); heard != c.want {
					t.Errorf("listens again: %v", heard)
				}
			})
		})
	}
}
