package media

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"perch/limit"
	"perch/remote"
	"perch/voice"
)

// SoundOptions describe the sound that a request asks for, and the advice in errors.
type SoundOptions struct {
	Text          string // text of the speech, which limits the duration of the sound
	Rate          int    // rate of raw samples in Hz, if the response does not state it; 0: only WAV is accepted
	Format        string // requested format, such as "pcm"
	FormatAdvice  string // advice if the response has another format
	WAVAdvice     string // advice if the response is a WAV that cannot be read
	SilenceAdvice string // advice if the response holds no sound
}

// Speak posts body as JSON, which asks for the speech of text, and passes the sound of the
// response to out; see FetchSound. rate is the rate of raw samples, in Hz, if the response does
// not state it. Speak does nothing if text is blank, and fails if it has more than limit.Spoken
// characters.
func (c *Client) Speak(ctx context.Context, text string, rate int, path string, query url.Values, body any, out func(pcm []int16) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if n := utf8.RuneCountInString(text); n > limit.Spoken {
		return fmt.Errorf("%s takes %d characters at once, not %d", c.Service, limit.Spoken, n)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the request for speech: %w", err)
	}
	return c.FetchSound(ctx, remote.Request{Method: http.MethodPost, Path: path, Query: query, ContentType: "application/json", Body: encoded},
		SoundOptions{Text: text, Rate: rate, Format: "pcm", FormatAdvice: "it needs a server or a model that can give pcm or wav",
			WAVAdvice: "set its output to pcm", SilenceAdvice: "check the voice and the model"}, out)
}

// FetchSound sends a request and passes the sound of the response to out as 24 kHz PCM, while
// it arrives. The slice is only valid during the call of out. The response holds raw samples,
// 16-bit little-endian mono, or a WAV.
//
// The error is a *remote.Fault if the request fails, or if the response has another format, holds
// no sound, is far too long for the text, or arrives far slower than it is played; out may already
// have received some of the sound. FetchSound returns an error of out unchanged, and ctx's error
// if ctx ends.
func (c *Client) FetchSound(ctx context.Context, r remote.Request, o SoundOptions, out func(pcm []int16) error) error {
	arrival := voice.NewArrival(c.idle)
	r.Pace = arrival
	a, err := c.Call(ctx, r)
	if err != nil {
		return err
	}
	defer a.Close()
	kind, parameters := a.Kind()
	if o.Rate > 0 { // if it is 0, the sound must be a WAV, which its first bytes show
		if err := c.checkType(a, kind); err != nil {
			return err
		}
	}
	if rate, err := strconv.Atoi(parameters["rate"]); err == nil && o.Rate > 0 {
		o.Rate = rate
	}
	read, err := c.openSamples(ctx, bufio.NewReaderSize(a, 4096), kind, parameters["channels"], &o)
	if err != nil {
		return err
	}
	to := voice.NewConverter(voice.MaxSpeech(o.Text), arrival, out)
	if !to.SetRate(o.Rate) {
		return c.Fault(fmt.Sprintf("answers with sound of %d samples a second, which cannot be played; choose a voice of 8000 to 48000, such as 24000", o.Rate))
	}
	switch err := to.ConvertAll(ctx, read); {
	case errors.Is(err, voice.ErrEndless):
		return c.Fault(fmt.Sprintf("does not stop speaking: %s are enough for this text; check the voice and the model", voice.MaxSpeech(o.Text)))
	case errors.Is(err, voice.ErrWAV):
		return c.wavFault(err, o)
	case err != nil:
		return err
	case !to.Sounded():
		return c.Fault("answers without a sound; " + o.SilenceAdvice)
	}
	return nil
}

// wavFault returns the error for a WAV that cannot be read. If a fault of the connection is the
// cause, it returns that fault.
func (c *Client) wavFault(err error, o SoundOptions) error {
	if fault, ok := errors.AsType[*remote.Fault](err); ok {
		return fault
	}
	cause := strings.TrimPrefix(err.Error(), voice.ErrWAV.Error()+": ")
	return c.Fault("answers with a WAV that cannot be read (" + c.Quote(cause) + "); " + o.WAVAdvice)
}

// checkType returns an error if a response with this media type is not sound. It accepts a
// response without a type, or with the type of arbitrary bytes; openSamples examines its content.
func (c *Client) checkType(a *remote.Answer, kind string) error {
	switch {
	case kind == "application/json", strings.HasPrefix(kind, "text/"):
		_, words, err := a.ErrorText()
		if err != nil {
			return err
		}
		if words = c.Quote(words); words != "" {
			return c.Fault("answers with words in place of sound (" + words + "); check " + c.Server.Check)
		}
	case kind == "", kind == "application/octet-stream", kind == "binary/octet-stream", strings.HasPrefix(kind, "audio/"):
		return nil
	}
	return c.Fault("answers with " + c.Quote(kind) + " in place of sound; check the url" + c.hint)
}

// openSamples examines the first bytes of a response and returns a function that reads its
// samples. It sets o.Rate to the rate of a WAV.
func (c *Client) openSamples(ctx context.Context, r *bufio.Reader, kind, channels string, o *SoundOptions) (func([]int16) (int, error), error) {
	head, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	name := soundFormat(head, kind, r)
	switch {
	case name == "" && len(head) == 0 && o.Rate == 0:
		name = "nothing"
	case name == "" && o.Rate == 0 && mpegFrameLength(head) > 0:
		name = "MP3"
	case name == "" && o.Rate == 0:
		name = cmp.Or(kind, "something else")
	case name == "":
		if channels != "" && channels != "1" {
			return nil, c.Fault("answers with sound of " + c.Quote(channels) + " channels, and only mono can be played; choose another voice")
		}
		raw := rawReader{r: r}
		return raw.read, nil
	case name == "WAV":
		wav, err := voice.NewWAVReader(r)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, c.wavFault(err, *o)
		}
		o.Rate = wav.Rate
		// Read at most 20 ms at 24 kHz at once: a longer read would wait for more sound.
		return func(pcm []int16) (int, error) { return wav.Read(pcm[:min(len(pcm), 480)]) }, nil
	}
	return nil, c.Fault("answers with " + c.Quote(name) + " although " + o.Format + " was requested; " + o.FormatAdvice)
}

// soundFormat returns the name of the format of a response, or "" if it may be raw PCM. It
// examines head, the first bytes of r, and kind, the media type.
func soundFormat(head []byte, kind string, r *bufio.Reader) string {
	for _, known := range [][2]string{{"RIFF", "WAV"}, {"OggS", "Ogg"}, {"fLaC", "FLAC"}, {"ID3", "MP3"}, {"\x1a\x45\xdf\xa3", "WebM"},
		{"\x1f\x8b\x08", "gzip"}} {
		if strings.HasPrefix(string(head), known[0]) {
			return known[1]
		}
	}
	switch {
	// The media types of MP3 are missing here, because they are not reliable: the content is checked below.
	case slices.Contains([]string{"audio/aac", "audio/flac", "audio/mp4", "audio/ogg", "audio/opus", "audio/webm"}, kind):
		return kind
	case mpegFrameLength(head) == 0:
		return ""
	case kind == "audio/mpeg" || kind == "audio/mp3":
		return "MP3"
	}
	// Raw sound may look like the header of an MP3 frame by chance, but hardly twice.
	n := mpegFrameLength(head)
	if frame, err := r.Peek(n + 4); err == nil && mpegFrameLength(frame[n:]) > 0 {
		return "MP3"
	}
	return ""
}

// mpegFrameLength returns the length in bytes of the MP3 frame (MPEG audio layer III) with
// this header, or 0 if h is not such a header.
func mpegFrameLength(h []byte) int {
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

// rawReader reads 16-bit little-endian samples from a stream that may end a read within a
// sample.
type rawReader struct {
	r       io.Reader
	buf     [4097]byte
	pending int // bytes of an incomplete sample at the start of buf: 0 or 1
}

// read fills pcm with the samples of one read and returns their number, which may be 0.
func (w *rawReader) read(pcm []int16) (int, error) {
	n, err := w.r.Read(w.buf[w.pending:min(len(w.buf), 2*len(pcm))])
	n += w.pending
	for i := range n / 2 {
		pcm[i] = int16(binary.LittleEndian.Uint16(w.buf[2*i:]))
	}
	w.pending = n % 2
	if w.pending == 1 {
		w.buf[0] = w.buf[n-1]
	}
	return n / 2, err
}
