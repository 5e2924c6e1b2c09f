package sphinx

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// speak returns text in a voice of flite or of espeak-ng ("espeak:en-us"), as from a
// robot's microphone: with the faint noise of a room, also before and after the
// speech, and encoded with Opus like the firmware does.
func speak(t testing.TB, voiceName, text string) []int16 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "speech.wav")
	command := []string{"flite", "-voice", voiceName, "-t", text, "-o", file}
	if name, found := strings.CutPrefix(voiceName, "espeak:"); found {
		command = []string{"espeak-ng", "-v", name, "-s", "150", "-w", file, text}
	}
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s (apt install %s)", command[0], err, out, command[0])
	}
	const before, after = voice.MicRate / 5, voice.MicRate * 2 / 5
	pcm := append(make([]int16, before), voicetest.ReadWAV(t, must.Value(os.ReadFile(file))(t), voice.MicRate)...)
	return overTheAir(t, addNoise(append(pcm, make([]int16, after)...), 15))
}

// addNoise adds hiss with this amplitude. The hiss is the same in each call.
func addNoise(pcm []int16, amplitude float64) []int16 {
	r := rand.New(rand.NewPCG(1, 2))
	for i, s := range pcm {
		pcm[i] = int16(max(-32768, min(32767, float64(s)+r.NormFloat64()*amplitude)))
	}
	return pcm
}

// overTheAir encodes pcm with Opus and returns the decoded sound.
func overTheAir(t testing.TB, pcm []int16) []int16 {
	t.Helper()
	encoder, err := voice.NewMicEncoder()
	must.Succeed(t, err)
	decoder, err := voice.NewDecoder(voice.MicRate)
	must.Succeed(t, err)
	var heard []int16
	receive := func(packet []byte) error {
		frame, err := decoder.Decode(packet)
		heard = append(heard, frame...)
		return err
	}
	must.Succeed(t, encoder.Encode(pcm, receive))
	must.Succeed(t, encoder.Flush(receive))
	return heard
}

func recognize(t testing.TB, e *Engine, pcm []int16) voice.Transcript {
	t.Helper()
	got, err := e.Recognize(t.Context(), voicetest.Utterance(pcm), voice.Options{Language: "en", Patient: true})
	must.Succeed(t, err)
	return got
}

// residentMB returns the resident memory of this process in MB.
func residentMB(t testing.TB) float64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	must.Succeed(t, err)
	var all, resident float64
	if _, err := fmt.Sscan(string(data), &all, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * float64(os.Getpagesize()) / (1 << 20)
}
