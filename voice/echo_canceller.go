package voice

/*
#cgo pkg-config: speexdsp
#include <speex/speex_echo.h>
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Sizes of the adaptive filter, in samples.
const (
	echoStep = window               // sound processed at once, equal to the window of EndPointer
	echoTail = MicRate * 200 / 1000 // length of the filter, just above the reverberation of a living room; a longer one learns more slowly
)

// canceller is the echo canceller of SpeexDSP: a frequency-domain filter that learns the echo
// of the loudspeaker's sound in the room, and subtracts it from the microphone's sound.
// Learning takes about five seconds of speech.
type canceller struct{ state *C.SpeexEchoState } // nil after close

func newCanceller() (*canceller, error) {
	c := &canceller{C.speex_echo_state_init(echoStep, echoTail)}
	if c.state == nil {
		return nil, errors.New("make the echo canceller: out of memory")
	}
	rate := C.spx_int32_t(MicRate)
	C.speex_echo_ctl(c.state, C.SPEEX_ECHO_SET_SAMPLING_RATE, unsafe.Pointer(&rate))
	return c, nil
}

// cancel subtracts the echo of ref, one step of the loudspeaker's sound, from mic, and writes
// the result to clean.
func (c *canceller) cancel(mic, ref, clean *[echoStep]int16) {
	C.speex_echo_cancellation(c.state, cSamples(mic), cSamples(ref), cSamples(clean))
}

func cSamples(pcm *[echoStep]int16) *C.spx_int16_t { return (*C.spx_int16_t)(&pcm[0]) }

// close frees the filter. It may be called more than once.
func (c *canceller) close() {
	if c.state != nil {
		C.speex_echo_state_destroy(c.state)
		c.state = nil
	}
}
