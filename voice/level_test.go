package voice_test

import (
	"testing"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// TestLevel checks that the level is 0 for silence, 1 for loud sound, and between them for quiet
// sound.
func TestLevel(t *testing.T) {
	if n := voice.Level(nil) + voice.Level(make([]int16, 720)); n != 0 {
		t.Errorf("silence is %g", n)
	}
	before := 0.0
	for _, amplitude := range []float64{300, 1000, 3000, 8000} {
		level := voice.Level(voicetest.Tone(voice.SpeakerRate, 440, amplitude, time.Second))
		if level <= before || level >= 1 {
			t.Errorf("%g is %g", amplitude, level)
		}
		before = level
	}
	if n := voice.Level(voicetest.Tone(voice.SpeakerRate, 440, 30000, time.Second)); n != 1 {
		t.Errorf("a shout is %g", n)
	}
}

// TestLevelsOfPackets checks that a packet has one level for each of its halves.
func TestLevelsOfPackets(t *testing.T) {
	e := newEncoder(t, voice.SpeakerRate)
	loud := voicetest.Tone(voice.SpeakerRate, 440, 20000, time.Second)[:voice.SpeakerFrame/2]
	var all []voice.Levels
	out := func([]byte) error {
		all = append(all, e.Levels())
		return nil
	}
	pcm := append(append([]int16(nil), loud...), make([]int16, voice.SpeakerFrame)...)
	pcm = append(pcm, loud...)
	must.Succeed(t, e.Encode(append(pcm, loud...), out))
	must.Succeed(t, e.Flush(out))
	want := []voice.Levels{{1, 0}, {0, 1}, {1, 0}}
	if len(all) != len(want) || all[0] != want[0] || all[1] != want[1] || all[2] != want[2] {
		t.Errorf("%v, want %v", all, want)
	}
}
