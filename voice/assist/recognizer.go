package assist

import (
	"context"
	"errors"
	"io"
	"time"

	"perch/limit"
	"perch/remote/hass"
	"perch/voice"
)

// Recognizer implements voice.Recognizer. Each call opens a connection while the first
// words are spoken, which costs no time and needs no connection between talks.
//
// The language is the pipeline's: the API offers no choice.
type Recognizer struct {
	o      Options
	client *hass.Client
}

// NewRecognizer checks the options and returns the engine. It opens no connection.
func NewRecognizer(o Options) (*Recognizer, error) {
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	return &Recognizer{o, client}, nil
}

// Name returns "assist".
func (*Recognizer) Name() string { return "assist" }

// Close cancels running calls and closes the connections.
func (r *Recognizer) Close() { r.client.Close() }

// Check reports whether Home Assistant answers, accepts the token, and has the pipeline
// with a speech to text. Its error is one sentence.
func (r *Recognizer) Check(ctx context.Context) error {
	p, err := pipeline(ctx, r.client, r.o)
	if err == nil && p.STT == "" {
		err = r.client.Fault("has no speech to text in this Assist pipeline; choose one under Settings, Voice assistants")
	}
	if err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

// Recognize implements voice.Recognizer. It sends the sound while it is spoken. If Home
// Assistant ends the utterance early, the text is returned once u is finished. Errors
// are returned at once, so that the next engine can listen.
func (r *Recognizer) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	conn, err := r.client.Dial(ctx)
	if err != nil {
		return voice.Transcript{}, unavailable(ctx, err)
	}
	defer conn.Close()
	heard, err := r.listen(ctx, conn, u)
	if fault, ok := errors.AsType[*hass.Fault](err); ok && fault.Code == "stt-no-text-recognized" {
		heard, err = voice.Transcript{Refused: true}, nil
	}
	if err != nil {
		return voice.Transcript{}, unavailable(ctx, err)
	}
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	return heard, nil
}

// listen sends u to a run and returns its transcript. The sender ends with it.
func (r *Recognizer) listen(ctx context.Context, conn *hass.Conn, u *voice.Utterance) (voice.Transcript, error) {
	run, err := conn.Run(ctx, hass.Start{
		From: hass.StageSpeech, To: hass.StageSpeech, Rate: voice.MicRate, Pipeline: r.o.Pipeline,
	})
	if err != nil {
		return voice.Transcript{}, err
	}
	defer run.Close()
	handler, err := r.awaitHandler(ctx, run)
	if err != nil {
		return voice.Transcript{}, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	sent := make(chan struct{})
	defer func() {
		cancel(nil)
		<-sent
	}()
	go func() {
		defer close(sent)
		if err := sendSpeech(inner, run, handler, u); err != nil {
			cancel(err)
			return
		}
		// The whole input was sent: AnswerWithin starts.
		select {
		case <-time.After(r.o.AnswerWithin):
			cancel(r.client.Silent(r.o.AnswerWithin))
		case <-inner.Done():
		}
	}()
	return r.readText(inner, run)
}

// awaitHandler waits until the run accepts sound, and returns the sound's handler id. Other
// events do not extend the wait.
func (r *Recognizer) awaitHandler(ctx context.Context, run *hass.Run) (byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.AnswerWithin, r.client.Silent(r.o.AnswerWithin))
	defer cancel()
	for {
		e, err := run.Next(ctx, hass.Unlimited)
		if errors.Is(err, io.EOF) || err == nil && e.Type == hass.EventRunEnd {
			return 0, r.client.Fault("ended its pipeline before it had begun; see its log")
		}
		if err != nil {
			return 0, err
		}
		if e.Type == hass.EventRunStart {
			handler, err := e.Handler()
			if err != nil {
				return 0, r.client.Fault("does not say where sound goes; it may be too old")
			}
			return handler, nil
		}
	}
}

// sendSpeech sends u while it is spoken.
func sendSpeech(ctx context.Context, run *hass.Run, handler byte, u *voice.Utterance) error {
	if err := u.Send(ctx, func(pcm []byte) error { return run.Sound(ctx, handler, pcm) }); err != nil {
		return err
	}
	return run.EndSound(ctx, handler)
}

// readText waits for the text, in the pipeline's language. A run that ends without
// text recognized nothing.
func (r *Recognizer) readText(ctx context.Context, run *hass.Run) (voice.Transcript, error) {
	language := ""
	for {
		e, err := run.Next(ctx, hass.Unlimited)
		if errors.Is(err, io.EOF) {
			return voice.Transcript{Refused: true}, nil
		}
		if err != nil {
			return voice.Transcript{}, err
		}
		switch e.Type {
		case hass.EventSpeechStart:
			language = e.Language()
		case hass.EventSpeechEnd:
			text, err := e.Transcript()
			if err != nil || len(text) > voice.LongestTranscript {
				return voice.Transcript{}, r.client.Fault("recognizes more than a person can say in an utterance; see its speech to text")
			}
			heard := voice.Spoken(text)
			if !heard.Refused && len(language) <= limit.Name {
				heard.Language = language
			}
			return heard, nil
		}
	}
}
