package sounds

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// loudness returns how loud a tone is in a sound, from 0 to 1.
func loudness(pcm []int16, hertz float64) float64 {
	return voicetest.Amplitude(pcm, voice.SpeakerRate, hertz) / (1 << 15)
}

func rms(pcm []int16) float64 { return voicetest.RMS(pcm) / (1 << 15) }

func second(pcm []int16, from, to float64) []int16 {
	return pcm[int(from*voice.SpeakerRate):int(to*voice.SpeakerRate)]
}

func length(pcm []int16) time.Duration {
	return time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
}

// TestBuiltInSounds checks their lengths and loudness, that neither end clicks, and that they
// are the same every time. PERCH_SOUNDS names a directory to keep them in, to be listened to.
func TestBuiltInSounds(t *testing.T) {
	for name, about := range map[string]time.Duration{"purr": 3 * time.Second, "chime": 1500 * time.Millisecond, "alarm": 4 * time.Second} {
		pcm := builtIn()[name]().pcm()
		if took := length(pcm); took < about-200*time.Millisecond || took > about+200*time.Millisecond {
			t.Errorf("%s lasts %s", name, took)
		}
		peak := int16(0)
		for _, v := range pcm {
			peak = max(peak, v, -v)
		}
		if peak < 22000 || peak > 24000 || rms(pcm) < 0.03 {
			t.Errorf("%s: peak %d, rms %.3f", name, peak, rms(pcm))
		}
		for _, edge := range [][]int16{pcm[:10], pcm[len(pcm)-10:]} {
			if rms(edge) > 0.05 {
				t.Errorf("%s clicks: %v", name, edge)
			}
		}
		if !slices.Equal(pcm, builtIn()[name]().pcm()) {
			t.Errorf("%s is another each time", name)
		}
		if dir := os.Getenv("PERCH_SOUNDS"); dir != "" {
			f, err := os.Create(filepath.Join(dir, name+".wav"))
			must.Succeed(t, err)
			must.Succeed(t, voice.WriteWAV(f, voice.SpeakerRate, pcm))
			_ = f.Close()
		}
	}
}

func TestAChimeHasTwoTones(t *testing.T) {
	pcm := chime().pcm()
	first, then := second(pcm, 0, 0.4), second(pcm, 0.42, 0.82)
	if g, e := loudness(first, 783.99), loudness(first, 659.26); g < 10*e {
		t.Errorf("at first G %.3f, E %.3f", g, e)
	}
	if g, e := loudness(then, 783.99), loudness(then, 659.26); e < 1.5*g {
		t.Errorf("then G %.3f, E %.3f", g, e)
	}
}

// TestAPurrPulses: its loudness goes up and down 25 times a second, and it is
// more than a rumble that no small speaker gives.
func TestAPurrPulses(t *testing.T) {
	pcm := second(purr().pcm(), 0.2, 0.7)
	envelope := make([]int16, len(pcm))
	for i, v := range pcm {
		envelope[i] = max(v, -v)
	}
	beat, other := 0.0, 0.0
	for _, hertz := range []float64{24, 25, 26} {
		beat = max(beat, loudness(envelope, hertz))
	}
	for _, hertz := range []float64{12, 15, 35, 40} {
		other = max(other, loudness(envelope, hertz))
	}
	if beat < 2*other {
		t.Errorf("at 25 Hz %.3f, elsewhere %.3f", beat, other)
	}
	low, smooth := make([]int16, len(pcm)), 0.0
	for i, v := range pcm { // what is below some 200 Hz
		smooth += 0.05 * (float64(v) - smooth)
		low[i] = int16(smooth)
	}
	if rumble, heard := rms(low), rms(pcm); rumble > 0.6*heard {
		t.Errorf("%.3f of %.3f is a rumble", rumble, heard)
	}
}

func TestAnAlarmCallsFourTimes(t *testing.T) {
	pcm := alarm().pcm()
	for call := range 4 {
		from := float64(call)
		if beeps, pause := rms(second(pcm, from, from+0.45)), rms(second(pcm, from+0.6, from+0.95)); beeps < 0.2 || pause > 0.001 {
			t.Errorf("call %d: %.3f, then %.3f", call, beeps, pause)
		}
	}
}
