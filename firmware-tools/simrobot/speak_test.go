package simrobot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
)

func TestSpeak(t *testing.T) {
	pcm := must.Value(Speak(t.Context(), "what time is it", ""))(t)
	length := time.Duration(len(pcm)) * time.Second / voice.MicRate
	if length < 500*time.Millisecond || length > 3*time.Second || loudest(pcm) < 3000 {
		t.Errorf("%v of sound, at most %d loud", length, loudest(pcm))
	}
}

func TestSpeakWithoutFlite(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Speak(t.Context(), "x", ""); err == nil || !strings.Contains(err.Error(), "apt install flite") {
		t.Errorf("%v, want the cure", err)
	}
}

func TestReadWAV(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.wav")
	f := must.Value(os.Create(file))(t)
	must.Succeed(t, voice.WriteWAV(f, 48000, sine(48000, 48000)))
	f.Close()
	pcm, err := ReadWAV(file)
	if n := len(pcm); err != nil || n < 15900 || n > 16000 || loudest(pcm) < 7000 {
		t.Errorf("a second at 48 kHz became %d samples, %v", n, err)
	}
	must.Succeed(t, os.WriteFile(file, []byte("RIFFnonsense"), 0o600))
	for _, bad := range []string{file, file + ".not"} {
		if _, err := ReadWAV(bad); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestSilenceIsSentInAFewBytes(t *testing.T) {
	m, err := newMic(1)
	must.Succeed(t, err)
	start := time.Now()
	m.start(start)
	small, n := 0, 0
	err = m.advance(start.Add(6*time.Second), func(p []byte) error {
		n++
		if len(p) <= 4 {
			small++
		}
		return nil
	})
	if err != nil || n != 100 || small < 50 {
		t.Errorf("%v; %d packets in 6 s of silence, %d of them small, want 100 and most", err, n, small)
	}
}
