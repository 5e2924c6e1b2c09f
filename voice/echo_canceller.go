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

// Size of the adaptive filter. Its step is the end-pointer's window, and it is just
// longer than the response of a living room: a longer filter learns more slowly.
const (
	echoStep = window               // samples
	echoTail = MicRate * 200 / 1000 // samples
)

// canceller is SpeexDSP's echo canceller: a frequency-domain filter that learns how the
// loudspeaker's sound comes back, and subtracts it. It learns for about five seconds of
// speech.
type canceller struct{ state *C.SpeexEchoState }

func newCanceller() (*canceller, error) {
	c := &canceller{C.speex_echo_state_init(echoStep, echoTail)}
	if c.state == nil {
		return nil, errors.New("make the echo canceller: out of memory")
	}
	rate := C.spx_int32_t(MicRate)
	C.speex_echo_ctl(c.state, C.SPEEX_ECHO_SET_SAMPLING_RATE, unsafe.Pointer(&rate))
	return c, nil
}

// cancel processes one step of the microphone's and the loudspeaker's sound, and puts
// the result into clean.
func (c *canceller) cancel(mic, ref, clean *[echoStep]int16) {
	C.speex_echo_cancellation(c.state, samplesOf(mic), samplesOf(ref), samplesOf(clean))
}

func samplesOf(pcm *[echoStep]int16) *C.spx_int16_t { return (*C.spx_int16_t)(&pcm[0]) }

func (c *canceller) close() {
	if c.state != nil {
		C.speex_echo_state_destroy(c.state)
		c.state = nil
	}
}
