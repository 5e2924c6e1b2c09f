package sounds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Formats of a WAV file.
const (
	wavPCM        = 1
	wavFloat      = 3
	wavExtensible = 0xfffe // the format is in the first bytes of a GUID
)

// wav is the format of a WAV file.
type wav struct {
	format   uint16
	channels int
	rate     int
	bits     int
}

// rates returns the accepted sample rates. For an unusual rate, the resampling filter could
// be as long as the sound.
func rates() []int {
	return []int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400, 192000}
}

// saveAs is the advice for files with an unsupported format.
const saveAs = "save it as WAV with 16 bits at 48000 Hz"

// decodeWAV returns the sound of a WAV file with 16-bit PCM or floats, mixed to mono.
func decodeWAV(ctx context.Context, data []byte) ([]int16, error) {
	w, sound, err := parseWAV(data)
	if err != nil {
		return nil, err
	}
	frame := w.channels * w.bits / 8
	frames := len(sound) / frame
	switch {
	case frames == 0:
		return nil, errSilent
	case frames > maxSamples(w.rate):
		return nil, errTooLong
	}
	pcm := make([]int16, frames)
	for i := range pcm {
		sum := 0.0
		for c := range w.channels {
			sum += w.sample(sound[i*frame+c*w.bits/8:])
		}
		pcm[i] = toPCM(sum / float64(w.channels))
	}
	return resample(ctx, pcm, w.rate)
}

// toPCM converts a sample from -1 to 1 to PCM. It limits greater values, and returns 0 for
// NaN.
func toPCM(v float64) int16 {
	if math.IsNaN(v) {
		return 0
	}
	return int16(max(math.MinInt16, min(math.MaxInt16, math.Round(v*(1<<15)))))
}

// sample returns the first sample in b, from -1 to 1.
func (w wav) sample(b []byte) float64 {
	switch {
	case w.format == wavPCM:
		return float64(int16(binary.LittleEndian.Uint16(b))) / (1 << 15)
	case w.bits == 32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// parseWAV returns the format and the sound of a WAV file. A chunk may be shorter than its
// header says, because programs that write to a pipe do not know the length in advance.
func parseWAV(data []byte) (w wav, sound []byte, err error) {
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WAVE" {
		return w, nil, errors.New("it is not a WAV file, whatever its name; " + saveAs)
	}
	for rest := data[12:]; len(rest) >= 8; {
		kind := string(rest[:4])
		size := min(int64(binary.LittleEndian.Uint32(rest[4:])), int64(len(rest)-8))
		body := rest[8 : 8+size]
		switch {
		case kind == "fmt ":
			if w, err = parseFormat(body); err != nil {
				return w, nil, err
			}
		case kind == "data" && w.rate == 0:
			return w, nil, errors.New("its sound comes before its format; " + saveAs)
		case kind == "data":
			return w, body, nil
		}
		rest = rest[min(int64(len(rest)), 8+size+size%2):]
	}
	return w, nil, errSilent
}

// parseFormat parses a format chunk. It returns an error for formats that are not supported.
func parseFormat(b []byte) (wav, error) {
	if len(b) < 16 {
		return wav{}, errors.New("its format is cut short; copy it once more")
	}
	le := binary.LittleEndian
	w := wav{format: le.Uint16(b), channels: int(le.Uint16(b[2:])), rate: int(le.Uint32(b[4:])), bits: int(le.Uint16(b[14:]))}
	if w.format == wavExtensible && len(b) >= 26 {
		w.format = le.Uint16(b[24:])
	}
	isSupported := w.format == wavPCM && w.bits == 16 || w.format == wavFloat && (w.bits == 32 || w.bits == 64)
	switch {
	case !isSupported:
		return w, fmt.Errorf("its format %d with %d bits is not supported; %s", w.format, w.bits, saveAs)
	case w.channels < 1 || w.channels > 2:
		return w, fmt.Errorf("it has %d channels; save it with one or two", w.channels)
	case !slices.Contains(rates(), w.rate):
		return w, fmt.Errorf("its rate of %d Hz is not supported; %s", w.rate, saveAs)
	}
	return w, nil
}
