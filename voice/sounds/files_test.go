package sounds

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
)

// tone returns a sine wave of 440 Hz with half of the maximum amplitude.
func tone(rate int, seconds float64) []float64 {
	out := make([]float64, int(seconds*float64(rate)))
	for i := range out {
		out[i] = 0.5 * math.Sin(2*math.Pi*440*float64(i)/float64(rate))
	}
	return out
}

// Formats of a WAV file.
const (
	wavPCM        = 1
	wavFloat      = 3
	wavExtensible = 0xfffe
)

// wav is the format of a WAV file.
type wav struct {
	format         uint16
	channels, rate int
	bits           int
}

// wavFile returns a WAV file of the format w. In a stereo file, the right channel is silent.
func wavFile(w wav, extensible bool, mono []float64) []byte {
	le := binary.LittleEndian
	var sound []byte
	put := func(v float64) {
		switch {
		case w.bits == 16:
			sound = le.AppendUint16(sound, uint16(int16(v*32767)))
		case w.bits == 32:
			sound = le.AppendUint32(sound, math.Float32bits(float32(v)))
		default:
			sound = le.AppendUint64(sound, math.Float64bits(v))
		}
	}
	for _, v := range mono {
		put(v)
		for range w.channels - 1 {
			put(0)
		}
	}
	format := w.format
	if extensible {
		format = wavExtensible
	}
	head := le.AppendUint16(nil, format)
	head = le.AppendUint16(head, uint16(w.channels))
	head = le.AppendUint32(head, uint32(w.rate))
	head = le.AppendUint32(head, uint32(w.rate*w.channels*w.bits/8))
	head = le.AppendUint16(head, uint16(w.channels*w.bits/8))
	head = le.AppendUint16(head, uint16(w.bits))
	if extensible {
		head = append(head, 22, 0, byte(w.bits), 0, 0, 0, 0, 0)
		head = le.AppendUint16(head, w.format)
		head = append(head, "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
	}
	file := []byte("RIFF\xff\xff\xff\xffWAVELIST\x03\x00\x00\x00abc\x00fmt ")
	file = le.AppendUint32(file, uint32(len(head)))
	file = append(append(file, head...), "data\xff\xff\xff\xff"...) // the size is unknown, as in the output of ffmpeg to a pipe
	return append(file, sound...)
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}

// wantTone checks that pcm is a tone of 440 Hz with this level and duration.
func wantTone(t *testing.T, what string, pcm []int16, level float64, want time.Duration) {
	t.Helper()
	if off := length(pcm) - want; off < -time.Millisecond || off > 11*time.Millisecond {
		t.Errorf("%s: lasts %s, want %s", what, length(pcm), want)
		return
	}
	got, elsewhere := loudness(second(pcm, 0.05, 0.45), 440), loudness(second(pcm, 0.05, 0.45), 660)
	if math.Abs(got-level) > 0.05*level || elsewhere > 0.02 {
		t.Errorf("%s: %.3f at 440 Hz, want %.3f; %.3f at 660 Hz", what, got, level, elsewhere)
	}
}

func TestWAVFiles(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		wav
		extensible bool
	}{
		"plain.wav":    {wav{wavPCM, 1, 48000, 16}, false},
		"ours.wav":     {wav{wavPCM, 1, 24000, 16}, false},
		"old.wav":      {wav{wavPCM, 1, 11025, 16}, false},
		"stereo.wav":   {wav{wavPCM, 2, 44100, 16}, false},
		"float.wav":    {wav{wavFloat, 1, 96000, 32}, false},
		"double.wav":   {wav{wavFloat, 2, 8000, 64}, false},
		"wide.wav":     {wav{wavPCM, 2, 48000, 16}, true},
		"widefloa.WAV": {wav{wavFloat, 1, 192000, 32}, true},
	} {
		write(t, dir, name, wavFile(c.wav, c.extensible, tone(c.rate, 0.5)))
		pcm, err := Open(dir).Load(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantTone(t, name, pcm, 0.5/float64(c.channels), 500*time.Millisecond)
	}
	tagged := wavFile(wav{wavPCM, 1, 24000, 16}, false, tone(24000, 0.5)) // another chunk follows the sound
	i := bytes.Index(tagged, []byte("data"))
	binary.LittleEndian.PutUint32(tagged[i+4:], uint32(len(tagged)-i-8))
	write(t, dir, "tagged.wav", append(append(tagged, "LIST\xff\xff\x00\x00"...), bytes.Repeat([]byte{0x7f}, 48000)...))
	pcm, err := Open(dir).Load(t.Context(), "tagged")
	must.Succeed(t, err)
	wantTone(t, "tagged.wav", pcm, 0.5, 500*time.Millisecond)
}

func TestNames(t *testing.T) {
	ctx := t.Context()
	if got := Open("").Names(); !slices.Equal(got, []string{"alarm", "chime", "purr"}) {
		t.Errorf("without a directory %v", got)
	}
	l := Open(filepath.Join(t.TempDir(), "none"))
	if got := l.Names(); !slices.Equal(got, []string{"alarm", "chime", "purr"}) {
		t.Errorf("with none there %v", got)
	}
	if _, err := l.Load(ctx, "song"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	dir := t.TempDir()
	short := func(seconds float64) []byte { return wavFile(wav{wavPCM, 1, 8000, 16}, false, tone(8000, seconds)) }
	for name, data := range map[string][]byte{"purr.wav": short(0.5), "song.ogg": nil, "song.WAV": short(0.25), "notes.txt": nil,
		".hidden.wav": short(1), "Mr. X.wav": short(1)} {
		write(t, dir, name, data)
	}
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "folder.wav"), 0o700))
	l = Open(dir)
	if got, want := l.Names(), []string{"Mr. X.wav", "alarm", "chime", "purr.wav", "song.WAV", "song.ogg"}; !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	for name, want := range map[string]time.Duration{"purr": 500 * time.Millisecond, "purr.wav": 500 * time.Millisecond,
		"song": 250 * time.Millisecond, "chime": 1600 * time.Millisecond, "Mr. X": time.Second} {
		pcm, err := l.Load(ctx, name)
		if off := length(pcm) - want; err != nil || off < 0 || off > 11*time.Millisecond {
			t.Errorf("%s: %s, %v", name, length(pcm), err)
		}
	}
	for _, name := range []string{"", "bark", "chime.wav", "notes.txt", "notes", ".hidden", ".hidden.wav", "..", "../x.wav", "a/b", `a\b`,
		"purr.wav\x00", "PURR", strings.Repeat("x", 300)} {
		if pcm, err := l.Load(ctx, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %d samples, %v", name, len(pcm), err)
		}
	}
}

// TestRejectedFiles checks that the error tells the cause and the remedy, and that no file outside
// the directory is read.
func TestRejectedFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	good := wavFile(wav{wavPCM, 1, 8000, 16}, false, tone(8000, 0.5))
	write(t, outside, "secret.wav", good)
	write(t, dir, "inside.wav", good)
	for name, data := range map[string][]byte{
		"none.wav":  nil,
		"other.wav": []byte("<html>not found, and long enough</html>"),
		"mute.wav":  good[:56],
		"cut.wav":   good[:46],
		"adpcm.wav": wavFile(wav{2, 1, 8000, 4}, false, nil),
		"six.wav":   wavFile(wav{wavPCM, 6, 48000, 16}, false, nil),
		"odd.wav":   wavFile(wav{wavPCM, 1, 44099, 16}, false, tone(8000, 0.5)),
		"long.wav":  wavFile(wav{wavPCM, 1, 8000, 16}, false, make([]float64, 61*8000)),
		"big.wav":   make([]byte, maxFileSize+1),
		"none.opus": nil,
		"wav.opus":  good,
	} {
		write(t, dir, name, data)
	}
	for to, name := range map[string]string{filepath.Join(outside, "secret.wav"): "link.wav",
		"../" + filepath.Base(outside) + "/secret.wav": "up.wav", "none": "broken.wav"} {
		must.Succeed(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	must.Succeed(t, os.Symlink("inside.wav", filepath.Join(dir, "near.wav")))
	must.Succeed(t, syscall.Mkfifo(filepath.Join(dir, "pipe.wav"), 0o600))
	l := Open(dir)
	for name, want := range map[string]string{
		"none.wav": "not a WAV", "other.wav": "save it as WAV", "mute.wav": "no sound", "cut.wav": "save it as WAV", "adpcm.wav": "ADPCM of 4 bits",
		"six.wav": "6 channels", "odd.wav": "44099 Hz",
		"long.wav": "cut it", "big.wav": "make it an Opus file", "none.opus": "copy it once more", "wav.opus": "copy it once more",
		"link.wav": "escapes", "up.wav": "escapes", "pipe.wav": "not a regular file",
	} {
		pcm, err := l.Load(t.Context(), name)
		var shown interface {
			Code() string
			Status() int
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) || !errors.As(err, &shown) ||
			shown.Code() != "bad_sound" || shown.Status() != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d samples, %v", name, len(pcm), err)
		}
	}
	if _, err := l.Load(t.Context(), "broken.wav"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link to nowhere: %v", err)
	}
	if pcm, err := l.Load(t.Context(), "near"); err != nil || len(pcm) == 0 {
		t.Errorf("a link to a file beside it: %v", err)
	}
	for _, name := range l.Names() {
		if name == "link.wav" || name == "up.wav" || name == "pipe.wav" || name == "broken.wav" {
			t.Errorf("%s is listed", name)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Load(cancelled, "inside.wav"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSoundsAmongManyFiles checks that files that are not sounds do not displace sounds.
func TestSoundsAmongManyFiles(t *testing.T) {
	dir := t.TempDir()
	for n := range 2 * maxFiles {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", n)), nil, 0o600))
	}
	for n := range 20 {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.wav", n)), nil, 0o600))
	}
	names := Open(dir).Names()
	if got := len(slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".wav") })); got != 20 {
		t.Errorf("%d sounds of 20", got)
	}
}

func FuzzWAV(f *testing.F) {
	f.Add(wavFile(wav{wavPCM, 1, 8000, 16}, false, tone(8000, 0.01)))
	f.Add(wavFile(wav{wavFloat, 2, 44100, 32}, true, tone(44100, 0.01)))
	f.Add([]byte("RIFF\x00\x00\x00\x00WAVEdata\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pcm, err := decodeWAV(t.Context(), data)
		if length(pcm) > maxDuration+20*time.Millisecond || err != nil && pcm != nil {
			t.Errorf("%s, %v", length(pcm), err)
		}
	})
}

// oggFile writes the pages of an Ogg Opus file (RFC 3533, RFC 7845).
type oggFile struct {
	data   []byte
	serial uint32
	page   uint32
}

// put adds a page of whole packets. granule is the position of its end, in samples at 48 kHz.
func (o *oggFile) put(kind byte, granule int64, packets ...[]byte) {
	le := binary.LittleEndian
	var lacing, body []byte
	for _, p := range packets {
		for range len(p) / 255 {
			lacing = append(lacing, 255)
		}
		lacing = append(lacing, byte(len(p)%255))
		body = append(body, p...)
	}
	page := append([]byte("OggS\x00"), kind)
	page = le.AppendUint64(page, uint64(granule))
	page = le.AppendUint32(page, o.serial)
	page = le.AppendUint32(page, o.page)
	page = append(page, 0, 0, 0, 0, byte(len(lacing)))
	page = append(append(page, lacing...), body...)
	le.PutUint32(page[22:], checksum(page))
	o.page++
	o.data = append(o.data, page...)
}

// checksum returns the CRC of a page (RFC 3533).
func checksum(b []byte) (crc uint32) {
	for _, v := range b {
		crc ^= uint32(v) << 24
		for range 8 {
			if crc>>31 == 1 {
				crc = crc<<1 ^ 0x04c11db7
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

func opusHead(channels byte, skip uint16, gain int16, family byte) []byte {
	le := binary.LittleEndian
	h := append([]byte("OpusHead\x01"), channels)
	h = le.AppendUint16(h, skip)
	h = le.AppendUint32(h, 44100)
	h = le.AppendUint16(h, uint16(gain))
	return append(h, family)
}

// opusTone returns a tone as an Ogg Opus file with two packets per page. The positions start at
// begins, and the last position cuts off the padding.
func opusTone(t testing.TB, seconds float64, gain int16, begins int64) []byte {
	t.Helper()
	const skip = 312 // delay of libopus in samples at 48 kHz
	encoder, err := voice.NewEncoder(voice.SpeakerRate)
	must.Succeed(t, err)
	var packets [][]byte
	keep := func(p []byte) error { packets = append(packets, slices.Clone(p)); return nil }
	pcm := make([]int16, 0, int(seconds*voice.SpeakerRate))
	for _, v := range tone(voice.SpeakerRate, seconds+skip/48000.) {
		pcm = append(pcm, int16(v*32767))
	}
	must.Succeed(t, errors.Join(encoder.Encode(pcm, keep), encoder.Flush(keep)))
	o := &oggFile{serial: 7}
	o.put(2, 0, opusHead(1, skip, gain, 0))
	o.put(0, 0, append([]byte("OpusTags"), make([]byte, 700)...))
	const frame = 2880
	for at := 0; at < len(packets); at += 2 {
		page := packets[at:min(at+2, len(packets))]
		end, kind := begins+int64(at+len(page))*frame, byte(0)
		if at+2 >= len(packets) {
			end, kind = begins+skip+int64(seconds*granuleRate), 4
		}
		o.put(kind, end, page...)
	}
	return o.data
}

func TestOggOpusFiles(t *testing.T) {
	dir := t.TempDir()
	whole := opusTone(t, 0.7, 0, 0)
	write(t, dir, "tone.opus", whole)
	write(t, dir, "cut out.ogg", opusTone(t, 0.7, 0, 96000))
	write(t, dir, "loud.ogg", opusTone(t, 0.7, -6*256, 0))
	write(t, dir, "two.ogg", append(slices.Clone(whole), opusTone(t, 0.7, 0, 0)...))
	write(t, dir, "half.ogg", whole[:len(whole)*2/3])
	write(t, dir, "long.ogg", opusTone(t, 61, 0, 0))
	write(t, dir, "minute.ogg", opusTone(t, 60, 0, 0))
	bad := slices.Clone(whole)
	bad[len(bad)-30] ^= 1
	write(t, dir, "bad.ogg", bad)
	surround := &oggFile{}
	surround.put(2, 0, append(opusHead(6, 312, 0, 1), 4, 2, 0, 4, 1, 2, 3, 5))
	write(t, dir, "surround.ogg", surround.data)
	l := Open(dir)
	for name, level := range map[string]float64{"tone.opus": 0.5, "cut out": 0.5, "loud": 0.25, "two": 0.5} {
		pcm, err := l.Load(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantTone(t, name, pcm, level, 700*time.Millisecond)
		if n := 7 * voice.SpeakerRate / 10; len(pcm) != n {
			t.Errorf("%s: %d samples, not %d", name, len(pcm), n)
		}
	}
	if pcm, err := l.Load(t.Context(), "minute"); err != nil || length(pcm) != maxDuration {
		t.Errorf("a minute: %s, %v", length(pcm), err)
	}
	for name, want := range map[string]string{"half": "damaged", "bad": "checksum", "long": "cut it", "surround": "two channels"} {
		if pcm, err := l.Load(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d samples, %v", name, len(pcm), err)
		}
	}
}

func FuzzOgg(f *testing.F) {
	f.Add(opusTone(f, 0.1, 256, 0))
	f.Add(opusTone(f, 0.3, 0, 48000))
	f.Add([]byte("OggS"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pcm, err := decodeOgg(t.Context(), mended(data))
		if length(pcm) > maxDuration+120*time.Millisecond || err != nil && pcm != nil {
			t.Errorf("%s, %v", length(pcm), err)
		}
	})
}

// mended returns an Ogg file with corrected checksums, so that the decoder does not reject it because of
// them.
func mended(data []byte) []byte {
	data = slices.Clone(data)
	for rest := data; len(rest) >= 27; {
		count := int(rest[26])
		size := 27 + count
		if len(rest) < size {
			break
		}
		for _, n := range rest[27:size] {
			size += int(n)
		}
		size = min(size, len(rest))
		clear(rest[22:26])
		binary.LittleEndian.PutUint32(rest[22:], checksum(rest[:size]))
		rest = rest[size:]
	}
	return data
}
