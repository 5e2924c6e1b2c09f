package voice

import (
	"errors"
	"fmt"

	"github.com/hraban/opus"
)

// maxPacket is the most sound one Opus packet may hold (RFC 6716
// section 2.1.4), in milliseconds.
const maxPacket = 120

// MaxPacket is the largest Opus packet this package makes or accepts, in
// bytes. Real ones are 100 to 300 bytes.
const MaxPacket = 4000

// ErrPacket is wrapped by Decode for a packet that is not Opus, is empty or is larger
// than MaxPacket.
var ErrPacket = errors.New("not an Opus packet")

// Decoder decodes the Opus packets of one stream to PCM. It has the stream's state, so
// each session needs its own. It is not safe for concurrent use.
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
	return &Decoder{opus: d, pcm: make([]int16, rate/1000*maxPacket)}, nil
}

// Decode returns the sound of one packet. The slice is overwritten by the next call. An
// empty packet is an error: the library would treat it as lost and invent sound.
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

// Conceal returns 60 ms of sound in place of a lost packet. The slice is overwritten by
// the next call.
func (d *Decoder) Conceal() ([]int16, error) {
	pcm := d.pcm[:len(d.pcm)*int(FrameDuration.Milliseconds())/maxPacket]
	if err := d.opus.DecodePLC(pcm); err != nil {
		return nil, fmt.Errorf("conceal a lost packet: %w", err)
	}
	return pcm, nil
}

// Encoder encodes PCM as the Opus packets of one stream, 60 ms each.
type Encoder struct {
	opus  *opus.Encoder
	frame int // samples per packet
	rest  []int16
	now   []int16 // the sound of the packet passed to out
	data  [MaxPacket]byte
}

// Encoding for a robot's speaker, chosen by BenchmarkQuality. The application is music:
// its transform is closer to the sound than the voice model at 24 kbit/s, takes a third
// of the time to encode and no more to decode, and conceals losses better. A packet has
// about 360 bytes, which a robot's radio handles well. Complexity 0 smears consonants.
const (
	speechBitrate    = 48000
	speechComplexity = 5
)

// NewEncoder returns an encoder of mono PCM at rate for a speaker.
func NewEncoder(rate int) (*Encoder, error) {
	return newEncoder(rate, opus.AppAudio, func(e *opus.Encoder) error {
		return errors.Join(e.SetBitrate(speechBitrate), e.SetComplexity(speechComplexity))
	})
}

// NewMicEncoder returns an encoder of mono PCM at MicRate that is set up like the
// firmware's microphone: voice application, lowest complexity, variable rate, and
// discontinuous transmission, which makes packets of a few bytes in silence.
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

// Encode accepts PCM of any length and calls out for every full packet. The remainder is
// kept for the next call, so that sentences join without a click. The packet is only
// valid during the call.
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

// Missing returns how many samples the next packet lacks, at least one.
func (e *Encoder) Missing() int { return e.frame - len(e.rest) }

// Empty reports whether there is no remainder.
func (e *Encoder) Empty() bool { return len(e.rest) == 0 }

// Levels returns the levels of the packet that Encode or Flush passes to out. It may be
// called only during that call.
func (e *Encoder) Levels() (of Levels) {
	part := e.frame / len(of)
	for i := range of {
		of[i] = Level(e.now[i*part : (i+1)*part])
	}
	return of
}

// Flush pads the remainder with silence and encodes it. Without a remainder it does
// nothing.
func (e *Encoder) Flush(out func(packet []byte) error) error {
	if len(e.rest) == 0 {
		return nil
	}
	return e.Encode(make([]int16, e.frame-len(e.rest)), out)
}

// Reset drops the remainder and the stream's state, for an unrelated stream.
func (e *Encoder) Reset() error {
	e.rest = e.rest[:0]
	if err := e.opus.Reset(); err != nil {
		return fmt.Errorf("reset the Opus encoder: %w", err)
	}
	return nil
}

// OpusVersion returns the version of the Opus library.
func OpusVersion() string { return opus.Version() }
