package voice

import (
	"math"
	"math/bits"
)

// spectrumSpan is the length of sound in a spectrum, in samples: a step and the sound
// before it.
const spectrumSpan = 512

// bandEdges divide the spectrum into critical bands, in Hz. Above the last a robot's
// codec sends little that can be compared.
var bandEdges = [...]int{100, 200, 300, 400, 510, 630, 770, 920, 1080, 1270, 1480, 1720, 2000, 2320, 2700, 3150, 3700, 4400, 5300}

const bands = len(bandEdges) - 1

// levels is the power of a step of sound in each band, as a mean square.
type levels [bands]float32

// analyser computes the levels of two streams of sound at once: transforming a complex
// sound costs no more than transforming a real one.
type analyser struct {
	tail     [2][spectrumSpan]float32 // the latest sound
	re, im   [spectrumSpan]float32
	hann     [spectrumSpan]float32
	cos, sin [spectrumSpan / 2]float32
	order    [spectrumSpan]uint16
	edges    [bands + 1]int // in bins
}

func newAnalyser() *analyser {
	a := &analyser{}
	shift := 17 - bits.Len(spectrumSpan)
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

// step adds a step to both streams and returns their levels.
func (a *analyser) step(first, second *[echoStep]int16) (one, two levels) {
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
	// The two are separated by symmetry, which leaves a factor of 4; half of
	// the power is in the mirrored half; the window passes 3/8 of it.
	const scale = 2 / (4 * 0.375 * spectrumSpan * spectrumSpan)
	for b := range bands {
		var p, q float32
		for k := a.edges[b]; k < a.edges[b+1]; k++ {
			zr, zi, mr, mi := a.re[k], a.im[k], a.re[spectrumSpan-k], a.im[spectrumSpan-k]
			p += (zr+mr)*(zr+mr) + (zi-mi)*(zi-mi)
			q += (zi+mi)*(zi+mi) + (mr-zr)*(mr-zr)
		}
		one[b], two[b] = p*scale, q*scale
	}
	return one, two
}

// transform is the fast Fourier transform of re and im, which are in bit-reversed order.
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
