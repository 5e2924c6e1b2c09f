package wyoming

import (
	"encoding/binary"
	"errors"
	"fmt"

	"perch/voice"
)

// sound converts the sound of a server, which arrives in pieces, to 24 kHz mono.
type sound struct {
	text      string // the text that is spoken
	format    Format // zero before the first setFormat
	samples   Samples
	converter *voice.Converter
}

// newSound returns a sound for a text. The converted sound is passed to out.
func newSound(text string, arrival *voice.Arrival, out func([]int16) error) *sound {
	return &sound{text: text, converter: voice.NewConverter(voice.MaxSpeech(text), arrival, func(pcm []int16) error {
		if err := out(pcm); err != nil {
			return listenerError{err}
		}
		return nil
	})}
}

// setFormat sets the format of the following sound. If the number of channels changes, it
// drops an incomplete sample.
func (s *sound) setFormat(f Format) error {
	switch {
	case f.Width != 2:
		return reason(fmt.Sprintf("its sound has samples of %d bytes, and only those of 2 can be played; choose another voice", f.Width))
	case f.Channels < 1 || f.Channels > 2:
		return reason(fmt.Sprintf("its sound has %d channels, and only mono and stereo can be played; choose another voice", f.Channels))
	case !s.converter.SetRate(f.Rate):
		return reason(fmt.Sprintf("its sound has %d samples a second, which cannot be played; choose another voice", f.Rate))
	}
	if s.samples.Channels != f.Channels {
		s.samples.Channels, s.samples.rest = f.Channels, s.samples.rest[:0]
	}
	s.format = f
	return nil
}

func (s *sound) add(payload []byte) error {
	err := s.samples.Add(payload, s.converter.Convert)
	if errors.Is(err, voice.ErrEndless) {
		return reason(fmt.Sprintf("it does not stop speaking: %s are enough for this text", voice.MaxSpeech(s.text)))
	}
	return err
}

// Samples converts 16-bit little-endian sound to mono. The sound is added in pieces, which
// may end within a sample.
type Samples struct {
	Channels int // 1 or 2

	rest []byte      // the incomplete sample at the end of the previous piece
	pcm  [2048]int16 // buffer for the converted sound
}

// Add converts a piece of sound, preceded by the incomplete sample of the previous piece, and
// passes the result to out in one or several calls. out must not retain its argument. If out
// returns an error, Add returns that error, and the remainder of the piece is lost.
func (s *Samples) Add(payload []byte, out func([]int16) error) error {
	size := 2 * s.Channels
	if n := len(s.rest); n > 0 {
		missing := min(size-n, len(payload))
		s.rest = append(s.rest, payload[:missing]...)
		payload = payload[missing:]
		if len(s.rest) < size {
			return nil
		}
		if err := out(s.mono(s.rest)); err != nil {
			return err
		}
		s.rest = s.rest[:0]
	}
	for len(payload) >= size {
		n := min(len(s.pcm)*size, len(payload)/size*size)
		if err := out(s.mono(payload[:n])); err != nil {
			return err
		}
		payload = payload[n:]
	}
	s.rest = append(s.rest, payload...)
	return nil
}

// mono converts complete samples to mono. There must be at most len(s.pcm) of them.
func (s *Samples) mono(b []byte) []int16 {
	size := 2 * s.Channels
	n := len(b) / size
	for i := range n {
		v := int(int16(binary.LittleEndian.Uint16(b[i*size:])))
		if s.Channels == 2 {
			v = (v + int(int16(binary.LittleEndian.Uint16(b[i*size+2:])))) / 2
		}
		s.pcm[i] = int16(v)
	}
	return s.pcm[:n]
}
