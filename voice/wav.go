package voice

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrWAV is wrapped for a stream that is not a 16-bit PCM WAV file.
var ErrWAV = errors.New("not a 16-bit PCM WAV")

// WAVReader reads the sound of a WAV stream. Programs that stream do not know the size
// when they write the header (espeak-ng writes 0x7ffff000), so the data chunk is read to
// the end of the stream.
type WAVReader struct {
	Rate     int // samples per second
	channels int
	r        *bufio.Reader
	buf      [4096]byte
}

// Formats of a WAV stream.
const (
	wavPCM        = 1
	wavExtensible = 0xfffe
)

// mostSkipped bounds the bytes skipped before the sound.
const mostSkipped = 1 << 20

// NewWAVReader reads the header, up to the first sample.
func NewWAVReader(r io.Reader) (*WAVReader, error) {
	w := &WAVReader{r: bufio.NewReader(r)}
	var riff [12]byte
	if _, err := io.ReadFull(w.r, riff[:]); err != nil {
		return nil, fmt.Errorf("%w: no RIFF header: %w", ErrWAV, err)
	}
	if string(riff[:4]) != "RIFF" || string(riff[8:]) != "WAVE" {
		return nil, fmt.Errorf("%w: begins with %q", ErrWAV, riff[:4])
	}
	for skipped := 0; ; {
		var head [8]byte
		if _, err := io.ReadFull(w.r, head[:]); err != nil {
			return nil, fmt.Errorf("%w: no data chunk: %w", ErrWAV, err)
		}
		size := binary.LittleEndian.Uint32(head[4:])
		if skipped += len(head) + int(min(size, mostSkipped)); string(head[:4]) != "data" && skipped > mostSkipped {
			return nil, fmt.Errorf("%w: chunk %q of %d bytes", ErrWAV, head[:4], size)
		}
		switch string(head[:4]) {
		case "data":
			if w.Rate == 0 {
				return nil, fmt.Errorf("%w: data before fmt", ErrWAV)
			}
			return w, nil
		case "fmt ":
			if err := w.readFormat(size); err != nil {
				return nil, err
			}
		default:
			if _, err := w.r.Discard(int(size + size%2)); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrWAV, err)
			}
		}
	}
}

func (w *WAVReader) readFormat(size uint32) error {
	if size < 16 || size > 64 {
		return fmt.Errorf("%w: fmt chunk of %d bytes", ErrWAV, size)
	}
	f := make([]byte, size+size%2)
	if _, err := io.ReadFull(w.r, f); err != nil {
		return fmt.Errorf("%w: %w", ErrWAV, err)
	}
	// An extensible format is PCM if the GUID at its end begins with 1.
	tag := binary.LittleEndian.Uint16(f)
	if tag == wavExtensible && size >= 26 {
		tag = binary.LittleEndian.Uint16(f[24:])
	}
	if tag != wavPCM {
		return fmt.Errorf("%w: format %d", ErrWAV, tag)
	}
	w.channels = int(binary.LittleEndian.Uint16(f[2:]))
	w.Rate = int(binary.LittleEndian.Uint32(f[4:]))
	if bits := binary.LittleEndian.Uint16(f[14:]); bits != 16 || w.channels < 1 || w.channels > 2 {
		return fmt.Errorf("%w: %d bits, %d channels", ErrWAV, bits, w.channels)
	}
	if !Playable(w.Rate) {
		return fmt.Errorf("%w: %d Hz", ErrWAV, w.Rate)
	}
	return nil
}

// Channels returns how many channels the stream has; Read returns the first.
func (w *WAVReader) Channels() int { return w.channels }

// Read fills pcm with mono samples (the left channel of a stereo file) and returns their
// number; io.EOF at the end.
func (w *WAVReader) Read(pcm []int16) (int, error) {
	size := 2 * w.channels
	most := min(len(pcm), len(w.buf)/size)
	n, err := io.ReadFull(w.r, w.buf[:most*size])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	samples := n / size
	for i := range samples {
		pcm[i] = int16(binary.LittleEndian.Uint16(w.buf[i*size:]))
	}
	if samples == 0 && err == nil {
		err = io.EOF
	}
	return samples, err
}

// WriteWAV writes pcm as a mono WAV file.
func WriteWAV(w io.Writer, rate int, pcm []int16) error {
	head := make([]byte, 0, 44)
	le := binary.LittleEndian
	head = append(head, "RIFF"...)
	head = le.AppendUint32(head, uint32(36+2*len(pcm)))
	head = append(head, "WAVEfmt "...)
	head = le.AppendUint32(head, 16)
	head = le.AppendUint16(head, 1) // PCM
	head = le.AppendUint16(head, 1) // mono
	head = le.AppendUint32(head, uint32(rate))
	head = le.AppendUint32(head, uint32(2*rate))
	head = le.AppendUint16(head, 2)
	head = le.AppendUint16(head, 16)
	head = append(head, "data"...)
	head = le.AppendUint32(head, uint32(2*len(pcm)))
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("write a WAV file: %w", err)
	}
	if err := binary.Write(w, le, pcm); err != nil {
		return fmt.Errorf("write a WAV file: %w", err)
	}
	return nil
}
