package assist

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"perch/voice"
	"perch/voice/remote"
)

// mostPiece is 20 ms at 24 kHz: more would wait for more.
const mostPiece = 480

// heedless is an error of whoever takes the sound. It is no fault of the
// engine's, and is given back as it is.
type heedless struct{ error }

// sound passes on the WAV of an answer as 24 kHz PCM, piece by piece as it
// arrives.
func (s *Synthesizer) sound(ctx context.Context, answer *remote.Answer, text string, out func(pcm []int16) error) error {
	r := bufio.NewReaderSize(answer, 4096)
	head, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(head) != "RIFF" {
		kind, _ := answer.Kind()
		return s.client.Fault("gives " + what(head, s.client.Quote(kind)) +
			" where a WAV was asked for; update it, or set an engine that gives WAV, such as tts.piper")
	}
	wav, err := voice.NewWAVReader(r)
	if err != nil {
		return s.broken(err, "gives a WAV that is not 16-bit PCM; set convert")
	}
	c := answer.Converter(text, func(pcm []int16) error {
		if err := out(pcm); err != nil {
			return heedless{err}
		}
		return nil
	})
	c.Rate(wav.Rate) // the reader has looked at it
	switch err := pour(ctx, wav, c); {
	case errors.Is(err, voice.ErrEndless):
		return answer.Endless(text)
	case err != nil:
		return s.broken(err, "gives a WAV that cannot be read; set convert")
	case !c.Sounded():
		return s.client.Fault("makes a sound of no length; see the log of its text to speech")
	}
	return nil
}

// broken is err where it has a sentence or is somebody's own, else the
// sentence given.
func (s *Synthesizer) broken(err error, sentence string) error {
	var fault *remote.Fault
	var own heedless
	switch {
	case errors.As(err, &own), !errors.Is(err, voice.ErrWAV):
		return err
	case errors.As(err, &fault):
		return fault
	}
	return s.client.Fault(sentence)
}

func pour(ctx context.Context, wav *voice.WAVReader, c *voice.Converter) error {
	var pcm [mostPiece]int16
	for {
		if err := ctx.Err(); err != nil {
			return err // much may be here already
		}
		n, err := wav.Read(pcm[:])
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

// what names a sound by its first bytes.
func what(head []byte, kind string) string {
	switch begins := string(head); {
	case strings.HasPrefix(begins, "ID3"), len(begins) > 1 && begins[0] == 0xff && begins[1]&0xe0 == 0xe0, kind == "audio/mpeg":
		return "MP3"
	case begins == "OggS":
		return "Ogg"
	case begins == "fLaC":
		return "FLAC"
	case begins == "":
		return "nothing"
	case kind == "":
		return "something else"
	}
	return kind
}
