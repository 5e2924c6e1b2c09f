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
	// maxListening is how long an utterance may be received after its first audio event, because the recognizer is
	// occupied during that time. It is enough for the longest utterance, even if the client starts to send late.
	maxListening     = 2 * voice.MaxUtterance
	recognizeTimeout = maxListening + time.Minute // for recording and recognizing an utterance
)

// listening is an utterance that is being received.
type listening struct {
	utterance *voice.Utterance
	format    wire.Format
	samples   wire.Samples
	resampler *voice.Resampler

	finish func()      // ends the utterance and counts a response as owed; later calls have no effect
	limit  *time.Timer // calls finish after maxListening
}

// handleSound handles an event of an utterance. The recognition is queued at the first audio event.
func (c *connection) handleSound(e wire.Event) error {
	switch e.Type {
	case wire.TypeTranscribe:
		c.transcribe, c.judging = wire.Transcribe{}, false
		return decode(e, &c.transcribe)
	case wire.TypeAudioStop:
		if c.listening != nil {
			c.listening.limit.Stop()
			c.listening.finish()
			c.listening = nil
		}
		c.judging = false
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
		return &failure{code: codeFormat, text: "The sound started again or changed its format before the audio-stop."}
	}
	c.listening.add(e.Payload)
	return nil
}

// startListening starts to receive an utterance, and queues its recognition or judgement.
func (c *connection) startListening(f wire.Format) error {
	respond := c.judge
	if !c.judging {
		request := c.transcribe
		c.transcribe = wire.Transcribe{}
		recognizer, language, err := choose(c.o.Recognizers, request.Name, request.Language)
		if err != nil {
			return err
		}
		respond = func(ctx context.Context, u *voice.Utterance) error {
			return c.recognize(ctx, recognizer, u, voice.Options{Language: language})
		}
	}
	switch {
	case f.Width != 2:
		return &failure{code: codeFormat, text: "Samples of sound must have 16 bits: width 2."}
	case f.Channels < 1 || f.Channels > 2:
		return &failure{code: codeFormat, text: "Sound must be mono or stereo."}
	case f.Rate < 8000 || f.Rate > 96000 || f.Rate%25 != 0:
		// A rate whose greatest common divisor with voice.MicRate is small needs a huge filter.
		return &failure{code: codeFormat, text: "Sound must have 8000 to 96000 samples a second, as microphones do; best is 16000."}
	}
	l := &listening{utterance: voice.NewUtterance(), format: f, samples: wire.Samples{Channels: f.Channels},
		resampler: voice.NewResampler(f.Rate, voice.MicRate)}
	l.finish = sync.OnceFunc(func() {
		c.countOwed(1)
		l.utterance.Finish()
	})
	l.limit = time.AfterFunc(maxListening, l.finish)
	c.listening = l
	return c.queue(func(ctx context.Context) error {
		defer c.countOwed(-1) // the response that finish has counted
		defer l.finish()      // needed if respond returns an error before the end of the utterance
		return respond(ctx, l.utterance)
	})
}

// add adds sound to the utterance. When the utterance has the maximum length, add finishes it and drops the rest of the
// sound.
func (l *listening) add(payload []byte) {
	_ = l.samples.Add(payload, func(pcm []int16) error { // Add returns only errors of the function, which returns none
		if !l.utterance.Write(l.resampler.Resample(pcm)) {
			l.finish()
		}
		return nil
	})
}

// recognize sends the transcript of an utterance, which is empty if the recognizer has refused the utterance.
func (c *connection) recognize(ctx context.Context, r voice.Recognizer, u *voice.Utterance, o voice.Options) error {
	var t voice.Transcript
	err := c.s.recognizers.run(ctx, recognizeTimeout, func(ctx context.Context) (err error) {
		t, err = voice.RecognizePatiently(ctx, r, u, o, func() {})
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

// judge sends the probability that the person has finished. It does not wait for a recognizer that is in use.
func (c *connection) judge(ctx context.Context, u *voice.Utterance) error {
	probability, err := c.o.Judge.JudgeEnd(ctx, u)
	if err != nil {
		return failed(ctx, "The end of the turn was not judged.", err)
	}
	return c.send(wire.TypeTurn, wire.Turn{Complete: probability}, nil)
}

// failed returns a failure for the error of a recognizer, a judge, a synthesizer or the mind. It returns the error unchanged if
// it is a writeError, or if ctx, the context of the connection, has ended.
func failed(ctx context.Context, text string, err error) error {
	var lost writeError
	if ctx.Err() != nil || errors.As(err, &lost) {
		return err
	}
	return &failure{codeFailed, text, err}
}
