package assist

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"perch/voice"
	"perch/voice/remote"
)

const (
	// mostSound bounds one answer. A sentence is a few seconds.
	mostSound = 10 * time.Minute
	// mostPiece is 20 ms at 24 kHz: more would wait for more.
	mostPiece = 480
)

// heedless is an error of whoever takes the sound. It is no fault of the
// engine's, and is given back as it is.
type heedless struct{ error }

// sound passes on the WAV of an answer as 24 kHz PCM, piece by piece as it
// arrives.
func (s *Synthesizer) sound(ctx context.Context, answer *remote.Answer, out func(pcm []int16) error) error {
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
	passed, err := s.pour(ctx, wav, out)
	switch {
	case err != nil:
		return s.broken(err, "gives a WAV that cannot be read; set convert")
	case passed == 0:
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

func (s *Synthesizer) pour(ctx context.Context, wav *voice.WAVReader, out func([]int16) error) (passed int, err error) {
	const most = int(mostSound/time.Second) * voice.SpeakerRate
	resampler := voice.NewResampler(wav.Rate, voice.SpeakerRate)
	var pcm [mostPiece]int16
	for {
		if err := ctx.Err(); err != nil {
			return passed, err // much may be here already
		}
		n, err := wav.Read(pcm[:])
		if made := resampler.Resample(pcm[:n]); len(made) > 0 {
			if passed += len(made); passed > most {
				return passed, s.client.Fault("does not stop speaking; see the log of its text to speech")
			}
			if err := out(made); err != nil {
				return passed, heedless{err}
			}
		}
		if errors.Is(err, io.EOF) {
			return passed, nil
		}
		if err != nil {
			return passed, err
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
