package wyoming

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"perch/voice"
	wire "perch/voice/wyoming"
)

// Time limits of one utterance.
const (
	// listenFor bounds how long a client occupies a recognizer: the longest utterance with a
	// late start fits.
	listenFor       = 2 * voice.LongestUtterance
	recognizeWithin = listenFor + time.Minute
)

// listening is an utterance that is coming.
type listening struct {
	utterance *voice.Utterance
	format    wire.Format
	samples   wire.Samples
	resampler *voice.Resampler

	finish func() // ends the utterance, so that an answer is owed; may be called again
	limit  *time.Timer
}

// handleSound collects an utterance while it is being recognized.
func (c *connection) handleSound(e wire.Event) error {
	switch e.Type {
	case wire.TypeTranscribe:
		c.asked = wire.Transcribe{}
		return decode(e, &c.asked)
	case wire.TypeAudioStop:
		if c.listening != nil {
			c.listening.limit.Stop()
			c.listening.finish()
			c.listening = nil
		}
		return nil
	}
	var f wire.Format
	if err := decode(e, &f); err != nil {
		return err
	}
	switch {
	case c.listening == nil:
		if err := c.startListening(f); err != nil {
			return err
		}
	case e.Type == wire.TypeAudioStart, f != wire.Format{} && f != c.listening.format:
		return &failure{code: codeFormat, text: "The sound began anew, or in another format, before its audio-stop."}
	}
	c.listening.add(e.Payload)
	return nil
}

// startListening starts the recognition of the sound that follows.
func (c *connection) startListening(f wire.Format) error {
	asked := c.asked
	c.asked = wire.Transcribe{}
	language, err := offeredLanguage(c.o.Heard, asked.Language)
	if err != nil {
		return err
	}
	switch {
	case f.Width != 2:
		return &failure{code: codeFormat, text: "Samples of sound must have 16 bits: width 2."}
	case f.Channels < 1 || f.Channels > 2:
		return &failure{code: codeFormat, text: "Sound must be mono or stereo."}
	case f.Rate < 8000 || f.Rate > 96000 || f.Rate%25 != 0:
		// A rate with a small common divisor with ours needs a huge filter.
		return &failure{code: codeFormat, text: "Sound must have 8000 to 96000 samples a second, as microphones do; best is 16000."}
	}
	h := &listening{utterance: voice.NewUtterance(), format: f, samples: wire.Samples{Channels: f.Channels},
		resampler: voice.NewResampler(f.Rate, voice.MicRate)}
	h.finish = sync.OnceFunc(func() {
		c.countOwed(1)
		h.utterance.Finish()
	})
	h.limit = time.AfterFunc(listenFor, h.finish)
	c.listening = h
	return c.queue(func(ctx context.Context) error {
		defer c.countOwed(-1) // the answer is given,
		defer h.finish()      // and the utterance is over, even after an error
		return c.recognize(ctx, h.utterance, voice.Options{Language: language})
	})
}

// add adds sound. If the utterance is full, it is finished, and the rest is dropped.
func (h *listening) add(payload []byte) {
	_ = h.samples.Add(payload, func(pcm []int16) error { // never fails
		if !h.utterance.Write(h.resampler.Resample(pcm)) {
			h.finish()
		}
		return nil
	})
}

// recognize answers an utterance with its text, which is empty if it was refused.
func (c *connection) recognize(ctx context.Context, u *voice.Utterance, o voice.Options) error {
	var t voice.Transcript
	err := c.s.recognizers.run(ctx, recognizeWithin, func(within context.Context) (err error) {
		t, err = c.o.Recognizer.Recognize(within, u, o)
		return err
	})
	if err != nil {
		return failed(ctx, "The recognizer did not answer.", err)
	}
	text := strings.TrimSpace(t.Text)
	if t.Refused {
		text = ""
	}
	return c.send(wire.TypeTranscript, wire.Text{Text: text}, nil)
}

// failed returns a failure for an engine's error. Errors of the client and of the end of the
// connection are returned unchanged.
func failed(ctx context.Context, text string, err error) error {
	var lost writeError
	if ctx.Err() != nil || errors.As(err, &lost) {
		return err
	}
	return &failure{codeFailed, text, err}
}
