package sherpa

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"

	"perch/voice"
)

// Sizes of the features that Smart Turn reads. They are those of Whisper for 8 s.
const (
	turnSamples = 8 * voice.MicRate
	melBands    = 80
	melHop      = 160 // samples from one frame to the next
	melSpan     = 400 // samples in a frame
	melFrames   = turnSamples / melHop
)

// features computes what Smart Turn reads: the logarithm of the power of sound in bands of the mel scale. It is not safe for
// concurrent use.
type features struct {
	transform *fourier.FFT
	hann      [melSpan]float64
	bands     [melBands]melBand
	spectrum  []complex128
	power     [melSpan/2 + 1]float64
	padded    [turnSamples + melSpan]float64
	frame     [melSpan]float64
}

// melBand is the weights of a band of the mel scale.
type melBand struct {
	first   int // index of the first weight in the spectrum
	weights []float64
}

// newFeatures computes the tables of features.
func newFeatures() *features {
	f := &features{transform: fourier.NewFFT(melSpan)}
	for i := range f.hann {
		f.hann[i] = (1 - math.Cos(2*math.Pi*float64(i)/melSpan)) / 2
	}
	edge := func(i int) float64 { return hertz(mel(voice.MicRate/2) * float64(i) / (melBands + 1)) }
	for m := range f.bands {
		low, middle, high := edge(m), edge(m+1), edge(m+2)
		for i := range f.power {
			hz := float64(i) * voice.MicRate / melSpan
			if weight := min((hz-low)/(middle-low), (high-hz)/(high-middle)); weight > 0 {
				b := &f.bands[m]
				if b.weights == nil {
					b.first = i
				}
				b.weights = append(b.weights, weight*2/(high-low))
			}
		}
	}
	return f
}

// Constants of Slaney's mel scale, which is linear up to logBegin and logarithmic above.
const (
	hertzPerMel = 200.0 / 3
	logBegin    = 1000.0 // Hz
)

// logStep returns the natural logarithm of the ratio of two frequencies above logBegin that differ by a mel.
func logStep() float64 { return math.Log(6.4) / 27 }

// mel returns the mels of a frequency in Hz.
func mel(hz float64) float64 {
	if hz < logBegin {
		return hz / hertzPerMel
	}
	return logBegin/hertzPerMel + math.Log(hz/logBegin)/logStep()
}

// hertz returns the frequency of mels in Hz.
func hertz(mel float64) float64 {
	if mel < logBegin/hertzPerMel {
		return mel * hertzPerMel
	}
	return logBegin * math.Exp((mel-logBegin/hertzPerMel)*logStep())
}

// compute writes the features of the last 8 s of a sound to out, which holds melFrames numbers for each band. A shorter sound
// follows silence. Silence and sound together get the mean 0 and the variance 1.
func (f *features) compute(pcm []int16, out []float32) {
	pcm = pcm[max(0, len(pcm)-turnSamples):]
	var sum, squares float64
	for _, s := range pcm {
		x := float64(s) / 32768
		sum += x
		squares += x * x
	}
	mean := sum / turnSamples
	scale := 1 / math.Sqrt(squares/turnSamples-mean*mean+1e-7)
	sound := f.padded[melSpan/2 : melSpan/2+turnSamples]
	quiet := turnSamples - len(pcm)
	for i := range sound[:quiet] {
		sound[i] = -mean * scale
	}
	for i, s := range pcm {
		sound[quiet+i] = (float64(s)/32768 - mean) * scale
	}
	for i := range melSpan / 2 { // mirror both ends
		f.padded[melSpan/2-1-i] = sound[i+1]
		f.padded[melSpan/2+turnSamples+i] = sound[turnSamples-2-i]
	}
	highest := math.Inf(-1)
	for at := range melFrames {
		for i := range f.frame {
			f.frame[i] = f.padded[at*melHop+i] * f.hann[i]
		}
		f.spectrum = f.transform.Coefficients(f.spectrum, f.frame[:])
		for i, c := range f.spectrum {
			f.power[i] = real(c)*real(c) + imag(c)*imag(c)
		}
		for m, b := range f.bands {
			var power float64
			for i, weight := range b.weights {
				power += weight * f.power[b.first+i]
			}
			level := math.Log10(max(power, 1e-10))
			highest = max(highest, level)
			out[m*melFrames+at] = float32(level)
		}
	}
	lowest := float32(highest - 8)
	for i, level := range out {
		out[i] = (max(level, lowest) + 4) / 4
	}
}
