package voice

import (
	"errors"
	"fmt"

	"github.com/hraban/opus"
)

// longestPacket is the most sound one Opus packet may hold (RFC 6716
// section 2.1.4), in milliseconds.
const longestPacket = 120

// MaxPacket is the largest Opus packet this package makes or accepts, in
// bytes. Real ones are 100 to 300 bytes.
const MaxPacket = 4000

// ErrPacket is wrapped by Decode for a packet that is not Opus, is empty, or
// is larger than MaxPacket.
var ErrPacket = errors.New("not an Opus packet")

// Decoder turns the Opus packets of one stream into PCM. It keeps the
// stream's state: one session has one, and one goroutine uses it.
type Decoder struct {
	opus *opus.Decoder
	pcm  []int16
}

// NewDecoder returns a decoder that yields mono PCM at rate, which is one of
// 8000, 12000, 16000, 24000 and 48000.
func NewDecoder(rate int) (*Decoder, error) {
	d, err := opus.NewDecoder(rate, 1)
	if err != nil {
		return nil, fmt.Errorf("make an Opus decoder for %d Hz: %w", rate, err)
	}
	return &Decoder{opus: d, pcm: make([]int16, rate/1000*longestPacket)}, nil
}

// Decode returns the sound of one packet. The slice is overwritten by the
// next call. An empty packet never reaches the library, which would take it
// for a lost one and invent sound.
func (d *Decoder) Decode(packet []byte) ([]int16, error) {
	if len(packet) == 0 || len(packet) > MaxPacket {
		return nil, fmt.Errorf("%w: %d bytes", ErrPacket, len(packet))
	}
	n, err := d.opus.Decode(packet, d.pcm)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrPacket, err)
	}
	return d.pcm[:n], nil
}

// Conceal returns 60 ms of sound in place of a packet that was lost. The slice is
// overwritten by the next call.
func (d *Decoder) Conceal() ([]int16, error) {
	pcm := d.pcm[:len(d.pcm)*int(FrameDuration.Milliseconds())/longestPacket]
	if err := d.opus.DecodePLC(pcm); err != nil {
		return nil, fmt.Errorf("conceal a lost packet: %w", err)
	}
	return pcm, nil
}

// Encoder turns PCM into the Opus packets of one stream, 60 ms each.
type Encoder struct {
	opus  *opus.Encoder
	frame int // samples in a packet
	rest  []int16
	now   []int16 // the sound of the packet that is given out
	data  [MaxPacket]byte
}

// How speech is encoded for a robot's speaker, by the measure of BenchmarkQuality. The
// application is that of music: its transform comes closer to the sound than the model of
// a voice does at 24 kbit/s, takes a third of the time to encode and no more to decode,
// and what is lost of it is concealed better. A packet is about 360 bytes, which a
// robot's radio does not mind. At complexity 0 consonants are smeared over time.
const (
	speechBitrate    = 48000
	speechComplexity = 5
)

// NewEncoder returns an encoder for mono PCM at rate, to be heard.
func NewEncoder(rate int) (*Encoder, error) {
	return newEncoder(rate, opus.AppAudio, func(e *opus.Encoder) error {
		return errors.Join(e.SetBitrate(speechBitrate), e.SetComplexity(speechComplexity))
	})
}

// NewMicEncoder returns an encoder for mono PCM at MicRate that is set up as the firmware's
// microphone is: made for voices, lowest complexity, variable rate, and discontinuous
// transmission, which makes packets of a few bytes in silence.
func NewMicEncoder() (*Encoder, error) {
	return newEncoder(MicRate, opus.AppVoIP, func(e *opus.Encoder) error {
		return errors.Join(e.SetBitrate(24000), e.SetComplexity(0), e.SetVBR(true), e.SetDTX(true))
	})
}

func newEncoder(rate int, application opus.Application, setUp func(*opus.Encoder) error) (*Encoder, error) {
	e, err := opus.NewEncoder(rate, 1, application)
	if err != nil {
		return nil, fmt.Errorf("make an Opus encoder for %d Hz: %w", rate, err)
	}
	if err := setUp(e); err != nil {
		return nil, fmt.Errorf("set up the Opus encoder: %w", err)
	}
	return &Encoder{opus: e, frame: rate * int(FrameDuration.Milliseconds()) / 1000}, nil
}

// Encode takes any length of PCM and calls out for every full packet in it.
// What is left over is kept for the next call, so that sentences join without
// a click. The packet is only valid during the call.
func (e *Encoder) Encode(pcm []int16, out func(packet []byte) error) error {
	e.rest = append(e.rest, pcm...)
	used := 0
	for ; len(e.rest)-used >= e.frame; used += e.frame {
		e.now = e.rest[used : used+e.frame]
		n, err := e.opus.Encode(e.now, e.data[:])
		if err != nil {
			return fmt.Errorf("encode Opus: %w", err)
		}
		if err := out(e.data[:n]); err != nil {
			return err
		}
	}
	e.rest = e.rest[:copy(e.rest, e.rest[used:])]
	return nil
}

// Missing is how many samples the next packet lacks, at least one.
func (e *Encoder) Missing() int { return e.frame - len(e.rest) }

// Empty reports whether nothing is left over.
func (e *Encoder) Empty() bool { return len(e.rest) == 0 }

// Levels are those of the packet that Encode or Flush gives out. They may be asked for
// only during that call.
func (e *Encoder) Levels() (of Levels) {
	part := e.frame / len(of)
	for i := range of {
		of[i] = Level(e.now[i*part : (i+1)*part])
	}
	return of
}

// Flush fills the last packet up with silence and encodes it. With nothing
// left over it does nothing.
func (e *Encoder) Flush(out func(packet []byte) error) error {
	if len(e.rest) == 0 {
		return nil
	}
	return e.Encode(make([]int16, e.frame-len(e.rest)), out)
}

// Reset forgets the sound left over and the stream's state, as before a new
// and unrelated stream.
func (e *Encoder) Reset() error {
	e.rest = e.rest[:0]
	if err := e.opus.Reset(); err != nil {
		return fmt.Errorf("reset the Opus encoder: %w", err)
	}
	return nil
}

// OpusVersion is the version of the Opus library in use.
func OpusVersion() string { return opus.Version() }
