package sphinx

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"perch/voice"
)

// speak is text in one of flite's voices as a robot's microphone hears it: a
// room's faint noise before, under and after it, and through Opus as the
// firmware encodes it.
func speak(t testing.TB, fliteVoice, text string) []int16 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "speech.wav")
	if out, err := exec.Command("flite", "-voice", fliteVoice, "-t", text, "-o", file).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v: %s (apt install flite)", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil || len(data) < 44 {
		t.Fatalf("flite wrote no sound: %v", err)
	}
	samples := data[44:] // flite's header is the shortest one
	const before, after = voice.MicRate / 5, voice.MicRate * 2 / 5
	pcm := make([]int16, before+len(samples)/2+after)
	for i := range len(samples) / 2 {
		pcm[before+i] = int16(binary.LittleEndian.Uint16(samples[2*i:]))
	}
	return overTheAir(t, addNoise(pcm, 15))
}

// addNoise adds hiss of the amplitude given, the same every time.
func addNoise(pcm []int16, amplitude float64) []int16 {
	r := rand.New(rand.NewPCG(1, 2))
	for i, s := range pcm {
		pcm[i] = int16(max(-32768, min(32767, float64(s)+r.NormFloat64()*amplitude)))
	}
	return pcm
}

// overTheAir is pcm encoded and decoded.
func overTheAir(t testing.TB, pcm []int16) []int16 {
	t.Helper()
	encoder, err := voice.NewEncoder(voice.MicRate)
	if err != nil {
		t.Fatal(err)
	}
	if err := encoder.LikeRobot(); err != nil {
		t.Fatal(err)
	}
	decoder, err := voice.NewDecoder(voice.MicRate)
	if err != nil {
		t.Fatal(err)
	}
	var heard []int16
	receive := func(packet []byte) error {
		frame, err := decoder.Decode(packet)
		heard = append(heard, frame...)
		return err
	}
	if err := encoder.Encode(pcm, receive); err != nil {
		t.Fatal(err)
	}
	if err := encoder.Flush(receive); err != nil {
		t.Fatal(err)
	}
	return heard
}

// spoken is an utterance that has ended.
func spoken(pcm []int16) *voice.Utterance {
	u := voice.NewUtterance()
	u.Write(pcm)
	u.Finish()
	return u
}

func recognize(t testing.TB, e *Engine, pcm []int16) voice.Transcript {
	t.Helper()
	got, err := e.Recognize(t.Context(), spoken(pcm), voice.Options{Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// residentMB is the memory that this process has in RAM.
func residentMB(t testing.TB) float64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var all, resident float64
	if _, err := fmt.Sscan(string(data), &all, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * float64(os.Getpagesize()) / (1 << 20)
}
