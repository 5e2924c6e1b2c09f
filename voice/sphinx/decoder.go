package sphinx

/*
#cgo LDFLAGS: -Wl,--as-needed
#cgo pkg-config: pocketsphinx
#include <stdlib.h>
#include "decoder.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	"perch/voice"
)

// decoder is a decoder of the library. It has one or several grammars, and uses one of them at a
// time. It is not safe for concurrent use.
type decoder struct {
	ps *C.decoder_t
}

// span is a word of a decoded utterance.
type span struct {
	word        string
	first, last int // first and last frame, of 10 ms each
	score       int // acoustic score, the logarithm of a likelihood
}

// mean is the average cepstrum (a vector of spectral features) of a sound.
type mean [C.cepstrumSize]float32

// newDecoder returns a decoder that uses the grammar jsgf under the given name. acoustics is the
// directory of the acoustic model. args are further options of the library. words must contain all
// words of the grammar.
func newDecoder(acoustics string, args []string, words []pronunciation, name, jsgf string) (*decoder, error) {
	d, err := open(acoustics, args)
	if err != nil {
		return nil, err
	}
	for _, w := range words {
		if err = d.addWord(w); err != nil {
			break
		}
	}
	if err == nil {
		err = d.setGrammar(name, jsgf)
	}
	if err == nil {
		err = d.use(name)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// open returns a decoder with an acoustic model, given by its directory, and without words
// and grammars.
func open(acoustics string, args []string) (*decoder, error) {
	var reason C.reason_t
	// The library requires a dictionary. /dev/null is an empty one; addWord adds the words.
	args = slices.Concat([]string{"-hmm", acoustics, "-dict", "/dev/null"}, bothArgs, args)
	argv := make([]*C.char, len(args))
	for i, a := range args {
		argv[i] = C.CString(a)
		defer C.free(unsafe.Pointer(argv[i]))
	}
	ps := C.open_decoder(C.int(len(argv)), &argv[0], &reason)
	if ps == nil {
		return nil, noModel("open the acoustic model "+acoustics, lastError(&reason))
	}
	return &decoder{ps}, nil
}

// addWord adds a pronunciation to the decoder's dictionary.
func (d *decoder) addWord(w pronunciation) error {
	var reason C.reason_t
	word, phones := C.CString(w.word), C.CString(w.phones)
	defer C.free(unsafe.Pointer(word))
	defer C.free(unsafe.Pointer(phones))
	if C.add_word(d.ps, word, phones, &reason) < 0 {
		return fmt.Errorf("add %q to the recognizer's dictionary: %w", w.word, lastError(&reason))
	}
	return nil
}

// setGrammar compiles a grammar, whose words must have been added. It replaces a grammar with
// the same name. It does not change which grammar is in use.
func (d *decoder) setGrammar(name, jsgf string) error {
	var reason C.reason_t
	id, text := C.CString(name), C.CString(jsgf)
	defer C.free(unsafe.Pointer(id))
	defer C.free(unsafe.Pointer(text))
	if C.set_grammar(d.ps, id, text, &reason) != 0 {
		return fmt.Errorf("compile the grammar of %s: %w", name, lastError(&reason))
	}
	return nil
}

// use selects the grammar for the next utterances. It takes no time, but must not be called
// during an utterance.
func (d *decoder) use(name string) error {
	var reason C.reason_t
	id := C.CString(name)
	defer C.free(unsafe.Pointer(id))
	if C.use_grammar(d.ps, id, &reason) != 0 {
		return fmt.Errorf("use the grammar of %s: %w", name, lastError(&reason))
	}
	return nil
}

// lastError returns the last error message of the library in a call that failed.
func lastError(reason *C.reason_t) error {
	if s := strings.TrimSpace(C.GoString(&reason.text[0])); s != "" {
		return errors.New(s)
	}
	return errors.New("the library gives no reason")
}

// start begins an utterance. It resets the library's estimate of the background noise,
// because earlier utterances may have come from other rooms.
func (d *decoder) start() error {
	if C.ps_start_stream(d.ps) != 0 || C.ps_start_utt(d.ps) != 0 {
		return errors.New("the decoder does not start an utterance")
	}
	return nil
}

// feed decodes 16 kHz PCM.
func (d *decoder) feed(pcm []int16) error { return d.process(pcm, 0) }

// skim updates the mean from 16 kHz PCM, without decoding.
func (d *decoder) skim(pcm []int16) error { return d.process(pcm, 1) }

// process passes 16 kHz PCM to the library, which decodes it unless noSearch is 1.
func (d *decoder) process(pcm []int16, noSearch C.int) error {
	if len(pcm) == 0 {
		return nil
	}
	if C.ps_process_raw(d.ps, (*C.int16)(unsafe.Pointer(&pcm[0])), C.size_t(len(pcm)), noSearch, 0) < 0 {
		return errors.New("the decoder fails on the sound")
	}
	return nil
}

func (d *decoder) stop() error {
	if C.ps_end_utt(d.ps) != 0 {
		return errors.New("the decoder does not end the utterance")
	}
	return nil
}

// result returns the sentence of the grammar that fits best, or "" if none fits or the sound
// is silence. Before stop it may be the beginning of a sentence.
func (d *decoder) result() string {
	return C.GoString(C.ps_get_hyp(d.ps, nil))
}

// spans returns the words of the result and the silences between them, in order.
func (d *decoder) spans() []span {
	const maxSpans = 2 * int(voice.MaxUtterance/(10*time.Millisecond))
	buf := make([]C.span_t, maxSpans)
	n := int(C.spans(d.ps, &buf[0], C.int(maxSpans)))
	out := make([]span, n)
	for i, s := range buf[:n] {
		out[i] = span{C.GoString(s.word), int(s.first), int(s.last), int(s.score)}
	}
	return out
}

// mean returns the mean that the decoder subtracts from the next utterance.
func (d *decoder) mean() (m mean) {
	C.get_mean(d.ps, (*C.float)(&m[0]))
	return m
}

// setMean sets the mean, as if it had been computed from this number of frames.
func (d *decoder) setMean(m mean, frames int) {
	C.set_mean(d.ps, (*C.float)(&m[0]), C.int(frames))
}

// close frees the memory of the decoder, and returns it to the kernel.
func (d *decoder) close() {
	C.close_decoder(d.ps)
	d.ps = nil
}
