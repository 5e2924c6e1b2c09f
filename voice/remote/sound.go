package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"perch/voice"
)

// Converter returns what makes 24 kHz of the samples of this answer, which is
// the sound of that text. What comes too slowly then ends the answer.
func (a *Answer) Converter(text string, out func(pcm []int16) error) *voice.Converter {
	return voice.NewConverter(voice.LongestSpeech(text), a.arrival, out)
}

// Endless is the fault of a server that says more than the text is worth.
func (a *Answer) Endless(text string) error {
	return a.client.Fault(fmt.Sprintf("does not stop speaking: %s are enough for this text; check the voice and the model", voice.LongestSpeech(text)))
}

// Sound passes on the sound of a text as 24 kHz PCM, piece by piece as it
// arrives. Raw 16-bit little-endian mono is taken to be at rate, unless the
// answer's type names another; a WAV says itself what it is. What is neither
// is a *Fault, and so is an answer without a sound, one that is far too long for
// the text and one that comes far slower than it is played; what came until then
// was passed on. Errors of out are returned as they are. The slice is only valid
// during the call.
func (a *Answer) Sound(text string, rate int, out func(pcm []int16) error) error {
	kind, parameters := a.Kind()
	if err := a.refuse(kind); err != nil {
		return err
	}
	if named, err := strconv.Atoi(parameters["rate"]); err == nil {
		rate = named
	}
	r := bufio.NewReaderSize(a, 4096)
	read, err := a.open(r, kind, parameters["channels"], &rate)
	if err != nil {
		return err
	}
	c := a.Converter(text, out)
	if !c.Rate(rate) {
		return a.client.Fault(fmt.Sprintf("answers with sound of %d samples a second, which cannot be played; choose another voice, or 24000", rate))
	}
	if err := run(read, c); err != nil {
		if errors.Is(err, voice.ErrEndless) {
			return a.Endless(text)
		}
		return err
	}
	if !c.Sounded() {
		return a.client.Fault("answers without a sound; check the voice and the model")
	}
	return nil
}

// refuse says why an answer of that type is no sound that can be played. One
// that names no type, or only that it is bytes, is looked at.
func (a *Answer) refuse(kind string) error {
	switch {
	case kind == "application/json", strings.HasPrefix(kind, "text/"):
		body, err := a.beginning(mostComplaint)
		if err != nil {
			return err
		}
		if _, detail := a.client.complaint(kind, body); detail != "" {
			return a.client.Fault("answers with words in place of sound (" + detail + "); check model, voice and url")
		}
	case kind == "", kind == "application/octet-stream", kind == "binary/octet-stream", strings.HasPrefix(kind, "audio/"):
		return nil
	}
	return a.client.Fault("answers with " + a.client.scrub(kind) + " in place of sound; check the url, which mostly ends in /v1")
}

// open looks at the first bytes and returns who reads samples after them.
func (a *Answer) open(r *bufio.Reader, kind, channels string, rate *int) (func([]int16) (int, error), error) {
	head, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch format := format(head, kind, r); format {
	case "":
		if channels != "" && channels != "1" {
			return nil, a.client.Fault("answers with sound of " + a.client.scrub(channels) + " channels, and only mono can be played; choose another voice")
		}
		raw := rawReader{r: r}
		return raw.read, nil
	case "WAV":
		wav, err := voice.NewWAVReader(r)
		var fault *Fault
		switch {
		case errors.As(err, &fault):
			return nil, fault
		case a.ctx.Err() != nil:
			return nil, a.ctx.Err()
		case err != nil:
			return nil, a.client.Fault("answers with a WAV that is not 16-bit PCM; set its output to pcm")
		}
		*rate = wav.Rate
		// In pieces of at most 20 ms at 24 kHz, as more would wait for more.
		return func(pcm []int16) (int, error) { return wav.Read(pcm[:min(len(pcm), 480)]) }, nil
	default:
		return nil, a.client.Fault("answers with " + format + " though pcm was asked for; it needs a server or a model that can give pcm or wav")
	}
}

// format names what is not raw PCM by its first bytes.
func format(head []byte, kind string, r *bufio.Reader) string {
	switch begins := string(head); {
	case begins == "RIFF":
		return "WAV"
	case begins == "OggS":
		return "Ogg"
	case begins == "fLaC":
		return "FLAC"
	case strings.HasPrefix(begins, "ID3"):
		return "MP3"
	case begins == "\x1a\x45\xdf\xa3":
		return "WebM"
	case strings.HasPrefix(begins, "\x1f\x8b\x08"):
		return "gzip"
	case packedSound(kind):
		return kind
	case mpegFrame(head) == 0:
		return ""
	case kind == "audio/mpeg" || kind == "audio/mp3":
		return "MP3"
	}
	// A sound may begin like a frame of MP3 by chance, once. Not twice.
	n := mpegFrame(head)
	if frame, err := r.Peek(n + 4); err == nil && mpegFrame(frame[n:]) > 0 {
		return "MP3"
	}
	return ""
}

// packedSound reports whether a type is that of a sound whose samples are not
// there to be read. That of MP3 is not to be relied on.
func packedSound(kind string) bool {
	switch kind {
	case "audio/aac", "audio/flac", "audio/mp4", "audio/ogg", "audio/opus", "audio/webm":
		return true
	}
	return false
}

// mpegFrame is the length in bytes of the MPEG audio layer III frame whose
// header this is, or 0.
func mpegFrame(h []byte) int {
	if len(h) < 4 || h[0] != 0xff || h[1]&0xe6 != 0xe2 {
		return 0
	}
	version, bitrate, frequency, padding := h[1]>>3&3, h[2]>>4, h[2]>>2&3, int(h[2]>>1&1)
	if version == 1 || bitrate == 0 || bitrate == 15 || frequency == 3 {
		return 0
	}
	hz := [3]int{44100, 48000, 32000}[frequency]
	if version == 3 { // MPEG 1
		kbit := [15]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}[bitrate]
		return 144000*kbit/hz + padding
	}
	kbit := [15]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}[bitrate]
	hz /= 2
	if version == 0 { // MPEG 2.5
		hz /= 2
	}
	return 72000*kbit/hz + padding
}

// rawReader reads 16-bit little-endian samples from pieces of any length.
type rawReader struct {
	r    io.Reader
	buf  [4097]byte
	have int // bytes of a sample that is not whole yet: 0 or 1
}

func (w *rawReader) read(pcm []int16) (int, error) {
	n, err := w.r.Read(w.buf[w.have:min(len(w.buf), 2*len(pcm))])
	n += w.have
	for i := range n / 2 {
		pcm[i] = int16(binary.LittleEndian.Uint16(w.buf[2*i:]))
	}
	w.have = n % 2
	if w.have == 1 {
		w.buf[0] = w.buf[n-1]
	}
	return n / 2, err
}

// run gives samples to a converter until there are no more.
func run(read func([]int16) (int, error), c *voice.Converter) error {
	var pcm [2048]int16
	for {
		n, err := read(pcm[:])
		if n > 0 {
			if err := c.Convert(pcm[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
