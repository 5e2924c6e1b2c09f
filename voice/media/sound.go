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

// Wanted describes the requested sound, and the advice for errors.
type Wanted struct {
	Text    string // the spoken text, which bounds the sound
	Rate    int    // of raw samples whose answer names none, in Hz; 0: only WAV is accepted
	Format  string // requested, such as "pcm"
	Cure    string // advice for an answer in another format
	Convert string // advice for a WAV that cannot be read
	Silence string // advice for an answer without sound
}

// Speak posts order as JSON, a request for the speech of a text, and passes its sound to out:
// raw samples of that rate if the answer names none. A blank text is silent.
func (c *Client) Speak(ctx context.Context, text string, rate int, path string, query url.Values, order any, out func(pcm []int16) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if n := utf8.RuneCountInString(text); n > limit.Spoken {
		return fmt.Errorf("%s takes %d characters at once, not %d", c.Service, limit.Spoken, n)
	}
	body, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("ask for speech: %w", err)
	}
	return c.Sound(ctx, remote.Request{Method: http.MethodPost, Path: path, Query: query, ContentType: "application/json", Body: body},
		Wanted{Text: text, Rate: rate, Format: "pcm", Cure: "it needs a server or a model that can give pcm or wav",
			Convert: "set its output to pcm", Silence: "check the voice and the model"}, out)
}

// Sound makes a request and passes the sound of its answer to out as 24 kHz PCM, as it
// arrives. Raw samples are 16-bit little-endian mono; a WAV has its own format. It returns
// a *remote.Fault for an answer in another format, without sound, far too long for the
// text or far slower than it is played; sound that came before was passed on. Errors of out
// are returned unchanged. The slice is only valid during the call.
func (c *Client) Sound(ctx context.Context, r remote.Request, w Wanted, out func(pcm []int16) error) error {
	arrival := voice.NewArrival(c.idle)
	r.Pace = arrival
	a, err := c.Call(ctx, r)
	if err != nil {
		return err
	}
	defer a.Close()
	kind, parameters := a.Kind()
	if w.Rate > 0 { // else the first bytes show the format
		if err := c.refuse(a, kind); err != nil {
			return err
		}
	}
	if named, err := strconv.Atoi(parameters["rate"]); err == nil && w.Rate > 0 {
		w.Rate = named
	}
	read, err := c.open(ctx, bufio.NewReaderSize(a, 4096), kind, parameters["channels"], &w)
	if err != nil {
		return err
	}
	to := voice.NewConverter(voice.LongestSpeech(w.Text), arrival, out)
	if !to.Rate(w.Rate) {
		return c.Fault(fmt.Sprintf("answers with sound of %d samples a second, which cannot be played; choose another voice, or 24000", w.Rate))
	}
	switch err := convert(ctx, read, to); {
	case errors.Is(err, voice.ErrEndless):
		return c.Fault(fmt.Sprintf("does not stop speaking: %s are enough for this text; check the voice and the model", voice.LongestSpeech(w.Text)))
	case errors.Is(err, voice.ErrWAV):
		return c.broken(err, w)
	case err != nil:
		return err
	case !to.Sounded():
		return c.Fault("answers without a sound; " + w.Silence)
	}
	return nil
}

// broken returns the error for a broken WAV, or the error that interrupted it.
func (c *Client) broken(err error, w Wanted) error {
	if fault, ok := errors.AsType[*remote.Fault](err); ok {
		return fault
	}
	cause := strings.TrimPrefix(err.Error(), voice.ErrWAV.Error()+": ")
	return c.Fault("answers with a WAV that cannot be read (" + c.Quote(cause) + "); " + w.Convert)
}

// refuse returns why an answer of that type cannot be played, or nil. An answer without
// a type, or with the type of bytes, is examined by open.
func (c *Client) refuse(a *remote.Answer, kind string) error {
	switch {
	case kind == "application/json", strings.HasPrefix(kind, "text/"):
		_, words, err := a.Words()
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

// open examines the first bytes and returns a reader of the samples after them.
func (c *Client) open(ctx context.Context, r *bufio.Reader, kind, channels string, w *Wanted) (func([]int16) (int, error), error) {
	head, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	name := format(head, kind, r)
	switch {
	case name == "" && len(head) == 0 && w.Rate == 0:
		name = "nothing"
	case name == "" && w.Rate == 0 && mpegFrame(head) > 0:
		name = "MP3"
	case name == "" && w.Rate == 0:
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
			return nil, c.broken(err, *w)
		}
		w.Rate = wav.Rate
		// At most 20 ms at 24 kHz, since a longer read would wait for more.
		return func(pcm []int16) (int, error) { return wav.Read(pcm[:min(len(pcm), 480)]) }, nil
	}
	return nil, c.Fault("answers with " + c.Quote(name) + " though " + w.Format + " was asked for; " + w.Cure)
}

// format recognizes formats other than raw PCM by their first bytes.
func format(head []byte, kind string, r *bufio.Reader) string {
	for _, known := range [][2]string{{"RIFF", "WAV"}, {"OggS", "Ogg"}, {"fLaC", "FLAC"}, {"ID3", "MP3"}, {"\x1a\x45\xdf\xa3", "WebM"},
		{"\x1f\x8b\x08", "gzip"}} {
		if strings.HasPrefix(string(head), known[0]) {
			return known[1]
		}
	}
	switch {
	// The type of MP3 is not reliable, so it is checked below.
	case slices.Contains([]string{"audio/aac", "audio/flac", "audio/mp4", "audio/ogg", "audio/opus", "audio/webm"}, kind):
		return kind
	case mpegFrame(head) == 0:
		return ""
	case kind == "audio/mpeg" || kind == "audio/mp3":
		return "MP3"
	}
	// Raw sound may begin like a frame of MP3 by chance, but hardly twice.
	n := mpegFrame(head)
	if frame, err := r.Peek(n + 4); err == nil && mpegFrame(frame[n:]) > 0 {
		return "MP3"
	}
	return ""
}

// mpegFrame returns the length in bytes of the MPEG audio layer III frame with this
// header, or 0.
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
	have int // bytes of an incomplete sample: 0 or 1
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

// convert passes samples to a converter until there are no more.
func convert(ctx context.Context, read func([]int16) (int, error), to *voice.Converter) error {
	var pcm [2048]int16
	for {
		if err := ctx.Err(); err != nil {
			return err // much may be buffered
		}
		n, err := read(pcm[:])
		if n > 0 {
			if err := to.Convert(pcm[:n]); err != nil {
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
