package voice_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// edge is an edge that was found, and its time in the stream.
type edge struct {
	what voice.Edge
	at   time.Duration
}

// edges passes a stream to an EndPointer in packets, and returns the edges that were found.
func edges(t testing.TB, pcm []int16) (found []edge) {
	t.Helper()
	e, err := voice.NewEndPointer(0)
	must.Succeed(t, err)
	for n := 0; n+voice.MicFrame <= len(pcm); n += voice.MicFrame {
		if what := e.Feed(pcm[n : n+voice.MicFrame]); what != voice.NoEdge {
			found = append(found, edge{what, time.Duration(n+voice.MicFrame) * time.Second / voice.MicRate})
		}
	}
	return found
}

// rooms are RMS values of the noise in which people speak, from a quiet room to a fan.
var rooms = []float64{4, 40, 90}

func TestEndPointerFindsUtterances(t *testing.T) {
	for _, name := range []string{"slt", "rms", "awb"} {
		for _, text := range []string{"what time is it", "set the volume to forty percent", "stop", "help",
			"remember that my keys are in the kitchen"} {
			for _, room := range rooms {
				t.Run(fmt.Sprintf("%s/%s/%v", name, text, room), func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, 2))
					speech := trimmed(flite(t, name, text))
					const before = 2 * time.Second
					stream := join(noise(before, room, r), speech, noise(2*time.Second, room, r))
					for i, n := range noise(time.Duration(len(stream))*time.Second/voice.MicRate, room, r) {
						stream[i] += n / 2
					}
					found := edges(t, throughOpus(t, stream))
					end := before + time.Duration(len(speech))*time.Second/voice.MicRate
					if len(found) != 2 || found[0].what != voice.SpeechBegan || found[1].what != voice.SpeechEnded {
						t.Fatalf("edges %v, want one utterance", found)
					}
					if late := found[0].at - before; late < 0 || late > 600*time.Millisecond {
						t.Errorf("speech began %s after it did", late)
					}
					if silence := found[1].at - end; silence < 250*time.Millisecond || silence > 900*time.Millisecond {
						t.Errorf("speech ended %s after it did", silence)
					}
				})
			}
		}
	}
}

// trimmed returns pcm without the silence at both ends.
func trimmed(pcm []int16) []int16 {
	const step = 160
	from, to := 0, len(pcm)
	for from+step < to && voicetest.RMS(pcm[from:from+step]) < 150 {
		from += step
	}
	for to-step > from && voicetest.RMS(pcm[to-step:to]) < 150 {
		to -= step
	}
	return pcm[from:to]
}

func TestNoiseIsNotAnUtterance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	quiet := func(d time.Duration) []int16 { return noise(d, 6, r) }
	for name, sound := range map[string][]int16{
		"silence":        make([]int16, samples(10*time.Second)),
		"a quiet room":   quiet(10 * time.Second),
		"a fan":          noise(10*time.Second, 300, r),
		"a fan starting": join(quiet(3*time.Second), noise(6*time.Second, 500, r)),
		"a breath": join(quiet(2*time.Second), breath(700*time.Millisecond, 700, r), quiet(2*time.Second),
			breath(500*time.Millisecond, 1200, r), quiet(time.Second)),
		"a servo": join(quiet(2*time.Second), servo(350*time.Millisecond, 500, r), quiet(time.Second),
			servo(500*time.Millisecond, 900, r), quiet(time.Second), servo(300*time.Millisecond, 1500, r), quiet(2*time.Second)),
		"a click": join(quiet(2*time.Second), noise(40*time.Millisecond, 6000, r), quiet(2*time.Second)),
	} {
		t.Run(name, func(t *testing.T) {
			if found := edges(t, throughOpus(t, sound)); len(found) != 0 {
				t.Errorf("edges %v, want none", found)
			}
		})
	}
}

// TestNoiseDoesNotProlongSpeech checks that a breath and the noise of a servo after a sentence
// do not count as speech.
func TestNoiseDoesNotProlongSpeech(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	speech := trimmed(flite(t, "slt", "what time is it"))
	stream := join(noise(time.Second, 6, r), speech, noise(200*time.Millisecond, 6, r), breath(500*time.Millisecond, 700, r),
		noise(300*time.Millisecond, 6, r), servo(350*time.Millisecond, 500, r), noise(2*time.Second, 6, r))
	found := edges(t, throughOpus(t, stream))
	end := time.Second + time.Duration(len(speech))*time.Second/voice.MicRate
	if len(found) != 2 || found[1].at-end > 1300*time.Millisecond {
		t.Errorf("edges %v, the speech ended at %s", found, end)
	}
}

// TestPausesDoNotEndAnUtterance checks that a pause of 400 ms in a sentence does not end the
// utterance.
func TestPausesDoNotEndAnUtterance(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	stream := join(noise(time.Second, 6, r), trimmed(flite(t, "rms", "set the volume")), noise(400*time.Millisecond, 6, r),
		trimmed(flite(t, "rms", "to forty percent")), noise(2*time.Second, 6, r))
	if found := edges(t, throughOpus(t, stream)); len(found) != 2 {
		t.Errorf("edges %v, want one utterance", found)
	}
}

func TestDTXPacketsAreSmallAndSilent(t *testing.T) {
	e, err := voice.NewMicEncoder()
	must.Succeed(t, err)
	small := 0
	var packets [][]byte
	err = e.Encode(make([]int16, samples(5*time.Second)), func(p []byte) error {
		if len(p) <= 10 {
			small++
		}
		packets = append(packets, append([]byte(nil), p...))
		return nil
	})
	if err != nil || small < 50 {
		t.Fatalf("%d of %d packets are DTX (%v); the test does not test what it says", small, len(packets), err)
	}
}
