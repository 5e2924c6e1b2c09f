package voice_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"perch/must"
	"perch/voice"
)

// wavOf returns a WAV file at 16 kHz of samples in a format.
func wavOf(tag, channels, bits uint16, samples any) []byte {
	var b bytes.Buffer
	b.WriteString("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00")
	for _, v := range []any{tag, channels, uint32(16000), uint32(0), uint16(0), bits} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a bytes.Buffer does not fail
	}
	b.WriteString("data\xff\xff\xff\xff")
	_ = binary.Write(&b, binary.LittleEndian, samples)
	return b.Bytes()
}

func TestWAVFormats(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want []int16
		err  string
	}{
		"16 bits": {wavOf(1, 1, 16, []int16{1, -2, 3}), []int16{1, -2, 3}, ""},
		"stereo":  {wavOf(1, 2, 16, []int16{1, 9, -2, 9, -32768, -32768}), []int16{5, 3, -32768}, ""},
		"8 bits":  {wavOf(1, 1, 8, []byte{0, 128, 255}), []int16{-32768, 0, 32512}, ""},
		"24 bits": {wavOf(1, 1, 24, []byte{9, 1, 0, 9, 0xfe, 0xff}), []int16{1, -2}, ""},
		"32 bits": {wavOf(1, 1, 32, []int32{1 << 16, -2 << 16}), []int16{1, -2}, ""},
		"floats":  {wavOf(3, 1, 32, []float32{0, 1, -1, 2, float32(math.NaN())}), []int16{0, 32767, -32767, 32767, 0}, ""},
		"doubles": {wavOf(3, 1, 64, []float64{0.5, -0.5}), []int16{16384, -16384}, ""},
		"mu-law":  {wavOf(7, 1, 8, []byte{1}), nil, "mu-law of 8 bits"},
		"MP3":     {wavOf(0x55, 1, 0, []byte{1}), nil, "MP3"},
		"12 bits": {wavOf(1, 1, 12, []byte{1}), nil, "12 bits"},
		"no wave": {[]byte("\xff\xfb\x90\x64 and so on"), nil, "begins with"},
	} {
		r, err := voice.NewWAVReader(bytes.NewReader(c.file))
		if c.err != "" {
			if !errors.Is(err, voice.ErrWAV) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		must.Succeed(t, err)
		got := make([]int16, 8)
		n, err := r.Read(got)
		if err != nil && err != io.EOF || !slices.Equal(got[:n], c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got[:n], err, c.want)
		}
	}
}
