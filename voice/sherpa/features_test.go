package sherpa

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/must"
	"perch/voice"
)

// TestFeatures compares some features of a sound with those that pipecat 1.14.0 computes with numpy, for which Smart Turn was
// trained.
func TestFeatures(t *testing.T) {
	out := make([]float32, melBands*melFrames)
	f := newFeatures()
	f.compute(make([]int16, 9*voice.MicRate), out) // the next result must not depend on it
	f.compute(sweep(), out)
	frames := [...]int{0, 499, 500, 520, 600, 700, 799}
	for band, want := range map[int][len(frames)]float64{
		0:  {0.01798, 0.81635, 1.01964, 0.42397, 0.64867, 0.60618, 0.68399},
		1:  {-0.10476, 0.81714, 1.21817, 0.79434, 0.70108, 0.80576, 0.66423},
		10: {-0.10476, 0.83068, 1.38376, 1.77447, 0.64512, 0.83024, 0.79102},
		30: {-0.10476, 0.604, 1.09756, 1.0584, 0.64712, 0.80239, 0.60047},
		50: {-0.10476, 0.4671, 0.97286, 0.99524, 0.88575, 0.71483, 0.68224},
		79: {-0.10476, 0.29505, 0.79575, 0.78215, 0.74088, 0.83929, 0.67425},
	} {
		for i, frame := range frames {
			if got := float64(out[band*melFrames+frame]); math.Abs(got-want[i]) > 0.0001 {
				t.Errorf("band %d of frame %d is %.5f, want %.5f", band, frame, got, want[i])
			}
		}
	}
}

// sweep returns 3 s of a tone that rises and fades, with noise.
func sweep() []int16 {
	pcm, state := make([]int16, 3*voice.MicRate), 1
	for i := range pcm {
		state = (state*1103515245 + 12345) & 0x7fffffff
		noise, phase := state>>16%400-200, (i*i/4000+i*3)%200
		loud := min(phase, 200-phase)*80 - 4000
		pcm[i] = int16(floorDiv(loud, 1+i/12000) + noise)
	}
	return pcm
}

// floorDiv divides and rounds down.
func floorDiv(a, b int) int { return int(math.Floor(float64(a) / float64(b))) }

// TestAFileThatIsNoModel checks that ONNX Runtime does not end the process as sherpa-onnx does.
func TestAFileThatIsNoModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "smart-turn-v3.2-cpu.onnx")
	must.Succeed(t, os.WriteFile(file, []byte("no weights"), 0o600))
	for range 2 {
		if _, err := NewTurn(file, 1); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("it is loaded: %v", err)
		}
	}
}
