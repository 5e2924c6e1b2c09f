package robot

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// TestWhoStreamsForEverIsHeard: after our speech in auto mode, sound that goes on
// in real time is listening, and nothing else is.
func TestWhoStreamsForEverIsHeard(t *testing.T) {
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
				k.say(xiaozhi.ListenStop{}) // by hand it ends the utterance
				time.Sleep(3 * time.Second)
				if c.mode == xiaozhi.Auto {
					k.listen(c.mode)
					k.recognizer.transcripts = understood("y")
					k.channel.forget()
					k.someWords()
					for range 100 { // while we think and speak, which is none of it
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
