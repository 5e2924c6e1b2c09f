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

// Times of one utterance.
const (
	// listenFor is how long sound may take to come: enough for the longest
	// utterance and a late start. A slow client does not hold a recognizer longer.
	listenFor       = 2 * voice.LongestUtterance
	recognizeWithin = listenFor + time.Minute // that, and the recognizer's own
)

// listening is sound that is coming.
type listening struct {
	utterance *voice.Utterance
	format    wire.Format
	samples   wire.Samples
	resampler *voice.Resampler

	// finish ends the utterance, once. From then on an answer is owed.
	finish func()
	limit  *time.Timer
}

// takeSound collects an utterance, which is recognized meanwhile.
func (v *connection) takeSound(e wire.Event) error {
	switch e.Type {
	case wire.TypeTranscribe:
		v.asked = wire.Transcribe{}
		return decode(e, &v.asked)
	case wire.TypeAudioStop:
		if v.listening != nil {
			v.listening.limit.Stop()
			v.listening.finish()
			v.listening = nil
		}
		return nil
	}
	var f wire.Format
	if err := decode(e, &f); err != nil {
		return err
	}
	switch {
	case v.listening == nil:
		if err := v.beginListening(f); err != nil {
			return err
		}
	case e.Type == wire.TypeAudioStart, f != wire.Format{} && f != v.listening.format:
		return &failure{code: codeFormat, text: "The sound began anew, or in another format, before its audio-stop."}
	}
	v.listening.add(e.Payload)
	return nil
}

// beginListening has a recognizer listen to the sound that follows.
func (v *connection) beginListening(f wire.Format) error {
	asked := v.asked
	v.asked = wire.Transcribe{}
	language, err := offered(v.o.Heard, asked.Language)
	if err != nil {
		return err
	}
	switch {
	case f.Width != 2:
		return &failure{code: codeFormat, text: "Samples of sound must have 16 bits: width 2."}
	case f.Channels < 1 || f.Channels > 2:
		return &failure{code: codeFormat, text: "Sound must be mono or stereo."}
	case f.Rate < 8000 || f.Rate > 96000 || f.Rate%25 != 0:
		// Rates that have little in common with ours want huge filters; no
		// microphone has one.
		return &failure{code: codeFormat, text: "Sound must have 8000 to 96000 samples a second, as microphones do; best is 16000."}
	}
	h := &listening{utterance: voice.NewUtterance(), format: f, samples: wire.Samples{Channels: f.Channels},
		resampler: voice.NewResampler(f.Rate, voice.MicRate)}
	h.finish = sync.OnceFunc(func() {
		v.owe(1)
		h.utterance.Finish()
	})
	h.limit = time.AfterFunc(listenFor, h.finish)
	v.listening = h
	return v.queue(func(ctx context.Context) error {
		// Whatever ends the job: the utterance is over, and its answer given.
		defer v.owe(-1)
		defer h.finish()
		return v.recognize(ctx, h.utterance, voice.Options{Language: language})
	})
}

// add takes sound. What is more than an utterance holds is dropped, and what
// there is answered.
func (h *listening) add(payload []byte) {
	_ = h.samples.Add(payload, func(pcm []int16) error { // which never fails
		if !h.utterance.Write(h.resampler.Resample(pcm)) {
			h.finish()
		}
		return nil
	})
}

// recognize answers an utterance with its text, which is empty where it was refused.
func (v *connection) recognize(ctx context.Context, u *voice.Utterance, o voice.Options) error {
	leave, err := v.s.recognizers.acquire(ctx)
	if err != nil {
		return err
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, recognizeWithin)
	defer cancel()
	t, err := v.o.Recognizer.Recognize(within, u, o)
	if err != nil {
		return failed(ctx, "The recognizer did not answer.", err)
	}
	text := strings.TrimSpace(t.Text)
	if t.Refused {
		text = ""
	}
	return v.send(wire.TypeTranscript, wire.Text{Text: text}, nil)
}

// failed is the error of an engine, unless it is the client's or the end of the
// connection.
func failed(ctx context.Context, text string, err error) error {
	var lost gone
	if ctx.Err() != nil || errors.As(err, &lost) {
		return err
	}
	return &failure{codeFailed, text, err}
}
