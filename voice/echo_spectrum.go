package voice

import (
	"math"
	"math/bits"
)

// spectrumSpan is the number of samples that a spectrum is computed from: the samples of a step
// and the latest samples before it.
const spectrumSpan = 512

// bandEdges are the edges of the critical bands, in Hz. Above the last edge, a robot's codec
// sends too little sound for a comparison.
var bandEdges = [...]int{100, 200, 300, 400, 510, 630, 770, 920, 1080, 1270, 1480, 1720, 2000, 2320, 2700, 3150, 3700, 4400, 5300}

const bands = len(bandEdges) - 1

// bandLevels holds the power of a step of sound in each band, as the mean square of the samples.
type bandLevels [bands]float32

// analyser computes the levels of two streams of sound with one Fourier transform: one stream
// is the real part of its input, the other one the imaginary part.
type analyser struct {
	tail     [2][spectrumSpan]float32  // latest sound of both streams
	re, im   [spectrumSpan]float32     // real and imaginary part of the spectrum
	hann     [spectrumSpan]float32     // window function
	cos, sin [spectrumSpan / 2]float32 // twiddle factors
	order    [spectrumSpan]uint16      // each index with its bits reversed
	edges    [bands + 1]int            // bandEdges as indexes of re and im
}

func newAnalyser() *analyser {
	a := &analyser{}
	shift := 17 - bits.Len(spectrumSpan) // leaves the 9 bits of an index
	for i := range spectrumSpan {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / spectrumSpan)
		if i < len(a.cos) {
			a.cos[i], a.sin[i] = float32(cos), float32(-sin)
		}
		a.hann[i] = float32(1-cos) / 2
		a.order[i] = bits.Reverse16(uint16(i)) >> shift
	}
	for i, hz := range bandEdges {
		a.edges[i] = (hz*spectrumSpan + MicRate/2) / MicRate
	}
	return a
}

// step appends a step to both streams and returns their levels.
func (a *analyser) step(first, second *[echoStep]int16) (firstLevels, secondLevels bandLevels) {
	for i, pcm := range [2]*[echoStep]int16{first, second} {
		tail := &a.tail[i]
		copy(tail[:], tail[echoStep:])
		for k, s := range pcm {
			tail[spectrumSpan-echoStep+k] = float32(s)
		}
	}
	for i, j := range a.order {
		a.re[j], a.im[j] = a.tail[0][i]*a.hann[i], a.tail[1][i]*a.hann[i]
	}
	a.transform()
	// The spectrum of a real stream is symmetric, which separates the two streams here.
	// scale undoes three factors: the separation multiplies power by 4, half of the power
	// is in the upper half of the spectrum, and the window passes 3/8 of the power.
	const scale = 2 / (4 * 0.375 * spectrumSpan * spectrumSpan)
	for b := range bands {
		var p, q float32
		for k := a.edges[b]; k < a.edges[b+1]; k++ {
			zr, zi, mr, mi := a.re[k], a.im[k], a.re[spectrumSpan-k], a.im[spectrumSpan-k]
			p += (zr+mr)*(zr+mr) + (zi-mi)*(zi-mi)
			q += (zi+mi)*(zi+mi) + (mr-zr)*(mr-zr)
		}
		firstLevels[b], secondLevels[b] = p*scale, q*scale
	}
	return firstLevels, secondLevels
}

// transform replaces re and im, which are in bit-reversed order, by their Fourier transform.
func (a *analyser) transform() {
	for half := 1; half < spectrumSpan; half *= 2 {
		stride := spectrumSpan / (2 * half)
		for at := 0; at < spectrumSpan; at += 2 * half {
			ar, ai := a.re[at:at+half], a.im[at:at+half]
			br, bi := a.re[at+half:at+2*half], a.im[at+half:at+2*half]
			for k := range ar {
				c, s := a.cos[k*stride], a.sin[k*stride]
				r := br[k]*c - bi[k]*s
				i := br[k]*s + bi[k]*c
				br[k], bi[k] = ar[k]-r, ai[k]-i
				ar[k], ai[k] = ar[k]+r, ai[k]+i
			}
		}
	}
}
