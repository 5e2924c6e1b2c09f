package voice

/*
#cgo pkg-config: opus
#include <opus.h>

// Go cannot call what takes a variable number of arguments.
static int encoder_set(OpusEncoder *e, int request, opus_int32 value) { return opus_encoder_ctl(e, request, value); }
static int encoder_reset(OpusEncoder *e) { return opus_encoder_ctl(e, OPUS_RESET_STATE); }
*/
import "C"

import (
	"errors"
	"unsafe"
)

// opusEncoder and opusDecoder are libopus's, for one channel. Their state is a
// block without pointers to itself, so it lies in Go's memory, and nobody has
// to free it. It is made of words, for libopus wants it aligned.
type (
	opusEncoder struct{ state []uint64 }
	opusDecoder struct{ state []uint64 }
)

// setting is one of the encoder's.
type setting C.int

const (
	bitrate    setting = C.OPUS_SET_BITRATE_REQUEST
	complexity setting = C.OPUS_SET_COMPLEXITY_REQUEST
	variable   setting = C.OPUS_SET_VBR_REQUEST
	silent     setting = C.OPUS_SET_DTX_REQUEST // nothing is sent in silence

	libraryChooses = C.OPUS_AUTO
)

func newOpusEncoder(rate int) (*opusEncoder, error) {
	e := &opusEncoder{words(C.opus_encoder_get_size(1))}
	return e, opusError(C.opus_encoder_init(e.c(), C.opus_int32(rate), 1, C.OPUS_APPLICATION_VOIP))
}

func (e *opusEncoder) c() *C.OpusEncoder { return (*C.OpusEncoder)(unsafe.Pointer(&e.state[0])) }

func (e *opusEncoder) set(s setting, value int) error {
	return opusError(C.encoder_set(e.c(), C.int(s), C.opus_int32(value)))
}

func (e *opusEncoder) reset() error { return opusError(C.encoder_reset(e.c())) }

// encode makes a packet of one frame and returns its length. Neither slice is
// empty.
func (e *opusEncoder) encode(pcm []int16, packet []byte) (int, error) {
	n := C.opus_encode(e.c(), (*C.opus_int16)(&pcm[0]), C.int(len(pcm)), (*C.uchar)(&packet[0]), C.opus_int32(len(packet)))
	return max(0, int(n)), opusError(C.int(n))
}

func newOpusDecoder(rate int) (*opusDecoder, error) {
	d := &opusDecoder{words(C.opus_decoder_get_size(1))}
	return d, opusError(C.opus_decoder_init(d.c(), C.opus_int32(rate), 1))
}

func (d *opusDecoder) c() *C.OpusDecoder { return (*C.OpusDecoder)(unsafe.Pointer(&d.state[0])) }

// decode puts the sound of a packet into pcm and returns its length in
// samples. Neither slice is empty.
func (d *opusDecoder) decode(packet []byte, pcm []int16) (int, error) {
	n := C.opus_decode(d.c(), (*C.uchar)(&packet[0]), C.opus_int32(len(packet)), (*C.opus_int16)(&pcm[0]), C.int(len(pcm)), 0)
	return max(0, int(n)), opusError(n)
}

// words is room for a state of so many bytes.
func words(size C.int) []uint64 { return make([]uint64, (size+7)/8) }

// opusError is what a result of libopus says, in its own words: below zero is
// an error.
func opusError(result C.int) error {
	if result >= 0 {
		return nil
	}
	return errors.New("opus: " + C.GoString(C.opus_strerror(result)))
}

// OpusVersion is the version of the Opus library in use.
func OpusVersion() string { return C.GoString(C.opus_get_version_string()) }
