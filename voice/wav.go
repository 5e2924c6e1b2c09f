package voice

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// ErrWAV is wrapped by the errors for a stream that is not a WAV file of PCM or floating-point
// samples.
var ErrWAV = errors.New("not a WAV of PCM or floating-point samples")

// WAVReader reads the sound of a WAV stream. Unless StopAfterData is called, it ignores the size
// of the data chunk and reads to the end of the stream, because a program that streams does not
// know the size when it writes the header; espeak-ng, for example, writes 0x7ffff000.
type WAVReader struct {
	Rate        int // Hz
	channels    int
	sampleBytes int // size of a sample of one channel
	readSample  func(b []byte) int16
	dataSize    uint32 // size in the header of the data chunk, in bytes
	r           *bufio.Reader
	buf         [4096]byte
}

// Format tags of a WAV stream.
const (
	wavPCM        = 1
	wavFloat      = 3
	wavExtensible = 0xfffe
)

// formatName returns the name of a format that WAVReader does not support.
func formatName(tag uint16) string {
	switch tag {
	case 2, 0x11:
		return "ADPCM"
	case 6:
		return "A-law"
	case 7:
		return "mu-law"
	case 0x50, 0x55:
		return "MP3"
	}
	return fmt.Sprintf("format %d", tag)
}

// sampleReader returns a function that reads a sample of a format and returns it with 16
// bits, or nil if the format is not supported.
func sampleReader(tag uint16, bits int) func(b []byte) int16 {
	le := binary.LittleEndian
	switch {
	case tag == wavPCM && bits == 8:
		return func(b []byte) int16 { return int16(int(b[0])<<8 - 32768) }
	case tag == wavPCM && bits == 16:
		return func(b []byte) int16 { return int16(le.Uint16(b)) }
	case tag == wavPCM && (bits == 24 || bits == 32):
		return func(b []byte) int16 { return int16(le.Uint16(b[len(b)-2:])) } // the two highest bytes
	case tag == wavFloat && bits == 32:
		return func(b []byte) int16 { return sampleFromFloat(float64(math.Float32frombits(le.Uint32(b)))) }
	case tag == wavFloat && bits == 64:
		return func(b []byte) int16 { return sampleFromFloat(math.Float64frombits(le.Uint64(b))) }
	}
	return nil
}

// sampleFromFloat converts a sample from -1 to 1 to 16 bits.
func sampleFromFloat(v float64) int16 {
	if v != v { // NaN
		return 0
	}
	return int16(math.Round(min(max(v, -1), 1) * math.MaxInt16))
}

const (
	maxSkipped = 1 << 20 // bytes before the sound
	maxWAVRate = 192000  // Hz; greater than the rates that are Playable, since files of recordings may have it
)

// NewWAVReader reads the header of a WAV stream, up to the first sample.
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
		if skipped += len(head) + int(min(size, maxSkipped)); string(head[:4]) != "data" && skipped > maxSkipped {
			return nil, fmt.Errorf("%w: chunk %q of %d bytes", ErrWAV, head[:4], size)
		}
		switch string(head[:4]) {
		case "data":
			if w.Rate == 0 {
				return nil, fmt.Errorf("%w: data before fmt", ErrWAV)
			}
			w.dataSize = size
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

// readFormat reads the content of the fmt chunk, which has this size in bytes.
func (w *WAVReader) readFormat(size uint32) error {
	if size < 16 || size > 64 {
		return fmt.Errorf("%w: fmt chunk of %d bytes", ErrWAV, size)
	}
	f := make([]byte, size+size%2)
	if _, err := io.ReadFull(w.r, f); err != nil {
		return fmt.Errorf("%w: %w", ErrWAV, err)
	}
	// In an extensible format, the GUID at the end begins with the format tag.
	tag := binary.LittleEndian.Uint16(f)
	if tag == wavExtensible && size >= 26 {
		tag = binary.LittleEndian.Uint16(f[24:])
	}
	bits := int(binary.LittleEndian.Uint16(f[14:]))
	if w.readSample = sampleReader(tag, bits); w.readSample == nil {
		return fmt.Errorf("%w: %s of %d bits", ErrWAV, formatName(tag), bits)
	}
	w.sampleBytes = bits / 8
	w.channels = int(binary.LittleEndian.Uint16(f[2:]))
	w.Rate = int(binary.LittleEndian.Uint32(f[4:]))
	if w.channels < 1 || w.channels > 2 {
		return fmt.Errorf("%w: %d channels", ErrWAV, w.channels)
	}
	if w.Rate < 8000 || w.Rate > maxWAVRate || w.Rate%25 != 0 {
		return fmt.Errorf("%w: %d Hz", ErrWAV, w.Rate)
	}
	return nil
}

// StopAfterData makes Read return io.EOF at the end of the data chunk. In a file, other chunks may
// follow. It must be called before Read.
func (w *WAVReader) StopAfterData() { w.r = bufio.NewReader(io.LimitReader(w.r, int64(w.dataSize))) }

// Channels returns the number of channels of the stream, 1 or 2.
func (w *WAVReader) Channels() int { return w.channels }

// Read reads at most len(pcm) mono samples into pcm, and returns the number of samples. For a stereo
// stream a sample is the mean of both channels. The error is io.EOF at the end of the stream.
func (w *WAVReader) Read(pcm []int16) (int, error) {
	size := w.sampleBytes * w.channels
	maxSamples := min(len(pcm), len(w.buf)/size)
	n, err := io.ReadFull(w.r, w.buf[:maxSamples*size])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	samples := n / size
	for i := range samples {
		frame := w.buf[i*size : (i+1)*size]
		pcm[i] = w.readSample(frame[:w.sampleBytes])
		if w.channels == 2 {
			pcm[i] = int16((int(pcm[i]) + int(w.readSample(frame[w.sampleBytes:]))) / 2)
		}
	}
	if samples == 0 && err == nil {
		err = io.EOF
	}
	return samples, err
}

// ReadAll returns the rest of the sound, resampled to rate, in Hz.
func (w *WAVReader) ReadAll(rate int) (pcm []int16, err error) {
	resampler := NewResampler(w.Rate, rate)
	for part := make([]int16, 4096); ; {
		n, err := w.Read(part)
		pcm = append(pcm, resampler.Resample(part[:n])...)
		if errors.Is(err, io.EOF) {
			return pcm, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// WriteWAV writes pcm as a mono WAV file.
func WriteWAV(w io.Writer, rate int, pcm []int16) error {
	head := make([]byte, 0, 44)
	le := binary.LittleEndian
	head = append(head, "RIFF"...)
	head = le.AppendUint32(head, uint32(36+2*len(pcm)))
	head = append(head, "WAVEfmt "...)
	head = le.AppendUint32(head, 16) // size of the fmt chunk
	head = le.AppendUint16(head, 1)  // PCM
	head = le.AppendUint16(head, 1)  // mono
	head = le.AppendUint32(head, uint32(rate))
	head = le.AppendUint32(head, uint32(2*rate)) // bytes per second
	head = le.AppendUint16(head, 2)              // bytes per sample
	head = le.AppendUint16(head, 16)             // bits per sample
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
