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
	"strings"
	"time"
	"unsafe"

	"perch/voice"
)

// decoder is one of the library's decoders with its grammars, one of them in use. It is
// not safe for concurrent use.
type decoder struct {
	ps *C.decoder_t
}

// span is a word of a decoded utterance: its frames, 10 ms each, both ends included, and
// its acoustic score, the logarithm of a likelihood.
type span struct {
	word        string
	first, last int
	score       int
}

// mean is an average spectrum, as a cepstrum.
type mean [C.cepstrumSize]float32

// newDecoder returns a decoder that uses a grammar. words must contain the grammar's
// words, and may contain others.
func newDecoder(acoustics string, args []string, words []pronunciation, name, jsgf string) (*decoder, error) {
	d, err := open(acoustics, args)
	if err != nil {
		return nil, err
	}
	for _, w := range words {
		if err = d.add(w); err != nil {
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

// open opens the acoustic model with an empty dictionary, which has to be a file. The
// words that the grammar needs are added one by one instead.
func open(acoustics string, args []string) (*decoder, error) {
	var reason C.reason_t
	all := append([]string{"-hmm", acoustics, "-dict", "/dev/null"}, bothArgs...)
	all = append(all, args...)
	argv := make([]*C.char, len(all))
	for i, a := range all {
		argv[i] = C.CString(a)
		defer C.free(unsafe.Pointer(argv[i]))
	}
	ps := C.open_decoder(C.int(len(argv)), &argv[0], &reason)
	if ps == nil {
		return nil, noModel("open the acoustic model "+acoustics, lastError(&reason))
	}
	return &decoder{ps}, nil
}

func (d *decoder) add(w pronunciation) error {
	var reason C.reason_t
	word, phones := C.CString(w.word), C.CString(w.phones)
	defer C.free(unsafe.Pointer(word))
	defer C.free(unsafe.Pointer(phones))
	if C.add_word(d.ps, word, phones, &reason) < 0 {
		return fmt.Errorf("add %q to the recognizer's dictionary: %w", w.word, lastError(&reason))
	}
	return nil
}

// setGrammar compiles a grammar whose words have all been added, replacing an earlier
// one of that name. It does not change which one is in use.
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

// use selects the grammar of the next utterances. It must be called between two of them
// and changes only a pointer.
func (d *decoder) use(name string) error {
	var reason C.reason_t
	id := C.CString(name)
	defer C.free(unsafe.Pointer(id))
	if C.use_grammar(d.ps, id, &reason) != 0 {
		return fmt.Errorf("use the grammar of %s: %w", name, lastError(&reason))
	}
	return nil
}

// lastError returns the library's last complaint before it failed.
func lastError(reason *C.reason_t) error {
	if s := strings.TrimSpace(C.GoString(&reason.text[0])); s != "" {
		return errors.New(s)
	}
	return errors.New("the library gives no reason")
}

// start begins an utterance. It resets what the library has learnt of the noise, since
// earlier utterances came from other rooms.
func (d *decoder) start() error {
	if C.ps_start_stream(d.ps) != 0 || C.ps_start_utt(d.ps) != 0 {
		return errors.New("the decoder does not start an utterance")
	}
	return nil
}

// feed decodes 16 kHz PCM.
func (d *decoder) feed(pcm []int16) error { return d.process(pcm, 0) }

// skim only analyses the spectrum of 16 kHz PCM, for mean.
func (d *decoder) skim(pcm []int16) error { return d.process(pcm, 1) }

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

// result returns the best sentence of the grammar, or after end the best complete one;
// "" if none fits or there was only silence. Before end it may be the beginning of a
// sentence.
func (d *decoder) result() string {
	return C.GoString(C.ps_get_hyp(d.ps, nil))
}

// spans returns the words of the result in order, including silences.
func (d *decoder) spans() []span {
	const most = 2 * int(voice.LongestUtterance/(10*time.Millisecond))
	buf := make([]C.span_t, most)
	n := int(C.spans(d.ps, &buf[0], C.int(most)))
	out := make([]span, n)
	for i, s := range buf[:n] {
		out[i] = span{C.GoString(s.word), int(s.first), int(s.last), int(s.score)}
	}
	return out
}

// mean returns the average spectrum that the next utterance is compared with.
func (d *decoder) mean() (m mean) {
	C.get_mean(d.ps, (*C.float)(&m[0]))
	return m
}

// setMean sets the mean as if computed from that many frames.
func (d *decoder) setMean(m mean, frames int) {
	C.set_mean(d.ps, (*C.float)(&m[0]), C.int(frames))
}

func (d *decoder) close() {
	C.ps_free(d.ps)
	d.ps = nil
}
